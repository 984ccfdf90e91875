"""Libraries are imported in no more than the time they need."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT

QUICK = """
import sys
from grader.util import libraries
nbformat = libraries.import_nbformat()
nbformat.validate({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
print("jsonschema" in sys.modules, "lark" in sys.modules, "rfc3987_syntax" in sys.modules)
"""


def test_nbformat_is_imported_without_grammars_of_web_addresses():
    """Which stay importable for whoever asks for them later."""
    done = subprocess.run([sys.executable, "-c", QUICK], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stdout == "True False False\n", done.stderr
