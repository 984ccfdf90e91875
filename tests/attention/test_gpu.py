"""Lesson 11 on machines that are not here: what cannot run says why, a run is stored once a machine, `make gpu` changes nothing without a GPU."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from types import SimpleNamespace

import pytest
import torch

from grader.course.course import open_course
from tests import gpu
from tests.conftest import ROOT


@pytest.fixture
def figures():
    return open_course().module("11_gpu.figures")


def raising(error):
    raise error


@pytest.mark.parametrize(
    "error, reason",
    [
        (
            RuntimeError("InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config"),
            "no C++ compiler",
        ),
        (RuntimeError("Found Tesla K80 which is too old to be supported by the triton GPU compiler"), "7.0"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"), "does not fit"),
        (ModuleNotFoundError("No module named 'torch.nn.attention.flex_attention'"), "2.5"),
        (ValueError("\n" + "x" * 200 + "\nmore"), "ValueError"),
    ],
)
def test_what_cannot_run_says_why_in_one_line(figures, error, reason):
    said = figures.attempt(lambda: raising(error))
    assert reason in said and "\n" not in said and len(said) <= 90


def test_what_runs_comes_back(figures):
    assert figures.attempt(lambda: 1.5) == 1.5
    assert (figures.with_unit(1.5, "ms"), figures.with_unit(1234.0, "ms"), figures.with_unit("too old", "ms")) == (
        "1.5 ms",
        "1,234 ms",
        "not here: too old",
    )


def test_a_run_is_stored_once_a_machine(figures, tmp_path, monkeypatch):
    path = tmp_path / "runs.json"
    monkeypatch.setattr(figures, "RUN", {})
    assert figures.stored_runs(path) == []
    figures.record("ways", {"eager": 2.0, "fused": 1.0, "compiled": "no C++ compiler"})
    figures.record("shape", "2,048 tokens")
    for _ in range(2):
        figures.store(path)
    monkeypatch.setattr(figures, "name", lambda: "another card")
    figures.store(path)
    monkeypatch.setattr(figures, "RUN", {"kernel": {"shape": "another lesson's"}})
    figures.store(path)
    runs = figures.stored_runs(path)
    assert runs[-1]["kernel"] and runs[-1]["ways"] == {"eager": 2.0, "fused": 1.0, "compiled": "no C++ compiler"}
    machines = [run["machine"] for run in runs]
    assert len(machines) == 2 and machines[-1] == "another card" and json.loads(path.read_text())[0]["date"]


def test_the_lesson_tells_of_the_newest_stored_run(figures, monkeypatch, capsys):
    assert figures.stored_runs() or "No GPU was at hand" in figures.about_gpus()
    run = {
        "machine": "a card",
        "torch": "2.13",
        "date": "2026-11-25",
        "shape": "2,048 tokens",
        "ways": {"eager": 2.0, "fused": 1.0},
    }
    monkeypatch.setattr(figures, "stored_runs", lambda: [run])
    assert "a card" in figures.about_gpus() and "2026-11-25" in figures.about_gpus()
    shown = []
    monkeypatch.setattr(figures, "show", lambda fig, alt: shown.append(alt))
    figures.gpu_times()
    assert "a card" in shown[0] and "fused 1 ms" in shown[0] and "A100" in shown[1]


def test_what_a_gpu_measured_is_drawn_beside_what_is_measured_here(figures, monkeypatch):
    """A trace and the curves over T, as `store` writes them and `stored_runs` reads them; on a GPU its own picture is enough."""
    spans = {"eager": [figures.Span("GPU", "softmax", 0.0, 5.0)], "fused": [figures.Span("CPU", "other", 0.0, 2.0)]}
    curves = {"eager": {256: 1.0, 512: 4.0}, "fused": {256: 1.0, 512: 2.0}}
    slopes = {"time": {"eager": 2.0}, "memory": {"eager": 2.0}}
    drawn = []
    monkeypatch.setattr(figures, "show", lambda fig, alt: drawn.append(alt))
    monkeypatch.setattr(figures, "RUN", {})
    monkeypatch.setattr(
        figures, "stored_runs", lambda: [{"machine": "a card, 9.0", **json.loads(json.dumps(figures.RUN))}]
    )
    for here, pictures in (("cpu", 4), ("cuda", 2)):
        monkeypatch.setattr(figures, "device", lambda here=here: torch.device(here))
        monkeypatch.setattr(figures, "name", lambda: "this machine")
        drawn.clear()
        figures.traces(spans)
        figures.against_length(curves, curves, {"eager": 1024}, slopes, 512)
        assert len(drawn) == pictures and sum("Stored run, a card" in one for one in drawn) == pictures - 2
        assert all("this machine" in one for one in drawn if "Stored run" not in one)


def event(name, start, end, device="DeviceType.CPU", parent=None):
    return SimpleNamespace(
        name=name, device_type=device, cpu_parent=parent, time_range=SimpleNamespace(start=start, end=end)
    )


def test_a_trace_of_a_gpu_tells_calls_from_kernels(figures):
    cuda = "DeviceType.CUDA"
    measured = event("measured", 0, 95)
    matmul = event("aten::matmul", 0, 5, parent=measured)
    spans = list(
        figures._spans(
            [
                event("aten::matmul", -50, -40),  # the call before, which is not measured
                event("ampere_bf16_s16816gemm_bf16_128x64", -45, -41, cuda),
                measured,
                event("measured", 10, 80, cuda),
                matmul,
                event("aten::bmm", 1, 4, parent=matmul),
                event("cudaDeviceSynchronize", 5, 90),
                event("ampere_bf16_s16816gemm_bf16_128x64", 10, 20, cuda),
                event("void at::native::elementwise_kernel<masked_fill>", 20, 50, cuda),
                event("void (anonymous namespace)::softmax_warp_forward", 50, 60, cuda),
                event("fmha_cutlassF_f16_aligned_64x64_rf_sm75", 60, 70, cuda),
                event("void pytorch_flash::flash_fwd_kernel", 70, 80, cuda),
            ]
        )
    )
    assert [(one.row, one.kind) for one in spans] == [
        ("CPU", "matrix product"),
        ("GPU", "matrix product"),
        ("GPU", "scale and mask"),
        ("GPU", "softmax"),
        ("GPU", "attention kernel"),
        ("GPU", "attention kernel"),
    ]
    assert figures.over_the_matrix(spans[:4]) == pytest.approx(40 / 50)


POINTS = {
    "q kᵀ": (28.0, 40.0, 50.0),
    "scale": (0.1, 0.3, 1.5),
    "mask": (0.1, 0.3, 1.5),
    "softmax": (0.6, 1.0, 4.0),
    "weights · v": (28.0, 45.0, 45.0),
    "fused": (128.0, 60.0, None),
}


def test_the_roofline_counts_the_kernels_under_the_slope(figures, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "show", lambda fig, alt: drawn.append((fig, alt)))
    monkeypatch.setattr(figures, "stored_runs", list)
    figures.roofline((90.0, 18.0), POINTS, "float32")
    figures.roofline((700e3, 3e3), POINTS, "bfloat16")
    assert [fig.axes[0].get_title() for fig, _ in drawn] == [
        "Here, float32:\nthree of five eager kernels under the slope",
        "Here, bfloat16:\nall five eager kernels under the slope",
    ]
    assert "its corner at 5.0" in drawn[0][1] and len(drawn[0][0].axes) == 1


def test_the_roofline_shows_the_stored_run_beside_this_machine(figures, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "show", lambda fig, alt: drawn.append(alt))
    card = {"precision": "bfloat16", "roof": [7e5, 3e3], "points": {name: list(at) for name, at in POINTS.items()}}
    monkeypatch.setattr(
        figures, "stored_runs", lambda: [{"machine": "a card, compute capability 9.0", "roofline": card}]
    )
    figures.roofline((90.0, 18.0), POINTS, "float32")
    assert "Stored run, a card, bfloat16: the roof is 700000" in drawn[0]
    assert "Here, float32: the roof is 90" in drawn[0]


def test_what_a_gpu_measured_is_told_in_sentences(figures, monkeypatch):
    block = {"ms": {"eager": 8.0, "fused": 2.0}, "MiB": {"eager": 300.0, "fused": 100.0}}
    run = {
        "machine": "a card, 9.0",
        "block": block,
        "ways": {"fused": 0.5},
        "backends": {"FLASH": 0.75, "CUDNN": "not here"},
    }
    for runs, told in (([run], True), ([], False)):
        monkeypatch.setattr(figures, "stored_runs", lambda runs=runs: runs)
        assert (
            figures.stored_block()
            == told * "Stored run, a card: the eager block takes 4.0 times as long and needs 3.0 times as much."
        )
        assert figures.stored_backends() == told * (
            "Stored run, a card: FLASH 0.75 ms; the operator, which chooses by itself, 0.5 ms."
        )


def test_a_longer_step_takes_fewer_tokens(figures):
    assert [figures.tokens_for(ms, 3000) for ms in (100, 400, 900, 5000)] == [2048, 1024, 512, 512]


def test_without_a_gpu_one_sentence_and_nothing_else(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(gpu, "run", lambda *_: pytest.fail("something ran"))
    assert gpu.main() == 2
    assert capsys.readouterr().out.strip() == gpu.NO_GPU


def test_make_gpu_asks_before_it_sets_anything_up(tmp_path):
    """With a path on which no driver's program lies; an Apple computer has a GPU in any case."""
    if platform.system() == "Darwin":
        return
    (tmp_path / "bin").mkdir()
    for program in ("make", "sh", "uname", "id"):
        (tmp_path / "bin" / program).symlink_to(shutil.which(program))
    asked = subprocess.run(
        ["make", "gpu", f"VENV={tmp_path / 'none'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path / "bin")},
    )
    assert asked.returncode == 2 and asked.stdout.count("\n") == 1 and not (tmp_path / "none").exists()
