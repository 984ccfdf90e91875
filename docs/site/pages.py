"""Lays out the pages of the site: the repository's own files under new paths, with links that fit.

    README.md → index                     notebooks/glossary.md → lessons/glossary
    solutions/NN_lesson.ipynb → lessons/NN_lesson, solutions folded, each below its stub
    docs/*.md, docs/teaching/*.md → the same, without docs/

A link to a file that has a page leads to that page; to a picture, which is copied; to anything else in the repository, to its
address there, and where none is known it is words without a link.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PICTURES = (".png", ".svg", ".jpg", ".gif")
DOWNLOADS = "learner"  # the notebooks to work in, beside the pages
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
_FENCED = re.compile(r"(^ *```.*?^ *```[^\n]*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


class Stale(Exception):
    """What lies in the repository does not fit together; the message says what to run."""


def pages() -> dict[str, str]:
    """Where each file of the repository that has a page lies on the site: 'docs/instructors.md' → 'instructors.md'."""
    found = {
        "README.md": "index.md",
        "CONTRIBUTING.md": "contributing.md",
        "CHANGELOG.md": "changelog.md",
        "notebooks/glossary.md": "lessons/glossary.md",
    }
    for path in sorted((ROOT / "docs").glob("*.md")):
        found[f"docs/{path.name}"] = path.name
    for path in sorted((ROOT / "docs" / "teaching").glob("*.md")):
        found[f"docs/teaching/{path.name}"] = f"teaching/{'index.md' if path.name == 'README.md' else path.name}"
    for name in lessons():
        found[f"solutions/{name}.ipynb"] = f"lessons/{name}.ipynb"
    return found


def lessons() -> list[str]:
    return sorted(path.stem for path in (ROOT / "solutions").glob("[0-9][0-9]_*.ipynb"))


def lay_out(place: Path) -> None:
    """Writes the source of every page into a new folder."""
    shutil.rmtree(place, ignore_errors=True)
    for source, page in pages().items():
        path = place / page
        path.parent.mkdir(parents=True, exist_ok=True)
        if page.endswith(".ipynb"):
            path.write_text(json.dumps(_lesson(path.stem, source, page, place)), encoding="utf-8")
        else:
            text = _relinked((ROOT / source).read_text(encoding="utf-8"), source, page, place)
            path.write_text(text + (_contents() if page == "index.md" else ""), encoding="utf-8")


def _contents() -> str:
    """The order of the pages, which the sidebar, 'previous' and 'next' follow."""
    named = list(pages().values())
    teaching = [page for page in named if page.startswith("teaching/") and page != "teaching/index.md"]
    own = sorted(
        {PurePosixPath(page).name for source, page in pages().items() if source.startswith("docs/") and "/" not in page}
    )
    parts = (
        ("Lessons", [f"lessons/{name}" for name in lessons()] + ["lessons/glossary"]),
        ("Teaching", [*own, "teaching/index", *teaching]),
        ("The project", ["contributing", "changelog"]),
    )
    return "".join(_toctree(caption, [entry.removesuffix(".md") for entry in entries]) for caption, entries in parts)


def _toctree(caption: str, entries: list[str]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *entries, "```", ""])


def _lesson(name: str, source: str, page: str, place: Path) -> dict[str, Any]:
    """A lesson's executed notebook as a page: each solution folded below the stub that a learner finds in its place."""
    notebook = json.loads((ROOT / source).read_text(encoding="utf-8"))
    learner = ROOT / "notebooks" / f"{name}.ipynb"
    stubs = {cell["id"]: cell for cell in json.loads(learner.read_text(encoding="utf-8"))["cells"]}
    (place / DOWNLOADS).mkdir(exist_ok=True)
    shutil.copy(learner, place / DOWNLOADS)
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = _relinked("".join(cell["source"]), source, page, place)
            cells.append({**cell, "source": text})
            if len(cells) == 1:
                cells.append(
                    _said(
                        f"*This page shows the lesson solved and run, its solutions folded. To work on it, download the "
                        f"{{download}}`notebook <../{DOWNLOADS}/{name}.ipynb>`.*"
                    )
                )
        else:
            if cell["metadata"]["grader"]["role"] == "exercise":
                if cell["id"] not in stubs:
                    raise Stale(
                        f"notebooks/{name}.ipynb is not what {source} was built with; run `grader build {name[:2]}`."
                    )
                cells.append({**stubs[cell["id"]], "id": f"stub-{cell['id']}"[:64]})
                cell = _folded(cell)
            cells.append({**cell, "outputs": [_shown(output) for output in cell["outputs"]]})
    return {**notebook, "cells": [cell for cell in cells if cell["id"] != "way"]}


def _said(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": "work-on-it", "metadata": {}, "source": text}


def _shown(output: dict[str, Any]) -> dict[str, Any]:
    """An output whose links to other notebooks, as those of progress(), lead to their pages."""
    if "text/html" not in output.get("data", {}):
        return output
    page = re.sub(
        r' href="(\w+)\.ipynb"',
        lambda link: f' href="{link[1]}.html"' if link[1] in lessons() else "",
        "".join(output["data"]["text/html"]),
    )
    return {**output, "data": {**output["data"], "text/html": page}}


def _folded(cell: dict[str, Any]) -> dict[str, Any]:
    name = cell["metadata"]["grader"]["exercise"]
    prompts = {
        "code_prompt_show": f"The course's solution of {name}",
        "code_prompt_hide": f"The course's solution of {name}",
    }
    return {**cell, "metadata": {**cell["metadata"], "tags": ["hide-input"], "mystnb": prompts}}


def _relinked(text: str, source: str, page: str, place: Path) -> str:
    """Markdown whose links fit the site. Code is left as it is."""
    parts = _FENCED.split(text)
    parts[::2] = [_LINK.sub(lambda link: _link(link, source, page, place), part) for part in parts[::2]]
    return "".join(parts)


def _link(link: re.Match[str], source: str, page: str, place: Path) -> str:
    path, _, anchor = link["target"].partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return link[0]
    there = os.path.normpath(os.path.join(os.path.dirname(source), path)).replace(os.sep, "/")
    target = pages().get(there) or pages().get(there.replace("notebooks/", "solutions/"))
    if not target and there.startswith("solutions/") and there.endswith("glossary.md"):  # as a lesson beside it has it
        target = "lessons/glossary.md"
    if target:
        return f"{link['image']}[{link['text']}]({_relative(target, page)}{f'#{anchor}' if anchor else ''})"
    if there.endswith(PICTURES):
        (place / "pictures").mkdir(exist_ok=True)
        shutil.copy(ROOT / there, place / "pictures")
        return f"{link['image']}[{link['text']}]({_relative(f'pictures/{PurePosixPath(there).name}', page)})"
    address = _repository()
    return f"[{link['text']}]({address}/blob/HEAD/{there})" if address else link["text"]


def _relative(target: str, page: str) -> str:
    return os.path.relpath(target, os.path.dirname(page) or ".").replace(os.sep, "/")


def _repository() -> str:
    """The repository's address, as pyproject.toml says it; '' while it says none."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    return next((url.rstrip("/") for name, url in urls.items() if name.lower() in ("repository", "source")), "")


def terms() -> Iterator[str]:
    """The terms that the glossary explains, as they stand there: 'ALiBi', 'logits'."""
    text = (ROOT / "notebooks" / "glossary.md").read_text(encoding="utf-8").partition("## Terms")[2]
    yield from re.findall(r"^\*\*([^*]+)\*\*", text, re.MULTILINE)
