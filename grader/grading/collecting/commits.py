"""When the last commit of a checkout was made, read without trusting the checkout: none of its settings or hooks is looked at."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from grader.util import links

PATIENCE_S = 10
MOST_BYTES = 1 << 20  # of a file that names commits
_COMMIT = re.compile(r"[0-9a-f]{40}")
_COMMITTER = re.compile(rb"^committer .*> (\d{1,11}) [+-]\d{4}$", re.MULTILINE)


def committed(checkout: Path, top: Path) -> str:
    """In UTC, by the committer's own clock; '' where it isn't known. top: the folder below which no link is followed."""
    try:
        commit, folder = _head(checkout / ".git", top), checkout / ".git" / "objects"
        if not _COMMIT.fullmatch(commit) or links.first(folder, top) is not None:
            return ""
        with tempfile.TemporaryDirectory() as own:  # a repository of ours, with the objects of theirs
            for name in ("objects", "refs"):
                Path(own, name).mkdir()
            Path(own, "HEAD").write_text("ref: refs/heads/none\n")
            environment = {
                "PATH": os.environ.get("PATH", ""),
                "GIT_DIR": own,
                "GIT_OBJECT_DIRECTORY": str(folder.resolve()),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
            }
            command = ["git", "cat-file", "commit", commit]
            made = subprocess.run(command, env=environment, capture_output=True, timeout=PATIENCE_S, check=True).stdout
        found = _COMMITTER.search(made.partition(b"\n\n")[0])
        return datetime.fromtimestamp(int(found[1]), UTC).isoformat(" ") if found else ""
    except (OSError, subprocess.SubprocessError, ValueError, OverflowError):
        return ""


def _head(git: Path, top: Path) -> str:
    """The digest of the commit that is checked out."""
    said = _text(git / "HEAD", top)
    name = said.removeprefix("ref: ")
    if name == said or not re.fullmatch(r"refs/[\w./-]+", name) or ".." in name:
        return said
    with suppress(OSError):
        return _text(git.joinpath(*name.split("/")), top)
    packed = re.search(rf"^([0-9a-f]{{40}}) {re.escape(name)}$", _text(git / "packed-refs", top), re.MULTILINE)
    return packed[1] if packed else ""


def _text(path: Path, top: Path) -> str:
    return (links.read(path, top, MOST_BYTES).data or b"").decode("ascii", "replace").strip()
