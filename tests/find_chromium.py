"""Which browser the test of JupyterLab drives; run as a script, says so before any test begins."""

from __future__ import annotations

import os
import shutil
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WINDOWS = tuple(
    rf"{os.environ.get(name)}\Google\Chrome\Application\chrome.exe"
    for name in ("ProgramFiles", "ProgramFiles(x86)", "LOCALAPPDATA")
)
MAC = tuple(f"/Applications/{name}.app/Contents/MacOS/{name}" for name in ("Chromium", "Google Chrome"))
ADVICE = (
    "make test drives JupyterLab in Chromium, and none was found. Install one (Debian: sudo apt install chromium; "
    "macOS: brew install --cask chromium), or name one: CHROMIUM=/path/to/chromium make test"
)


def find_chromium() -> str | None:
    """The path of a browser: $CHROMIUM, else the first that is installed; None for none."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named if os.access(named, os.X_OK) else None
    return next(
        (path for path in (*map(shutil.which, NAMES), *MAC, *WINDOWS) if path and os.access(path, os.X_OK)), None
    )


if __name__ == "__main__":
    sys.exit(None if find_chromium() else ADVICE)
