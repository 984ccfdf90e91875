"""Run by test_alone.py where a learner's notebook lies alone: runs the file named first in a kernel of this Python, into the second."""

from __future__ import annotations

import sys
from pathlib import Path

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # see import_nbformat in grader/util/libraries.py

import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(
    notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(Path.cwd())}}
).execute()
nbformat.write(notebook, sys.argv[2])
