"""Where lessons keep what they trained; there is no record of progress where nothing is judged."""

from __future__ import annotations

from pathlib import Path


def default_path() -> Path:
    """Beside the notebooks."""
    return Path.cwd() / ".attention-course" / "progress.json"
