"""`grader doctor`: what is missing, in plain words, with the repair."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from importlib.metadata import version

import pytest

from grader.cli import doctor, main
from grader.cli.doctor import Check
from grader.course.course import open_course
from grader.sandbox.isolation import SandboxError, remark
from tests import small_lesson as small


def signs(folder) -> dict[str, Check]:
    return {sign.subject: sign for sign in doctor.examine(folder)}


def test_here_the_course_can_run(tmp_path):
    found = signs(tmp_path)
    assert all(sign.well for sign in found.values()), doctor.render(list(found.values()))
    looked_at = {"Python", "packages", "kernel", "torch", "accelerator", "course", "isolation", "notebook folder"}
    assert looked_at <= set(found)
    assert doctor.render(list(found.values())).endswith("The course can run here.")


def test_a_missing_package_is_named_with_its_repair(tmp_path, monkeypatch):
    monkeypatch.setattr(
        doctor, "requires", lambda name: ["numpy>=1.26", "no-such-package>=1", 'jupyterlab>=4; extra == "lab"']
    )
    here, sign = doctor._packages()
    assert "numpy" in here.finding and "jupyterlab" in here.finding
    assert "no-such-package" in sign.finding and "numpy" not in sign.finding
    assert "pip install" in sign.repair
    said = doctor.render([sign])
    assert said.startswith("missing") and "1 of these must be fixed" in said


@pytest.mark.parametrize("checkout", [True, False])
def test_what_only_a_checkout_needs_is_no_illness_elsewhere(monkeypatch, checkout, tmp_path):
    """A hosted notebook opens lessons itself; whoever has cloned the course wants `make lab` to run."""
    monkeypatch.setattr(
        doctor,
        "requires",
        lambda name: ["numpy>=1.26", 'no-such-lab>=4; extra == "lab"', 'torch>=2.4; extra == "torch"'],
    )
    monkeypatch.setattr(doctor, "installed", lambda name: False)
    if not checkout:
        monkeypatch.setattr(doctor, "_in_checkout", lambda: False)
    found = signs(tmp_path)
    ill = {what for what, sign in found.items() if not sign.well}
    assert ill == ({"packages", "torch"} if checkout else set())
    if not checkout:
        assert (
            found["JupyterLab"].repair.endswith("pip install 'attention-course[lab]'")
            and "no-such-lab" in found["JupyterLab"].finding
        )
        assert (
            found["torch"].repair == "python -m pip install 'attention-course[torch]'"
            and "lessons 03 need it" in found["torch"].finding
        )


def test_the_repair_is_one_that_there_is(monkeypatch, tmp_path):
    """A learner with a hand-out has neither make nor a checkout."""
    assert "make lab" in doctor._reinstall() and "[lab,torch]" in doctor._reinstall()
    monkeypatch.setattr(doctor, "installed_folder", lambda: tmp_path)
    assert "make" not in doctor._reinstall() and "pip install -r requirements.txt" in doctor._reinstall()


def torch_says(monkeypatch, stdout: str, stderr: str = "", code: int = 0) -> list[Check]:
    done = subprocess.CompletedProcess([], code, stdout, stderr)
    monkeypatch.setattr(doctor.subprocess, "run", lambda *_, **__: done)
    return list(doctor._torch())


def test_a_torch_that_does_not_import_gives_its_last_line(monkeypatch):
    (sign,) = torch_says(monkeypatch, "", "Traceback …\nModuleNotFoundError: No module named 'torch'", 1)
    assert sign.finding.endswith("No module named 'torch'") and not sign.well


def test_a_torch_that_takes_its_process_down_is_told(monkeypatch):
    (sign,) = torch_says(monkeypatch, "", "", -11)
    assert "code -11" in sign.finding and not sign.well


def test_a_torch_that_never_ends_its_import_is_told(monkeypatch):
    def late(*_, **__):
        raise subprocess.TimeoutExpired("python", 1)

    monkeypatch.setattr(doctor.subprocess, "run", late)
    (sign,) = doctor._torch()
    assert "still importing" in sign.finding and not sign.well


SEEN = '{"version": "2.13.0", "cuda": %s, "mps": %s, "built_for_cuda": %s, "right": %s}'


@pytest.mark.parametrize(
    "cuda, mps, built, said, repaired",
    [
        ('["NVIDIA H200"]', "false", '"12.8"', "NVIDIA H200", False),
        ("[]", "true", "null", "MPS", False),
        ("[]", "false", "null", "none", False),
        ("[]", "false", '"12.8"', "it finds no GPU", True),
    ],
)
def test_no_gpu_is_no_illness(monkeypatch, cuda, mps, built, said, repaired):
    _, accelerator = torch_says(monkeypatch, SEEN % (cuda, mps, built, "true"))
    assert said in accelerator.finding
    assert accelerator.well and bool(accelerator.repair) == repaired


def test_a_torch_that_multiplies_wrongly_is_told(monkeypatch):
    sign, _ = torch_says(monkeypatch, SEEN % ("[]", "false", "null", "false"))
    assert not sign.well


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path):
    sign = doctor._writable(tmp_path / "nowhere")
    assert "can't be written to" in sign.finding and sign.repair


def test_a_kernel_of_another_python_is_told(monkeypatch):
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

    other = KernelSpec(argv=["/opt/other/bin/python", "-m", "ipykernel_launcher"], display_name="x", language="python")
    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", lambda self, name: other)
    sign = doctor._kernel()
    assert "/opt/other/bin/python" in sign.finding and "ipykernel install" in sign.repair


def test_the_version_and_the_lessons_are_told(monkeypatch, capsys):
    monkeypatch.setattr(open_course(), "lessons", lambda: ("00_lookup", "03_torch"))
    assert doctor._lessons().finding.endswith(", lessons 00, 03 with 4 exercises")
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"grader {open_course().edition()}\n"
    monkeypatch.setattr(open_course(), "lessons", tuple)
    assert "nothing is judged" in doctor._lessons().finding


def test_lessons_that_need_no_torch_do_not_miss_it(monkeypatch, tmp_path):
    """A hand-out asks for it where its lessons do."""
    monkeypatch.setattr(doctor, "installed", lambda name: False)
    monkeypatch.setattr(doctor, "_in_checkout", lambda: False)
    monkeypatch.setattr(doctor, "requires", lambda name: ["numpy>=1.26", "torch>=2.4"])
    assert signs(tmp_path)["torch"].well, "the course's own wheel leaves it to an extra"
    monkeypatch.setattr(doctor, "version", lambda name: "0.1.0+c4f1a90b2")
    assert not signs(tmp_path)["torch"].well
    monkeypatch.setattr(open_course(), "lessons", lambda: ("00_lookup", "02_logs"))
    assert signs(tmp_path)["torch"].finding == "not installed, and not needed for these lessons"


def test_what_a_single_lesson_needs_is_told_and_is_no_illness(monkeypatch, tmp_path):
    course = small.install(monkeypatch, tmp_path)
    assert not list(doctor._extras())
    lesson = replace(small.LESSON, exercises=(replace(small.EXERCISE, libraries=("numpy", "triton")),))
    monkeypatch.setattr(course, "lesson", lambda name: lesson)
    monkeypatch.setattr(doctor, "installed", lambda name: name != "triton")
    here, sign = sorted(doctor._extras(), key=lambda sign: sign.subject)
    assert (here.subject, here.finding) == ("numpy", version("numpy")) and here.well and not here.repair
    assert (
        sign.subject == "triton"
        and sign.well
        and sign.finding == "not installed; lesson 01 cannot be checked"
        and "triton" in sign.repair
    )


@pytest.mark.parametrize(
    "level, lacking, told, noted",
    [
        ("full", remark(""), "", False),
        (
            "process",
            remark("landlock"),
            "its kernel has no Landlock, which Linux has from 5.13 on, or has switched it off",
            True,
        ),
    ],
)
def test_the_isolation_is_told_for_people_and_for_scripts(monkeypatch, capsys, level, lacking, told, noted):
    monkeypatch.setattr(doctor, "isolation", lambda: (level, lacking))
    sign = doctor._isolation()
    assert sign.finding.endswith(told or "this computer's files")
    assert sign.finding.startswith(f"{level}: ") and sign.well and bool(sign.repair) == noted
    assert main(["doctor", "--isolation"]) == 0
    assert tuple(capsys.readouterr()) == (f"{level}\n", f"grader: {level}: {told}.\n" if told else "")


def test_where_no_worker_starts_the_course_still_runs(monkeypatch, capsys):
    def broken():
        raise SandboxError("no process could be started")

    monkeypatch.setattr(doctor, "isolation", broken)
    sign = doctor._isolation()
    assert "no process could be started" in sign.finding and sign.well and sign.repair
    assert main(["doctor", "--isolation"]) == 3
    assert capsys.readouterr().out == ""
