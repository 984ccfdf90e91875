"""`make gpu`: runs lessons 11 and 15 and their checks on this computer's GPU and stores what they measured, for those who have none.

Each lesson's stored notebook, solved, runs in a kernel of its own; then what a CPU cannot show is checked on the GPU. Only a run in
which every cell and every check passed is stored, in solutions/shared/data/gpu_runs.json, with the machine's name and the date.
Last, the solutions of all lessons get tensors of the GPU: each result is there, and is what it is on the CPU.
"""

from __future__ import annotations

import json
import sys
from typing import Any

TIMEOUT_S = 900
NO_GPU = "torch finds no GPU on this computer (CUDA or Apple's), so nothing was run and nothing was changed."

# By lesson, what runs after its last cell. The learner's functions are the solution's here.
CHECKS = {
    "11_gpu": """
assert all(passed(name) for name in (pick_device, time_ms, attention_flops, attention_bytes, FastCausalMultiHeadAttention)), "a check failed"
assert pick_device().type == here.type != "cpu"
torch.manual_seed(0)
for dtype, tolerance in ((torch.float32, 1e-3), (precision, 0.1)):
    module = FastCausalMultiHeadAttention(128, 4).to(here, dtype)
    twin = EagerAttention(128, 4).to(here, dtype)
    twin.load_state_dict(module.state_dict())
    for t in (1, 2, 63, 200):
        x = torch.randn(2, t, 128, device=here, dtype=dtype, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        mine, right = module(x), twin(y)
        mine.sum().backward()
        right.sum().backward()
        assert (mine - right).abs().max().item() < tolerance, f"output of {t} tokens in {dtype}"
        assert (x.grad - y.grad).abs().max().item() < 10 * tolerance, f"gradient of {t} tokens in {dtype}"
if here.type == "cuda":
    a = torch.randn(4096, 4096, device=here)
    by_clock, by_events = time_ms(lambda: a @ a, here), measure(lambda: a @ a)
    assert 0.7 < by_clock / by_events < 1.5, f"the stopwatch says {by_clock:.2f} ms, the events {by_events:.2f} ms"
print("stored:", bench.store())
""",
    "15_kernel": """
assert all(passed(name) for name in (triton_add, triton_softmax, triton_attention)), "a check failed"
assert kernels_run and here.type == "cuda"
import itertools

torch.manual_seed(0)
for dtype in (torch.float32, torch.float16):
    for n in (1, 1023, 100_000):
        x, y = torch.randn(2, n, device=here, dtype=dtype)
        assert torch.equal(triton_add(x, y), x + y), f"{n} entries in {dtype}"
    for n in (1, 37, 2048):
        x = 10 * torch.randn(5, n, device=here, dtype=dtype)
        x[:, 1:2] = -math.inf
        assert (triton_softmax(x).float() - x.float().softmax(-1)).abs().max().item() < 2e-3, f"rows of {n} in {dtype}"
    for d, (t_q, t_k), causal in itertools.product((16, 32, 64, 128), ((1, 1), (70, 70), (37, 150)), (False, True)):
        q = torch.randn(2, 3, t_q, d, device=here, dtype=dtype)
        k, v = torch.randn(2, 2, 3, t_k, d, device=here, dtype=dtype)
        mask = torch.ones(t_q, t_k, dtype=torch.bool, device=here).tril(t_k - t_q) if causal else None
        right = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), mask)
        gap = (triton_attention(q, k, v, causal) - right).abs().max().item()
        assert gap < 2e-2, f"{t_q} queries, {t_k} keys of {d}, causal {causal}, in {dtype}: off by {gap:.0e}"
print("stored:", figures.gpu.store())
""",
}
CUDA_ALONE = {"15_kernel": "Lesson 15 is left out: Triton's kernels need an NVIDIA or AMD card."}


def main() -> int:
    """Returns: 0 where a run was stored, 1 where something failed, 2 where there is no GPU."""
    try:
        import torch
    except ImportError:
        print(NO_GPU)
        return 2
    if not (torch.cuda.is_available() or torch.backends.mps.is_available()):
        print(NO_GPU)
        return 2
    for lesson, checks in CHECKS.items():
        if lesson in CUDA_ALONE and not torch.cuda.is_available():
            print(CUDA_ALONE[lesson])
        elif code := run(lesson, checks):
            return code
    return solutions_on(torch.device("cuda" if torch.cuda.is_available() else "mps"))


def run(lesson: str, checks: str) -> int:
    """Runs the cells of a lesson's stored notebook, then `checks`, and prints what came of it."""
    from grader.authoring import notebook_run
    from grader.course.course import open_course

    course = open_course()
    cells = json.loads(course.solution_path(lesson).read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    last = {"cell_type": "code", "id": "gpu", "source": checks}
    print(f"Running {lesson} on this computer's GPU: {len(code)} cells.", flush=True)
    try:
        ran = notebook_run.run(course, [*code, last], TIMEOUT_S)
    except notebook_run.RunError as error:
        print(f"Nothing was stored: {error}")
        return 1
    for cell, (_, outputs) in zip([*code, last], ran, strict=True):
        for output in outputs:
            if output["output_type"] == "error":
                print(f"Nothing was stored: cell {cell['id']} raises {output['ename']}: {output['evalue']}")
                return 1
            if output["output_type"] == "stream":
                print("".join(output["text"]), end="", flush=True)
    print(
        f"\nThe run is in solutions/shared/data/gpu_runs.json; `grader build --anew {lesson[:2]}` puts it into the lesson's figures."
    )
    return 0


def solutions_on(device: Any) -> int:
    """Whether each solution that a case calls on tensors does the same on this device as on the CPU. Prints what differs."""
    import numpy as np
    import torch

    from grader.course import references
    from grader.course.course import open_course
    from grader.worker import probes
    from grader.worker.observe import materialise, seed

    def moved(value: Any, to: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(moved(item, to) for item in value)
        return value.detach().to(to).requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value

    def results(solution: Any, case: Any, to: Any) -> list[Any]:
        seed()
        if case.probe == "module":
            solution = probes.build(solution, case.options).eval().to(to)
        args = [moved(materialise(value), to) for value in case.args]
        result = solution(*args, **{name: moved(materialise(value), to) for name, value in case.kwargs.items()})
        return [
            one for one in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(one, torch.Tensor)
        ]

    course, equal, exercises = open_course(), 0, 0
    differences: list[str] = []
    for name in (one.name for lesson in course.lessons() for one in course.lesson(lesson).exercises):
        exercise, before = course.exercise(name), equal
        if exercise.lesson in CHECKS or exercise.process == "own":
            continue
        solution = references.reference(exercise)
        for case in exercise.cases(np.random.default_rng(7)):
            if case.probe not in ("call", "module") or not any(
                isinstance(materialise(value), torch.Tensor) for value in case.args
            ):
                continue
            try:
                expected = results(solution, case, "cpu")
            except ValueError:  # what is refused is refused before anything is computed
                continue
            try:
                for one, right in zip(results(solution, case, device), expected, strict=True):
                    torch.testing.assert_close(one, right.to(device), rtol=2e-3, atol=2e-3, equal_nan=True)
                    equal += 1
            except Exception as error:
                differences.append(f"{name}, case {case.key}: {type(error).__name__}: {error}")
        exercises += equal > before
    print(
        *differences, f"The solutions of {exercises} exercises gave {equal} results on the GPU as on the CPU.", sep="\n"
    )
    return int(bool(differences) or not equal)


if __name__ == "__main__":
    sys.exit(main())
