"""Reads a learner's source for what an exercise forbids or requires; refuses with a sentence.

Only what the exercise reaches is read (dependencies.py): a cell in which a learner compares the result with torch's own
operator is no offence, and neither is an earlier try. What the source hides is seen again while it runs
(worker/watch.py, judging/runtime_policy.py); so what cannot be decided by reading is left to that, and what would blind it
is refused anywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from grader.source.mentions import HIDDEN, TEXT_RUN, Mention, Reading
from grader.source.scopes import DEFINITIONS
from grader.source.slips import Slip, slips
from grader.source.tampering import Tampering
from grader.worker.operations import ATTENTION, AUTOGRAD, LIBRARIES, LOSSES, NORMALIZATION, RECURRENT, SOFTMAX

LAYERS = frozenset(
    """
    MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder
    Transformer
    """.split()
)
TENSOR_LIBRARIES = frozenset("torch jax tensorflow keras autograd mlx flax tinygrad functorch".split())
# In a guard such as isinstance(w, Tensor), which computes nothing.
GUARDS = frozenset({"torch", "torch.Tensor", "torch.is_tensor"})
NUMPY_PRODUCTS = frozenset(
    """
    matmul dot tensordot inner outer vdot multi_dot kron vecdot matvec vecmat __matmul__ __rmatmul__ __imatmul__
    """.split()
)
NORM_LAYERS = frozenset(
    """
    LayerNorm RMSNorm GroupNorm LocalResponseNorm LayerNormalization StandardScaler standardize
    BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d
    InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d
    """.split()
)
DERIVATIVES = frozenset(
    """
    backward grad grad_and_value requires_grad_ enable_grad vjp jvp vhp hvp jacobian hessian jacrev jacfwd linearize
    make_dual
    """.split()
)
NUMPY_ARRAYS = NUMPY_PRODUCTS | frozenset(
    "array asarray asanyarray ascontiguousarray zeros ones empty full einsum from_dlpack".split()
)
NAMES = {
    "attention": ATTENTION | LAYERS,
    "layers": LAYERS,
    "softmax": SOFTMAX,
    "cross_entropy": LOSSES | {"CrossEntropyLoss", "NLLLoss", "SparseCategoricalCrossentropy"},
    "normalization": NORMALIZATION | NORM_LAYERS,
    "recurrent": RECURRENT | set("RNN RNNCell GRU GRUCell LSTM LSTMCell RNNBase RNNCellBase".split()),
    "autograd": AUTOGRAD | DERIVATIVES,
}
WORDS = {
    "attention": "a ready-made attention operator; this exercise is written from scratch",
    "layers": "a ready-made layer with attention in it; this exercise puts the parts together itself",
    "softmax": "a ready-made softmax; this exercise is written from scratch",
    "cross_entropy": "a ready-made log-sum-exp or cross entropy; this exercise is written from scratch",
    "normalization": "a ready-made normalization; this exercise is written from scratch",
    "recurrent": "a ready-made recurrent network; this exercise writes its loop itself",
    "torch": "a library with gradients built in; this exercise is written in NumPy",
    "autograd": "a derivative that the library takes by itself; this exercise writes the backward pass out",
    "table": "what is computed outside of PyTorch is not on the tensors' device, and nobody sees how large it is",
}
_LOOK_UP = "looked up by a name put together at run time"
TAMPERING = "tampering"  # alone, where nothing is forbidden but to reach what looks on (tampering.py)


@dataclass(frozen=True)
class Sources:
    """The learner's cells as text, in notebook order, magics already removed.

    given_names: names that the lesson's own cells import, and what each of them stands for.
    """

    cells: tuple[str, ...]
    given_names: tuple[tuple[str, str], ...] = ()

    def offence(self, name: str, forbids: tuple[str, ...], requires: tuple[str, ...]) -> Offence | None:
        """The first offence in the code that `name` reaches; None where there is none.

        forbids: keys of WORDS, and TAMPERING. requires: 'einsum_products'.
        """
        tampering = tampering_of(self.cells, self.given_names)
        reading = tampering.reading
        has_rules = bool(forbids or requires)
        if reading.has_unread_cells and has_rules:
            return TOO_LONG
        way, line = tampering.find(name) if has_rules else ("", "")
        if way:
            return Offence(
                f"A cell reaches into the running program by `{way}`, so that this exercise cannot be checked; take it out, "
                "and restart the kernel where it has run.",
                line,
            )
        for mention in reading.mentions(name):
            is_own = mention.last_part in reading.members
            may_be_library = mention.origin == "library" or (mention.origin == "value" and not is_own)
            sentence = _course_use(mention) or _forbidden_use(mention, forbids, may_be_library)
            if not sentence and "einsum_products" in requires:
                sentence = _other_product(mention, may_be_library)
            if sentence:
                line = reading.line_of_use(name, mention) or mention.statement.line(mention.node)
                return Offence(sentence + _place(mention, name), line)
        return None

    def slips(self, name: str, exercises: Collection[str] = ()) -> tuple[Slip, ...]:
        """What beginners let slip, of the definition of that name, and which of these exercises it calls."""
        return slips(name, self.cells, exercises)


@dataclass(frozen=True)
class Offence:
    """Something forbidden or missing. line: the learner's own line."""

    sentence: str
    line: str = ""


def _place(mention: Mention, name: str) -> str:
    """Where it stands, if that is another function or class, which the exercise uses; '' otherwise."""
    node = mention.statement.node
    if not isinstance(node, DEFINITIONS) or node.name == name:
        return ""
    return f" It stands in `{node.name}`, which {name} uses."


TOO_LONG = Offence("A cell is too long, or nested too deeply, to be checked for what this exercise forbids.")


@lru_cache(maxsize=4)
def tampering_of(cells: tuple[str, ...], given_names: tuple[tuple[str, str], ...] = ()) -> Tampering:
    """With the reading that it is part of, made once for all exercises of a notebook."""
    return Tampering(Reading(cells, given_names))


def _forbidden_use(mention: Mention, forbids: tuple[str, ...], may_be_library: bool) -> str:
    """What is said of it; '' where it is allowed.

    may_be_library: False for what is the learner's own, or a value's method that is called like one of theirs.
    """
    name, last_part = mention.name, mention.last_part
    base = name.rpartition(".")[0]
    top = name.partition(".")[0]
    for group in forbids:
        if group == TAMPERING:  # which is read of the whole notebook
            continue
        if may_be_library and last_part in NAMES.get(group, ()):
            return f"`{name.lstrip('?.')}` is {WORDS[group]}."
        if mention.origin != "library":
            continue
        is_guard = name in GUARDS and not isinstance(mention.node, ast.Call)
        if group == "torch" and top in TENSOR_LIBRARIES and not is_guard:
            return f"`{name}` belongs to {WORDS[group]}."
        if group == "table" and top == "numpy" and last_part in NUMPY_ARRAYS:
            return f"`{name}` makes an array: {WORDS[group]}."
        if name in TEXT_RUN or name.removeprefix("builtins.") in TEXT_RUN:
            return f"`{name}` runs code from text, which cannot be checked for {group}."
        # torch itself is asked for dtypes and functions by name; what runs then is seen.
        if last_part == HIDDEN and (top in LIBRARIES and base != "torch" or (group == "torch" and not base)):
            return f"Something of a library is {_LOOK_UP}, which cannot be checked for {group}."
    return ""


def _other_product(mention: Mention, may_be_library: bool) -> str:
    """A product formed by something else than einsum."""
    name = mention.name
    if name == "@":
        return "`@` forms a product; this exercise asks for `np.einsum` alone."
    if mention.last_part == HIDDEN and name.startswith("numpy."):
        return f"Something of NumPy is {_LOOK_UP}; this exercise asks for `np.einsum` alone."
    if may_be_library and mention.last_part in NUMPY_PRODUCTS:
        return f"`{name.lstrip('?.')}` forms a product; this exercise asks for `np.einsum` alone."
    return ""


def _course_use(mention: Mention) -> str:
    """Fetching an answer from the course itself."""
    if mention.name == "solutions/":
        return "A path into `solutions` is used; the answer should be the learner's."
    first, _, rest = mention.name.partition(".")
    is_payoff = rest.partition(".")[0] in ("figures", "check", "passed")  # if a learner changed one, it is theirs
    if mention.origin == "library" and first in ("solutions", "grader") and not is_payoff:
        return f"`{mention.name}` reaches into the course's own {first}; the answer should be the learner's."
    return ""
