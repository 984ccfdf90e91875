"""`make` in the checkout: what it tells, and what it would run."""

from __future__ import annotations

import subprocess

from tests.conftest import ROOT


def test_make_knows_what_a_learner_needs_and_resets_nothing_unasked(tmp_path):
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True).stdout
    for target in ("progress", "reset", "update", "doctor", "grade"):
        assert f"make {target}" in told
        planned = subprocess.run(
            ["make", "-n", "-o", ".venv/.lab", target, "WHAT=softmax_rows"], cwd=ROOT, capture_output=True, text=True
        )
        assert planned.returncode == 0 and f"grader {target}" in planned.stdout, planned.stderr
    lab = subprocess.run(
        ["make", "-n", "-o", ".venv/.lab", "lab", "FOLDER=mine"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert f'ATTENTION_COURSE_FOLDER="{ROOT}/mine"' in lab
    assert 'PATH="' in lab and "shell_command=" in lab  # no login shell, which would set the path anew
    reset = ["make", "-o", ".venv/.lab", "reset", f"FOLDER={tmp_path / 'mine'}"]  # which make fills first
    unasked = subprocess.run(reset, cwd=ROOT, capture_output=True, text=True)
    assert unasked.returncode == 2 and "make reset WHAT=softmax_rows puts one exercise back" in unasked.stdout
