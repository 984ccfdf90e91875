"""The types hold, as `make lint` checks them: a test, so that it runs beside others."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT


def test_the_types_hold():
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
