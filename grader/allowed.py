"""Reads a learner's source for what an exercise forbids or requires; refuses with a sentence.

Only code that the exercise's name can reach is read: a cell in which a learner compares the result with
torch's own operator is no offence. What the source hides is caught again while it runs (worker/watch.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from grader.definitions import MAX_CODE, globals_read, parse
from grader.model import Case, Observation
from grader.worker.watch import ATTENTION, GROUPS, LIBRARIES, SOFTMAX

LAYERS = frozenset({
    "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerDecoder", "Transformer",
})  # fmt: skip
TENSOR_LIBRARIES = frozenset({"torch", "jax", "tensorflow", "keras", "autograd", "mlx", "flax", "tinygrad", "functorch"})
NUMPY_PRODUCTS = frozenset({
    "matmul", "dot", "tensordot", "inner", "outer", "vdot", "multi_dot", "kron", "vecdot", "matvec", "vecmat",
})  # fmt: skip
NAMES = {"attention": ATTENTION | LAYERS, "softmax": SOFTMAX}
WORDS = {
    "attention": "a ready-made attention operator; this exercise is written from scratch",
    "softmax": "a ready-made softmax; this exercise is written from scratch",
    "torch": "a library with gradients built in; this exercise is written in NumPy",
}
_OPAQUE = frozenset({"eval", "exec", "compile", "__import__"})
# Ways into the process that runs the code, past every name: by them the watching itself could be switched off.
_REACHING = frozenset({
    "_getframe", "_current_frames", "currentframe", "f_back", "f_locals", "f_globals", "f_builtins", "gi_frame", "cr_frame",
    "tb_frame", "get_objects", "get_referrers", "get_referents", "setprofile", "settrace", "__subclasses__",
})  # fmt: skip
_EINSUM = re.compile(r"einsum (\d{1,12}) (\d{1,12})")
_DEPTH = 200  # of nested syntax that is read; nobody's attention needs more


@dataclass(frozen=True)
class Sources:
    """The learner's cells as text, in notebook order, magics already removed."""

    cells: tuple[str, ...]


@dataclass(frozen=True)
class Offence:
    """Something forbidden or missing. name: what it is called in the code; line: the learner's own line."""

    sentence: str
    line: str = ""
    name: str = ""


def offence(name: str, forbids: tuple[str, ...], requires: tuple[str, ...], sources: Sources | None) -> Offence | None:
    """The first offence in the code that `name` reaches; None where there is none or no source is known.

    forbids: keys of WORDS. requires: 'einsum_products'.
    """
    if sources is None:
        return None
    reading = _reading(sources)
    if reading.unread and (forbids or requires):
        return Offence("A cell is too long, or nested too deeply, to be checked for what this exercise forbids.")
    if reading.reaching and (forbids or requires):
        return Offence(f"A cell reaches into the running program by `{reading.reaching}`, so that what this exercise forbids "
                       "cannot be checked; take it out.", name=reading.reaching)  # fmt: skip
    for node, called in reading.reachable(name):
        found = reading.foreign(node, called) or reading.forbidden(node, called, forbids)
        if found is None and "einsum_products" in requires:
            found = reading.other_product(node, called)
        if found:
            return found
    return None


def ran(forbids: tuple[str, ...], observation: Observation) -> Offence | None:
    """The first forbidden operation that ran, whatever the source looked like."""
    for group in forbids:
        for call in observation.calls:
            if call in GROUPS.get(group, ()):
                name = "a library's operator" if call == "torch" else f"`{call}`"
                return Offence(f"While it ran, {name} was called: {WORDS[group]}.", name=call)
    return None


def einsum_missing(case: Case, observation: Observation) -> Offence | None:
    """For a case with q, k, v of three dimensions: an offence where einsum did not form both products.

    Counted in multiply-adds: together the einsum calls must do at least the work of q kᵀ and weights v,
    on operands no larger than the inputs and the scores (a larger one was multiplied out before).
    """
    q, k, v = (np.shape(getattr(value, "array", value)) for value in case.args[:3])
    needed = q[0] * q[1] * k[1] * (q[2] + v[2])
    largest = max(q[0] * q[1] * k[1], *(int(np.prod(shape)) for shape in (q, k, v)))
    done = 0
    for call in observation.calls:
        counted = _EINSUM.fullmatch(call)  # a worker's word: anything else in it is no einsum
        if counted:
            adds, operand = int(counted[1]), int(counted[2])
            done += adds if operand <= largest else 0
    if done >= needed:
        return None
    if done == 0:
        return Offence("`np.einsum` formed neither of the two products; both were asked for.")
    return Offence("`np.einsum` formed only a part of the two products; both were asked for.")


def _reach(node: ast.AST) -> str:
    """The way into the process that a node names, '' for none."""
    if isinstance(node, ast.Attribute):
        if node.attr == "modules" and isinstance(node.value, ast.Name) and node.value.id == "sys":
            return "sys.modules"
        return node.attr if node.attr in _REACHING else ""
    if isinstance(node, ast.ImportFrom):
        named = {alias.name for alias in node.names}
        return "sys.modules" if node.module == "sys" and "modules" in named else min(named & _REACHING, default="")
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in _REACHING:
        return node.value
    return ""


@lru_cache(maxsize=8)
def _reading(sources: Sources) -> _Reading:
    """Made once for all exercises of a notebook."""
    return _Reading(sources)


class _Reading:
    """Parsed learner cells: what each name is bound to, and what imports call things."""

    def __init__(self, sources: Sources) -> None:
        self.lines: dict[int, str] = {}
        self.bindings: dict[str, list[ast.AST]] = {}
        self._walked: dict[int, tuple[list[tuple[ast.AST, str | None]], set[str]]] = {}
        self.defined: set[str] = set()  # by def, class or assignment, not by import
        self.stars: list[str] = []  # libraries whose names were imported all at once
        self.reaching = ""  # by which way some cell reaches into the process, '' for none
        self.unread = False  # whether a cell is larger than what is read
        self.modules = {"np": "numpy", "F": "torch.nn.functional", "nn": "torch.nn"}
        for cell in sources.cells:
            tree = parse(cell)
            if len(cell) > MAX_CODE or (tree is not None and _depth(tree) > _DEPTH):
                self.unread = True
            elif tree is not None:
                self._read(tree, cell.splitlines())

    def _read(self, tree: ast.Module, lines: list[str]) -> None:
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._read_import(node)
            self.reaching = self.reaching or _reach(node)
            at = getattr(node, "lineno", 0)
            if 0 < at <= len(lines):
                self.lines[id(node)] = lines[at - 1].strip()
        for statement in tree.body:
            for bound in _bound_names(statement):
                self.bindings.setdefault(bound, []).append(statement)
                if not isinstance(statement, (ast.Import, ast.ImportFrom)):
                    self.defined.add(bound)

    def _read_import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                self.modules[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
                if alias.name == "*" and (node.module or "").partition(".")[0] in LIBRARIES:
                    self.stars.append(node.module)
            else:
                self.modules[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )

    def reachable(self, name: str) -> Iterator[tuple[ast.AST, str | None]]:
        """Every node of every top-level statement that binds `name` or a name which those read, with what it mentions.

        Local variables are left out: one called `softmax` is no library's softmax.
        """
        waiting, done, seen = [name], set(), set()
        while waiting:
            current = waiting.pop()
            if current in done:
                continue
            done.add(current)
            for statement in self.bindings.get(current, ()):
                if id(statement) in seen:
                    continue
                seen.add(id(statement))
                nodes, free = self._read_of(statement)
                yield from nodes
                waiting.extend(free)

    def _read_of(self, statement: ast.AST) -> tuple[list[tuple[ast.AST, str | None]], set[str]]:
        """A statement's nodes that may name something of the outside, with what they mention, and the names that it reads there."""
        if id(statement) not in self._walked:
            documentation = {id(doc) for doc in _docstrings(statement)}
            free = set(globals_read(statement)) | _local_imports(statement)
            nodes = [
                (node, self._called(node))
                for node in ast.walk(statement)
                if id(node) not in documentation and not (isinstance(node, ast.Name) and node.id not in free)
            ]
            self._walked[id(statement)] = nodes, free
        return self._walked[id(statement)]

    def resolve(self, node: ast.AST) -> str:
        """The dotted name of an expression with import aliases replaced, '' where it is none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ".".join(["?", *reversed(parts)]) if parts else ""
        first = node.id if node.id in self.defined else self.modules.get(node.id, node.id)
        return ".".join([first, *reversed(parts)])

    def forbidden(self, node: ast.AST, called: str | None, forbids: tuple[str, ...]) -> Offence | None:
        if called is None:
            return None
        for group in forbids:
            if group in NAMES and called.rpartition(".")[2] in NAMES[group] and not self._own(called):
                return self._offence(node, f"`{called.lstrip('?.')}` is {WORDS[group]}.", called)
            if group == "torch" and called.partition(".")[0] in TENSOR_LIBRARIES:
                return self._offence(node, f"`{called}` belongs to {WORDS[group]}.", called)
            if group in NAMES and called in _OPAQUE:
                said = f"`{called}` runs code from text"
                if isinstance(node, ast.Call):
                    said = "Something of a library is looked up by a name put together at run time"
                return self._offence(node, f"{said}, which cannot be checked for {group}.", called)
        return None

    def _called(self, node: ast.AST) -> str | None:
        """The dotted name that a node mentions: as an attribute, a plain name, or a text given to getattr and the like."""
        if isinstance(node, ast.Attribute):
            return self.resolve(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return None if node.id in self.defined else self._bare(node.id)
        if isinstance(node, ast.ImportFrom):
            return f"{node.module or ''}.{node.names[0].name}"
        if isinstance(node, ast.Import):
            return node.names[0].name
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            known = ATTENTION | LAYERS | (SOFTMAX - {"softmax"})
            return f"?.{node.value}" if node.value in known else None
        if isinstance(node, ast.Call) and self._looks_up(node):
            library = self.resolve(node.args[0]) if node.args else ""
            if library.partition(".")[0] in LIBRARIES:
                name = node.args[1] if len(node.args) > 1 else None
                constant = isinstance(name, ast.Constant)
                return f"{library}.{name.value}" if constant else "eval"  # a name put together at run time
        return None

    def _bare(self, name: str) -> str | None:
        """What a plain name stands for: an import, a built-in that runs text, or something from a star import."""
        if name in self.modules or name in _OPAQUE:
            return self.modules.get(name, name)
        return f"{self.stars[0]}.{name}" if self.stars else None

    def _looks_up(self, node: ast.Call) -> bool:
        return isinstance(node.func, ast.Name) and node.func.id in ("getattr", "vars") and bool(node.args)

    def _own(self, called: str) -> bool:
        """True where the name belongs to the learner's own code: `self.softmax`, a helper class of theirs."""
        first, dot, _ = called.partition(".")
        return first in ("self", "cls") or first in self.defined or (not dot and first in self.defined)

    def foreign(self, node: ast.AST, called: str | None) -> Offence | None:
        """Fetching an answer from the course itself."""
        names = {called} if called else set()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = getattr(node, "module", None)
            names |= {f"{module}.{alias.name}" if module else alias.name for alias in node.names}
        for name in names:
            first, _, rest = name.partition(".")
            if first in ("solutions", "grader") and not rest.startswith("figures") and first not in self.defined:
                sentence = f"`{name}` reaches into the course's own {first}; the answer is to be the learner's."
                return self._offence(node, sentence, name)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "solutions/" in node.value.replace("\\", "/"):
            return self._offence(node, "A path into `solutions` is used; the answer is to be the learner's.", "solutions")
        return None

    def other_product(self, node: ast.AST, called: str | None) -> Offence | None:
        """A product formed by something else than einsum."""
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
            return self._offence(node, "`@` forms a product; this exercise asks for `np.einsum` alone.", "@")
        if isinstance(node, ast.Name) and node.id not in self.modules and "*" not in self.modules:
            return None  # a local name such as `inner` or `dot`; NumPy's own needs an import
        if called and called.rpartition(".")[2] in NUMPY_PRODUCTS and not self._own(called):
            name = called.lstrip("?.")
            return self._offence(node, f"`{name}` forms a product; this exercise asks for `np.einsum` alone.", name)
        return None

    def _offence(self, node: ast.AST, sentence: str, name: str) -> Offence:
        return Offence(sentence, self.lines.get(id(node), ""), name)


def _bound_names(statement: ast.AST) -> set[str]:
    """Names that a top-level statement binds in the notebook's namespace, nested blocks included."""
    names: set[str] = set()
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names.add(node.id)
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            root = node
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if isinstance(root, ast.Name):  # `SelfAttention.forward = helper` is part of SelfAttention
                names.add(root.id)
        waiting.extend(ast.iter_child_nodes(node))
    return names


def _local_imports(statement: ast.AST) -> set[str]:
    """Names that imports inside a statement bind: local there, and still a library's."""
    imports = (node for node in ast.walk(statement) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return {alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names}


def _docstrings(statement: ast.AST) -> Iterator[ast.Constant]:
    """Texts that stand alone as statements: they say something and do nothing."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _depth(tree: ast.AST) -> int:
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return deepest
