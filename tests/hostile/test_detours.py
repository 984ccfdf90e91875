"""Ready-made operators that come to an answer by ways that no reading follows: a worker sees them when they run."""

from __future__ import annotations

import pytest

from grader.judging.judge import judge
from grader.sandbox.sandbox import Sandbox
from grader.source.policy import Sources
from grader.submission.plan import Plan, RunCell
from tests.live import offence
from tests.mixing_course import COURSE, RIGHT

pytestmark = pytest.mark.any_user  # what one Python process sees of itself
OPERATOR = "from torch.nn import functional as F\nop = F.scaled_dot_product_attention\n"
ANSWER = "def mix_torch(q, k, v):\n    return {}(q, k, v), (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)\n"
DETOURS = {  # the operator has another name by the time that the answer is read
    "got by a function": (OPERATOR + "def get():\n    return op\nkept = get()", "op = 1\n" + ANSWER.format("kept")),
    "put into a decorator": (
        f"{OPERATOR}import functools\ndef deco(f):\n    kept = op\n    return lambda *a: (kept(*a), f(*a)[1])\n"
        f"@deco\n{ANSWER.format('max')}".replace("max(q, k, v)", "q"),
        "op = 1",
    ),
    "held by a class": (
        f"{OPERATOR}class Box:\n    def __init__(self):\n        self.held = op\nbox = Box()\n",
        f"op = 1\n{ANSWER.format('box.held')}",
    ),
    "in a thread that took its hook off before": (
        f"{OPERATOR}import sys\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "pool = ThreadPoolExecutor(1, initializer=lambda: getattr([sys][0], 'eliforptes'[::-1])(None))\npool.submit(int).result()\n"
        "def get():\n    return op\nkept = get()",
        f"op = 1\n{ANSWER.replace('{}(', 'pool.submit(kept, ').replace('v),', 'v).result(),')}",
    ),
}


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(20.0, torch=True) as made:
        yield made


def status(sandbox: Sandbox, *cells: str) -> tuple[str, str]:
    """Of mix_torch by the last of these cells, and its headline."""
    given = [cell.text for cell in COURSE.cells(COURSE.lesson_of("mix_torch")) if cell.role == "given"]
    run = (*(RunCell("given cell", text, False) for text in given), *(RunCell("cell", text, True) for text in cells))
    at = next(at for at, cell in enumerate(run) if "def mix_torch" in cell.text)
    plan = Plan(COURSE.lesson_of("mix_torch"), ("mix_torch",), run, {"mix_torch": at})
    verdict = judge(COURSE.exercise("mix_torch"), sandbox.candidates(plan)["mix_torch"])
    return verdict.status, verdict.headline


@pytest.mark.parametrize("cells", DETOURS.values(), ids=DETOURS.keys())
def test_an_operator_that_was_captured_before_its_name_was_bound_anew_is_seen_while_it_runs(sandbox, cells):
    assert offence("mix_torch", ("attention",), (), Sources(cells, COURSE.given_names)) is None
    found, headline = status(sandbox, *cells)
    assert found == "forbidden" and headline.startswith("While it ran, `scaled_dot_product_attention` was called")


def test_an_answer_of_ones_own_passes_there(sandbox):
    assert status(sandbox, RIGHT["mix_torch"])[0] == "passed"
