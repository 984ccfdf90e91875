"""What a learner's notebook says before its first code: how to get the grader where the notebook is opened alone, as in Colab."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from grader.course.stubs import code_or_prose

DISTRIBUTION = "attention-course"
_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")


@cache
def address(home: Path) -> str:
    """Where the package's own repository is, by the pyproject.toml in `home` or by the installed metadata; '' while neither says so."""
    checkout = home / "pyproject.toml"
    if checkout.is_file():
        return tomllib.loads(checkout.read_text(encoding="utf-8"))["project"].get("urls", {}).get("Repository", "")
    try:
        urls = metadata.metadata(DISTRIBUTION).get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    return next((url.partition(", ")[2] for url in urls if url.startswith("Repository, ")), "")


def cells(lesson: str, torch: bool, address: str) -> list[dict[str, Any]]:
    """The two cells, with badges where the repository has an address that those services know. torch: whether the lesson needs it.

    The code is commented, so that it does nothing where the grader is there.
    """
    text = (
        "**Opened alone, as in Colab?** Then take the `#` from the next line and run it once: it installs the grader. "
        "In the course's own setup leave it as it is."
    )
    if repository := _GITHUB.fullmatch(address):
        path = f"notebooks/{lesson}.ipynb"
        colab = f"https://colab.research.google.com/github/{repository[1]}/blob/main/{path}"
        binder = f"https://mybinder.org/v2/gh/{repository[1]}/HEAD?labpath={path}"
        text += (
            f"\n\n[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({colab}) "
            f"[![Open in Binder](https://mybinder.org/badge_logo.svg)]({binder})"
        )
    requirement = f"{DISTRIBUTION}[torch]" if torch else DISTRIBUTION
    code = f'# %pip install -q "{requirement} @ git+{address}"' if address else f'# %pip install -q "{requirement}"'
    return [
        code_or_prose("opened-alone", text, {"grader": {"role": "prose"}}, True),
        code_or_prose("install", code, {"grader": {"role": "demo"}}, False),
    ]
