"""Lesson 15 beside its exercises: what is counted, what a compiler for cards that are not here says, and the notebook without Triton."""

from __future__ import annotations

import importlib.util
import json
import linecache
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from grader.course import references
from grader.course.course import open_course
from grader.course.spec import SEED
from grader.judging.baseline import baseline_of
from grader.judging.judge import judge
from grader.judging.mistake_runs import MistakeRuns
from grader.notebook import own_process, verdicts
from grader.notebook.target import Target
from grader.worker.observe import observe
from tests.conftest import ROOT
from tests.live import from_cells
from tests.notebook.test_live import run, shell

__all__ = ["shell"]

LESSON = "15_kernel"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed: make kernel"
)
GIVEN = "import math\n\nimport torch\nimport triton\nimport triton.language as tl\nfrom torch import Tensor\n\n"


def fails(x):
    return 1 / 0


@pytest.fixture(scope="module")
def figures():
    return open_course().module(f"{LESSON}.figures")


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """A module with the course's three kernels, imported while Triton interprets."""
    folder = tmp_path_factory.mktemp("kernels")
    cells = [references.solution_text(open_course(), name) for name in open_course().exercises[LESSON]]
    (folder / "solved_kernels.py").write_text(GIVEN + "\n\n".join(cells), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        patch.syspath_prepend(folder)
        import solved_kernels

        yield solved_kernels


def test_a_kernel_is_counted_by_the_formula(figures, solved):
    """q and the output once, K and V once for each tile of queries; a causal program stops behind its last query."""
    t, d, queries = 128, 16, 64
    shapes = [(1, 2, t, d)] * 3
    tiles = t // queries
    assert figures.kernel_traffic(solved.triton_attention, *shapes) == (4 * 2 * (2 * t * d + tiles * 2 * t * d), 1)
    causal = sum(2 * (one + 1) * queries * d for one in range(tiles))
    one_head = [(1, 1, t, d)] * 3  # an interpreter takes its time
    assert figures.kernel_traffic(solved.triton_attention, *one_head, causal=True) == (4 * (2 * t * d + causal), 1)
    assert figures.kernel_traffic(solved.triton_add, (1000,), (1000,)).bytes == 3 * 4000


def test_what_cannot_be_counted_or_compiled_says_why(figures, monkeypatch):
    """A payoff stops no notebook: of a function without text, and of one that fails, the reason comes back and is drawn."""
    drawn = []
    monkeypatch.setattr(figures, "show", lambda fig, alt: drawn.append(alt))
    without_text = eval("lambda x: x", {"__name__": "__main__"})
    assert "source code" in figures.kernel_traffic(without_text, (4,))
    assert figures.compile_for_cards(without_text, (4,)).keys() == figures.CARDS.keys()
    why = figures.kernel_traffic(fails, (4,))
    assert why == "ZeroDivisionError: division by zero" and figures.bytes_per_entry(why, 4) == f"not counted: {why}"
    figures.traffic({"eager": figures.Traffic(2**20, 5), "tiles": figures.Traffic(2**21, 90), "yours": why}, 2**18)
    assert f"yours: not counted: {why}" in drawn[0]
    figures.fast_memory({16: (2**14, 2**23), 32: (2**15, 2**22)}, why)
    assert drawn[1].endswith("Upright lines: T4 64 KB, A100 163 KB, H100 227 KB.")


def test_a_grid_of_two_axes_is_drawn_for_any_program(figures, monkeypatch):
    """Tiles at the edge of a text and of a batch, and a text that tiles do not divide."""
    drawn = []
    monkeypatch.setattr(figures, "show", lambda fig, alt: drawn.append(alt))
    assert figures.grid(batch=2, heads=3, t=256, queries=64, keys=32, program=(2, 4)) == (4, 6)
    assert (
        "program (2, 4) owns queries 128–191 of text 1, head 1; in memory they begin at row 4 · 256 + 128 = 1,152"
        in drawn[0]
    )
    assert figures.grid(batch=1, heads=2, t=100, queries=64, keys=32, program=(1, 1)) == (2, 2)
    assert (
        "program (1, 1) owns queries 64–99 of text 0, head 1; in memory they begin at row 1 · 100 + 64 = 164"
        in drawn[1]
    )


def test_operators_are_counted_and_views_are_not(figures):
    x = torch.ones(10, 10)
    assert figures.operators(lambda: x.mT[2:]) == (0, 0)
    assert figures.operators(lambda: x + x) == (4 * 200, 1)  # x once, however often it is named
    assert figures.operators(lambda: x @ x.mT) == (4 * 300, 1)


def test_the_kernels_of_the_course_compile_and_fit_into_every_card(figures, solved):
    """Without a GPU. What the interpreter lets pass and a compiler doesn't shows here; float32 at d = 128 needs most memory."""
    calls = (
        (solved.triton_add, [(1000,)] * 2, "float16", {}),
        (solved.triton_softmax, [(3, 2048)], "float16", {}),
        (solved.triton_attention, [(1, 2, 100, 64)] * 3, "float16", {"causal": True}),
        (solved.triton_attention, [(1, 2, 100, 128)] * 3, "float32", {"causal": False}),
    )
    for wrapper, shapes, dtype, settings in calls:
        for card, made in figures.compile_for_cards(wrapper, *shapes, dtype=dtype, **settings).items():
            assert not isinstance(made, str), f"{wrapper.__name__} on {card}: {made}"
            assert made.shared_kb <= figures.CARDS[card][1]
            assert (made.tensor_core_instructions > 0) == (wrapper is solved.triton_attention and card != "T4")


@pytest.mark.parametrize(
    "old, new",
    [
        ("o = tl.zeros((QUERIES, D), tl.float32)", "o = tl.zeros((QUERIES, D), tl.float16)"),
        ("        columns = left", "        if left >= visible:\n            break\n        columns = left"),
        ("tl.minimum(t_k, top + QUERIES + t_k - t_q)", "min(t_k, top + QUERIES + t_k - t_q)"),
        ("l = l * rescale + tl.sum(p, axis=1)", "l = l * rescale + tl.sum(p, axis=1)\n        print('l', l)"),
    ],
)
def test_a_check_takes_what_a_compiler_takes(figures, tmp_path, monkeypatch, old, new):
    text = references.solution_text(open_course(), "triton_attention")
    assert old in text
    (tmp_path / "kernel_of_one.py").write_text(GIVEN + text.replace(old, new), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("kernel_of_one", tmp_path / "kernel_of_one.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "kernel_of_one", module)
    spec.loader.exec_module(module)
    shapes = [(1, 1, 100, 64)] * 3
    made = figures.compile_for_cards(module.triton_attention, *shapes, causal=True)["A100"]
    verdict = judge(open_course().exercise("triton_attention"), from_cells("triton_attention", text.replace(old, new)))
    assert verdict.passed == (not isinstance(made, str)), (made, verdict.headline)


def test_speed_is_drawn_from_a_run_and_never_without_one(figures, monkeypatch, capsys):
    drawn = []
    monkeypatch.setattr(figures, "show", lambda fig, alt: drawn.append(alt))

    class Bench:
        RUN: dict = {}
        stored_runs = staticmethod(list)
        name = staticmethod(lambda: "this card, 9.0")
        card = staticmethod(open_course().module("11_gpu.figures").card)

    assert figures.newest_run(Bench) is None
    figures.speed(None)
    assert capsys.readouterr().out.strip() == figures.NO_RUN and not drawn
    times = {
        "eager": {"512": 2.0, "1024": "the score matrix does not fit into memory"},
        "your kernel": {"512": 1.0, "1024": 2.0},
    }
    measured = {"shape": "four heads", "torch": "2.13", "date": "2026-11-26", "ms": times}
    Bench.stored_runs = staticmethod(
        lambda: [{"machine": "a card", "kernel": measured}, {"machine": "of lesson 11 alone"}]
    )
    figures.speed(figures.newest_run(Bench))
    assert "a card" in drawn[0] and "the course's kernel: 1 ms (2 TFLOP/s) at 512, 2 ms (3 TFLOP/s) at 1024" in drawn[0]
    times["fused operator"] = {"512": 0.5, "1024": 1.0}
    told = "With 512 tokens on {} is 2 times as fast as eager attention, and takes 2.0 times as long as the fused operator."
    assert figures.speed_in_words(figures.newest_run(Bench)) == told.format("a card the course's kernel")
    Bench.RUN = {"kernel": measured}
    assert figures.newest_run(Bench)["machine"] == "this card, 9.0"
    assert figures.speed_in_words(figures.newest_run(Bench)) == told.format("this card your kernel")
    times["your kernel"]["2048"], times["fused operator"]["2048"] = 3.0, 1.0
    Bench.RUN["backends"] = {"FLASH_ATTENTION": 2.0}
    assert figures.speed_in_words(figures.newest_run(Bench)).endswith(
        "With 2,048 tokens it takes 3.0 times as long as the backend that the fused operator chooses, and 1.5 times as long as "
        "`FLASH_ATTENTION`, which lesson 11 has timed."
    )
    times["eager"]["512"] = "out of memory"
    assert figures.speed_in_words(figures.newest_run(Bench)) == figures.speed_in_words(None) == figures.NO_RUN


def test_triton_compiles_as_before_once_kernels_were_tried():
    """Its interpreter exchanges functions of the language, which a GPU's compiler needs; so does one that ends in an error."""
    from triton import language

    owners = (language, language.core, language.math, language.standard, language.tensor, language.dtype)
    before = [dict(vars(owner)) for owner in owners]
    exercise = open_course().exercise("triton_add")
    baseline_of(exercise, 11)
    raising = references.solution_text(open_course(), "triton_add").replace("tl.store(", "1 / 0\n    tl.store(")
    assert judge(exercise, from_cells("triton_add", raising)).status == "error"
    for owner, members in zip(owners, before, strict=True):
        now = vars(owner)
        assert [name for name, value in members.items() if now.get(name) is not value] == []


@pytest.mark.parametrize("name", open_course().exercises[LESSON])
def test_the_course_s_own_kernels_give_on_arrays_what_they_give_in_the_interpreter(name):
    """The solution on every case, each mistake on one; a mistake's number says on which."""
    exercise = open_course().exercise(name)
    cases = baseline_of(exercise, 0).cases
    tried = [(references.reference(exercise), case) for case in cases]
    for number, mistake in enumerate(exercise.mistakes):
        tried.append((references.wrong(exercise, mistake), cases[number % len(cases)]))
    for kernel, case in tried:
        on_arrays, interpreted = observe(kernel, case, trusted=True), observe(kernel, case)
        assert same_failure(on_arrays.failure) == same_failure(interpreted.failure)
        assert on_arrays.parts.keys() == interpreted.parts.keys()
        for part, one in on_arrays.parts.items():
            other = interpreted.parts[part]
            assert (one.kind, one.text) == (other.kind, other.text), (case.key, part)
            np.testing.assert_array_equal(one.array, other.array, f"{case.key}: {part}", strict=True)


def test_code_of_a_file_without_lines_takes_nothing_from_equal_code_of_another(monkeypatch):
    exercise = open_course().exercise("triton_add")
    cases = baseline_of(exercise, 0).cases
    mistake = next(one for one in exercise.mistakes if one.id == "KN1")
    run = references._run

    def without_lines(filename, text, names):
        run(f"<nowhere {filename}>", text, names)
        del linecache.cache[f"<nowhere {filename}>"]

    monkeypatch.setattr(references, "_run", without_lines)
    assert observe(references.wrong(exercise, mistake), cases[0], trusted=True).parts["call"].text == ""
    monkeypatch.setattr(references, "_run", run)
    assert observe(references.wrong(exercise, mistake), cases[0], trusted=True).parts["call"].text == "offsets n"


def test_blocks_of_other_sizes_give_the_same_where_a_text_fits_into_the_smallest():
    runs = baseline_of(open_course().exercise("triton_attention"), SEED).runs
    runs = MistakeRuns(runs.exercise, runs.cases, runs.expected, runs.inputs)  # with nothing kept
    likes, runs.likes = runs.likes, {}
    small = [i for i, case in enumerate(runs.cases) if not case.costly]
    assert len(likes) > 20 and len(small) > 20
    for number, like in likes.items():
        for i in small:
            shown, expected = (runs.show((one,), i).actual for one in (number, like))
            assert runs.same(i, shown, expected), (runs.exercise.mistakes[number], runs.cases[i].key)


@pytest.mark.parametrize("name, number", [("triton_add", 5), ("triton_attention", 7)])
def test_programs_of_one_entry_or_query_are_judged_by_some_of_them(name, number):
    """In each larger case some are left out; a kernel that drops the last ones is rejected, and a mistake is named all the same."""
    right = zoo_of(name)[number]
    exercise = open_course().exercise(name)
    kernel = from_cells(name, right).obj
    cases = [case for case in baseline_of(exercise, SEED).cases if "programs" in case.options]
    assert len(cases) >= 4
    for case in cases:
        parts = observe(kernel, case).parts
        assert parts["left_out"].array > 0
        assert case.reading(case, parts)["result"].shape == case.args[0].array.shape
    slips = {
        "triton_add": (
            ("(x.numel(),)", "(x.numel() - 1,)", ""),
            ("torch.empty_like(x)", "torch.empty(x.shape)", "KN11"),
        ),
        "triton_attention": (("(t_q, b * h)", "(t_q - 1, b * h)", ""), ("l = l * old + ", "l = l + ", "TI18")),
    }
    for old, new, id in slips[name]:
        verdict = judge(exercise, from_cells(name, right.replace(old, new)))
        assert not verdict.passed and (not id or id in verdict.mistakes), verdict.headline


def test_where_a_kernel_reads_what_another_wrote_no_program_is_left_out():
    launch = "one_entry[(x.numel(),)](x, y, out)"
    again = (
        "half = torch.empty_like(x)\n    one_entry[(x.numel(),)](x, y, half)\n    one_entry[(x.numel(),)](half, y, out)"
    )
    exercise = open_course().exercise("triton_add")
    case = next(case for case in baseline_of(exercise, SEED).cases if case.key == "half many")
    parts = observe(from_cells("triton_add", zoo_of("triton_add")[5].replace(launch, again)).obj, case).parts
    x, y = (value.array for value in case.args)
    assert parts["left_out"].array == 0
    np.testing.assert_array_equal(parts["result"].array, x + y + y)


LOAD = "tl.load(x_ptr + offsets, mask=mask)"


@pytest.mark.parametrize(
    "old, new, said",
    [
        (
            LOAD,
            "tl.load(x_ptr + offsets)",
            "The load has no mask: `mask=offsets < n_elements` is missing, and `other=` says",
        ),
        ("output, mask=mask", "output", "The store has no mask: `mask=offsets < n_elements` is missing."),
        ("offsets < n_elements", "offsets <= n_elements", "The load has a mask, which lets this lane through"),
        (LOAD, "tl.load(x_ptr + (offsets))", "The load has no mask: `mask=offsets < n_elements` is missing"),
        (
            LOAD,
            "tl.load(x_ptr + 2 * offsets)",
            "The load has no mask. A lane that has no entry there is masked in the load",
        ),
    ],
)
def test_what_lies_beyond_a_tensor_is_told_in_the_kernel_s_own_names(old, new, said):
    text = zoo_of("triton_add")[0].replace(old, new)
    headline = judge(open_course().exercise("triton_add"), from_cells("triton_add", text)).headline
    assert headline.startswith("Program 0 of 1 ") and said in headline, headline


def test_where_no_mask_is_made_the_length_is_the_parameter_that_is_read_nowhere():
    text = zoo_of("triton_add")[0].replace(", mask=mask", "").replace("    mask = offsets < n_elements\n", "")
    headline = judge(open_course().exercise("triton_add"), from_cells("triton_add", text)).headline
    assert "`mask=offsets < n_elements` is missing" in headline


def zoo_of(name):
    return open_course().module(f"{LESSON}.zoo.answers").RIGHT[name]


def same_failure(failure):
    return failure and (failure.type, failure.message, failure.line)


HIDDEN = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = classmethod(lambda cls, name, *more: None if name.partition(".")[0] == "triton" else find(name, *more))
"""


def test_without_triton_the_notebook_runs_to_its_end_and_says_what_is_needed(tmp_path):
    """As on macOS and Windows: no triton is found. The solved notebook, so that every kernel is written."""
    (tmp_path / "sitecustomize.py").write_text(HIDDEN, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    environment["ATTENTION_COURSE_PROGRESS"] = str(tmp_path / "progress.json")
    runner, notebook = ROOT / "tests" / "run_notebook.py", open_course().solution_path(LESSON)
    call = [sys.executable, str(runner), str(notebook), "out.ipynb"]
    ran = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    cells = json.loads((tmp_path / "out.ipynb").read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    told = "".join("".join(one.get("text", one.get("data", {}).get("text/plain", ""))) for one in outputs)
    assert "Triton cannot be imported here." in told and told.count("attention-course[kernel]") == 4
    assert "PASSED" not in told and not [one for one in outputs if one["output_type"] == "error"]


# --- a check in the notebook, which runs kernels in a process of its own ------------------------------

KERNEL = """
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    tl.store(out + at, tl.load(x + at, mask=here) + tl.load(y + at, mask=here), mask=here)
"""
WRAPPER = """

def triton_add(x, y):
    out = torch.empty_like(x)
    add[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out
"""


@pytest.fixture(scope="module")
def worker():
    """Afterwards none is left."""
    yield
    own_process._sandbox().close()
    own_process._sandbox.cache_clear()


def judged(shell, *cells: str):
    given = next(cell.text for cell in open_course().cells(LESSON) if cell.role == "given")
    names = run(shell, given, *cells)
    return verdicts.judge(Target("triton_add", names["triton_add"], names))


def test_an_address_that_is_nobodys_is_told_before_anything_reads_it(shell, worker):
    verdict = judged(shell, KERNEL.replace("x + at", "x + (1 << 40) + at"), WRAPPER)
    assert verdict.status == "failed"
    assert verdict.headline.startswith("Program 0 of 1 reads where no tensor is, first in lane 0 of its block.")


def test_what_the_compiler_refuses_is_rejected_with_the_line(shell, worker):
    """A kernel of one's own with a helper, which the interpreter and the compiler both take, is not."""
    helper = "\n@triton.jit\ndef twice(x):\n    return x + x\n\n"
    doubled = KERNEL.replace("tl.load(x + at, mask=here) +", "twice(tl.load(x + at, mask=here)) / 2 +")
    assert judged(shell, helper + doubled, WRAPPER).status == "passed"
    verdict = judged(shell, KERNEL.replace("    here = at < n", "    here = 0 <= at < n"), WRAPPER)
    assert verdict.case == "compiled"
    assert verdict.headline == (
        "Triton's compiler refuses this kernel at `here = 0 <= at < n`: “simultaneous multiple comparison is not supported”. The "
        "interpreter lets it pass, and no GPU would."
    )


def test_a_kernel_s_error_is_told_with_the_line_of_its_cell(shell, worker):
    cell = "# one\n\n" + KERNEL.replace("tl.store", "tl.shop")
    line = judged(shell, cell, WRAPPER).line
    assert (line.number, line.function) == (1 + cell[: cell.index("tl.shop")].count("\n"), "add")
    assert "shop" in line.text


def test_a_kernel_that_is_not_written_is_told_from_a_stub(shell, worker):
    stub = 'raise NotImplementedError("triton_add is not written yet")'
    assert judged(shell, f"def triton_add(x, y):\n    {stub}").status == "not_started"
    half = f"@triton.jit\ndef add(x, y, out, n, BLOCK: tl.constexpr):\n    {stub}\n"
    verdict = judged(shell, half, WRAPPER)
    assert verdict.headline.startswith("triton_add calls `add`, which is not written yet"), verdict.headline


WITH_A_GPU = """
import torch
torch.cuda.is_available, torch.cuda.is_initialized = lambda: True, lambda: False
import triton
from grader.course import references
from grader.course.course import open_course
from grader.judging.candidate import LiveObject
from grader.judging.judge import judge

exercise = open_course().exercise("triton_add")
right = references.reference(exercise)
assert judge(exercise, LiveObject(right)).passed
wrong = references.wrong(exercise, exercise.mistakes[0])
assert judge(exercise, LiveObject(wrong)).mistakes == (exercise.mistakes[0].id,)
kernel = references.namespace(open_course(), "15_kernel")["add_kernel"]
print(type(kernel).__name__, triton.JITFunction.run.__qualname__)
"""


def test_where_there_is_a_gpu_references_run_in_the_interpreter_and_kernels_stay_to_be_compiled():
    """The variable is not set there: a learner's kernel is compiled in the notebook, and judged in the interpreter."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", WITH_A_GPU], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["JITFunction", "JITFunction.run"], done.stderr[-2000:]
