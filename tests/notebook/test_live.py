"""Which text of a notebook counts as the source of an object."""

from __future__ import annotations

import linecache
import sys
from itertools import count, product

import pytest

from grader.judging.candidate import LiveObject
from grader.notebook import live_object
from grader.notebook.live_object import sources
from grader.source.policy import Sources
from tests.conftest import WHOLE_GRID
from tests.live import offence, shell_that_ran
from tests.mixing_course import COURSE

_numbers = count(1)


_lesson_cells = live_object._lesson_cells


@pytest.fixture(autouse=True)
def of_no_lesson(monkeypatch):
    """`attend` and `mix` are exercises of no course."""
    monkeypatch.setattr(live_object, "_lesson_cells", lambda course, name: frozenset())


@pytest.fixture
def shell():
    """A real IPython shell without a terminal, gone after the test."""
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    made = interactive.InteractiveShell.instance()
    made.history_manager.enabled = False
    yield made
    interactive.InteractiveShell.clear_instance()
    for prompt in ("ps1", "ps2", "ps3"):  # the shell sets them, and they say that somebody is at a prompt
        vars(sys).pop(prompt, None)


def run(shell, *cells: str):
    for cell in cells:
        done = shell.run_cell(cell, store_history=True)
        assert done.success, done.error_in_exec
    return shell.user_ns


FORBIDDEN = "def attend(q):\n    return F.scaled_dot_product_attention(q, q, q)"
ALLOWED = "def attend(q):\n    return helper(q)"
HELPER = "def helper(q):\n    return q"


def text_of(shell, *cells: str) -> str:
    names = run(shell, *cells)
    return "\n".join(cell.lstrip("\n") for cell in sources("attend", names["attend"], names).cells)


def test_lines_have_the_numbers_that_they_have_in_their_cell(shell):
    cell = "import math\n\n# a loop\ndef attend(q):\n    for row in q:\n        return row"
    names = run(shell, cell)
    found, whole = sources("attend", names["attend"], names).slips("attend"), Sources((cell,)).slips("attend")
    assert found == whole and {slip.number for slip in found} == {6}


def test_helpers_in_other_cells_belong_to_it(shell):
    assert text_of(shell, "import math as m", HELPER, "unused = 1", ALLOWED) == f"{HELPER}\n{ALLOWED}"


def test_only_the_last_definition_counts(shell):
    said = text_of(
        shell, FORBIDDEN, "class F: scaled_dot_product_attention = 1", HELPER, ALLOWED, "def helper(q):\n    return -q"
    )
    assert "F." not in said and "return -q" in said and "return q\n" not in said


def test_a_local_variable_leads_to_no_other_cell(shell):
    comparison = "out = [torch_like for torch_like in 'scaled_dot_product_attention'.split()]"
    said = text_of(shell, comparison, "def attend(q):\n    out = q\n    return out")
    assert "torch_like" not in said


def test_what_is_patched_in_later_belongs_to_it(shell):
    said = text_of(shell, "class attend:\n    pass", "def forward(self, q):\n    return q", "attend.forward = forward")
    assert said.splitlines()[-1] == "attend.forward = forward" and "def forward" in said


def test_decorators_and_aliases_belong_to_it(shell):
    said = text_of(
        shell,
        "import functools as ft",
        "def wrap(f):\n    return f",
        "@wrap\n@ft.wraps(len)\ndef inner(q):\n    return q",
        "attend = inner",
    )
    assert said.startswith("import functools as ft\ndef wrap(f):") and "@wrap\n@ft.wraps(len)\ndef inner" in said


def test_a_timed_cell_is_read(shell):
    assert text_of(shell, "%%time\n" + FORBIDDEN.replace("F.", "m.") + "\n").startswith("def attend")


def test_a_timed_statement_is_read_as_grading_reads_it(shell):
    assert text_of(shell, HELPER, "%time attend = helper") == f"{HELPER}\nattend = helper"


def test_a_cell_below_other_magics_counts_once_and_in_its_place(shell):
    cell = f"%config Application.log_level = 30\n{HELPER}\n{ALLOWED}"
    assert text_of(shell, cell, "helper.scale = 2") == f"{HELPER}\n{ALLOWED}\nhelper.scale = 2"


def test_lines_that_were_pasted_with_their_prompts_are_read(shell):
    assert text_of(shell, ">>> def attend(q):\n...     return q") == "def attend(q):\n    return q"


def test_an_object_under_another_name_is_followed(shell):
    names = run(shell, FORBIDDEN.replace("attend", "mine"))
    found = sources("attend", names["mine"], names)
    assert offence("attend", ("attention",), (), found) is not None


def test_outside_ipython_the_file_counts():
    filename = f"<live test {next(_numbers)}>"
    text = f"{HELPER}\n\nother = 1\n\n{ALLOWED}\n"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    names: dict = {}
    exec(compile(text, filename, "exec"), names)
    assert sources("attend", names["attend"], names).cells == (HELPER, f"{chr(10) * 5}{ALLOWED}")
    assert sources("attend", len, {}) is None


def test_a_live_object_is_a_candidate():
    live_object = LiveObject(None)
    assert (live_object.problem, live_object.sources) == (None, None) and list(live_object.observe_all(())) == []


def test_in_a_shell_results_display_themselves_and_nothing_is_printed(shell, capsys):
    names = run(shell, "from grader import check", "shown = check('nonsense')")
    assert capsys.readouterr().out == ""
    assert "text/html" in names["shown"]._repr_mimebundle_()


# --- check and grade read the same ---------------------------------------------------------------

# What may stand in another cell beside a helper called `product`, and whether it gives the name another value.
BESIDE = {
    "a comprehension": ("print([product for product in (1, 2)])", False),
    "a comprehension of its own": ("total = sum(product for product in range(3) if product)", False),
    "a dict's": ("{product: product for product in 'ab'}", False),
    "a lambda's parameter": ("show = lambda product: product", False),
    "a function's variable": ("def show():\n    product = 1\n    return product", False),
    "a function's parameter": ("def show(product=1): return product", False),
    "a method": ("class Shown:\n    def product(self): return 1", False),
    "a field": ("class Shown:\n    product = 1", False),
    "a keyword": ("print(dict(product=1))", False),
    "an attribute": ("class Shown: pass\nShown.product = 1", False),
    "a key": ("shown = {'product': 1}", False),
    "an annotation": ("product: int", False),
    "a variable of a function that is nonlocal inside": (
        "def show():\n    product = 1\n    def more():\n        nonlocal product\n        product = 2",
        False,
    ),
    "a branch": ("if shown:\n    product = 1", False),
    "a loop": ("for product in ():\n    pass", False),
    "a handler": ("try:\n    pass\nexcept ValueError as product:\n    pass", False),
    "a pattern": ("match shown:\n    case product: pass", False),
    "a function that sets it": ("def show():\n    global product\n    product = 1", False),
    "with": ("with shown as product: pass", False),
    "walrus": ("(product := 1)", False),
    "walrus in a comprehension": ("[(product := one) for one in ()]", False),
    "added to": ("product += 1", False),
    "deleted": ("del product", False),
    "assigned": ("product = 1", True),
    "one of several": ("one, (product, *rest) = shown", True),
    "one of several targets": ("one = product = 1", True),
    "annotated and assigned": ("product: int = 1", True),
    "imported": ("from math import prod as product", True),
    "a module": ("import product.x", True),
    "defined anew": ("def product(a, b): return np.einsum('ij,jk->ik', a, b)", True),
    "a class": ("class product: pass", True),
    "an async function": ("async def product(): pass", True),
    "in the same line": ("one = 1; product = 2; two = 3", True),
}
HELPERS = {
    "a function": "def product(a, b): return a @ b",
    "a lambda": "product = lambda a, b: a @ b",
    "decorated": "import functools\n@functools.cache\ndef product(a, b):\n    return a @ b",
    "in a branch": "if True:\n    def product(a, b): return a @ b",
    "in one line": "one = 1; product = lambda a, b: a @ b; two = 2",
    "by another": "def inner(a, b): return a @ b\ndef product(a, b): return inner(a, b)",
    "set on another": "class inner: pass\ninner.forward = lambda a, b: a @ b\ndef product(a, b): return inner.forward(a, b)",
}
EINSUM = {
    "a call": "def attend(q, k, v): return np.einsum('ij,jk->ik', product(q, k), v)",
    "in a comprehension": "def attend(q, k, v): return np.einsum('ij,jk->ik', [product(q, k) for _ in range(1)][0], v)",
    "in a nested function": "def attend(q, k, v):\n    def scores(): return product(q, k)\n    return np.einsum('ij,jk->ik', scores(), v)",
    "a default": "def attend(q, k, v, of=product): return np.einsum('ij,jk->ik', of(q, k), v)",
}


def _by_both(monkeypatch, *cells: str):
    """The offence that grade finds in these cells, and the one that check finds where they ran."""
    monkeypatch.setattr("grader.notebook.live_object.ipython", lambda: shell_that_ran(*cells))
    ran = sources("attend", None, {"In": []})
    return [offence("attend", (), ("einsum_products",), each) for each in (Sources(cells), ran)]


@pytest.mark.parametrize("beside", BESIDE)
def test_check_and_grade_find_the_same(monkeypatch, beside):
    text, anew = BESIDE[beside]
    *other, last = EINSUM  # each helper by the default, which is looked up at another time, and by one of the others
    some = {(helper, answer) for number, helper in enumerate(HELPERS) for answer in (last, other[number % len(other)])}
    for helper, answer, at in product(HELPERS, EINSUM, range(3)):
        if not WHOLE_GRID and (helper, answer) not in some:
            continue
        cells = [HELPERS[helper], EINSUM[answer]]
        cells.insert(at, text)
        graded, checked = _by_both(monkeypatch, *cells)
        assert (graded is None) == (checked is None), (cells, graded, checked)
        # A default is taken where the answer is defined, a call finds what the name means at the end.
        found = not anew or at == 0 or (answer == "a default" and at == 2)
        assert (graded is not None) == found, cells


def test_a_line_of_many_statements_is_kept_once_each(monkeypatch):
    cells = ["one = 1; two = one; 'é'; attend = two", "three = 3"]
    monkeypatch.setattr("grader.notebook.live_object.ipython", lambda: shell_that_ran(*cells))
    assert sources("attend", None, {"In": []}).cells == ("one = 1", "two = one", "attend = two")


def test_a_line_ends_where_python_says_that_it_does(monkeypatch):
    cell = "one = 1  # pasted\u2028from a page, \x0b or \f\r\ndef attend(q):\n    return one"
    monkeypatch.setattr("grader.notebook.live_object.ipython", lambda: shell_that_ran(cell))
    assert sources("attend", None, {"In": []}).cells == ("one = 1", "\ndef attend(q):\n    return one")


BLINDS = "import sys\nsys.setprofile(None)"


def test_what_is_refused_anywhere_is_refused_by_check_where_the_exercise_does_not_reach_it(shell):
    names = run(shell, BLINDS, "def mix(q, k, v):\n    return q")
    found = sources("mix", names["mix"], names)
    refused = found.offence("mix", ("attention",), ())
    graded = Sources((BLINDS, "def mix(q, k, v):\n    return q")).offence("mix", ("attention",), ())
    assert refused.line == "sys.setprofile(None)" and refused == graded


def test_the_lessons_own_cells_may_do_what_a_learners_may_not(shell, monkeypatch):
    names = run(shell, BLINDS, "def mix(q, k, v):\n    return q")
    for own, refused in ((frozenset({"sys.setprofile(None)"}), False), (frozenset(), True)):
        monkeypatch.setattr(live_object, "_lesson_cells", lambda course, name, own=own: own)
        found = sources("mix", names["mix"], names).offence("mix", ("attention",), ())
        assert (found is not None) == refused


def test_the_statements_of_a_lessons_own_cells_are_known():
    assert any("for score in" in text for text in _lesson_cells(COURSE, "agreement"))
