"""class.toml: the options of `grader class` that hold for a whole class, in a file beside the learners' work.

Each is declared once, in options.py, and read here by the same reader as on the command line, which comes first.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from grader.cli.options import CLASS, OF_THE_CALL, Option
from grader.submission.discover import POLICY
from grader.util.errors import InputError
from grader.util.words import nearest

MOST_BYTES = 1 << 20
OPTIONS = {one.attribute: one for one in CLASS}


def fill(options: argparse.Namespace) -> dict[str, str]:
    """Sets the options that the call does not name. Returns: of each that is set, where: '--due', or 'class.toml, line 3'.

    Raises: InputError with the line for what is no setting, or none of the right kind.
    """
    kept = [name for name in OPTIONS if name not in OF_THE_CALL]
    where = {name: OPTIONS[name].flags[-1] for name in kept if getattr(options, name) is not None}
    path = options.folder / POLICY
    if path.is_file():
        for name, value, place in _settings(path):
            if name not in where:
                setattr(options, name, value)
                where[name] = place
    return where


def _settings(path: Path) -> Iterator[tuple[str, Any, str]]:
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path} is too large for a class's settings.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        table = tomllib.loads(text)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8; save it so.") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}.") from None
    lines = text.splitlines()
    for key, value in table.items():
        try:
            name = _known(key)
            setting = _read(OPTIONS[name], value)
        except (InputError, argparse.ArgumentTypeError) as error:
            quoted = re.findall(r"'[^']*'", str(error))
            inner = value.items() if isinstance(value, dict) else ()
            within = [each for each, mine in inner if repr(each) in quoted or repr(str(mine)) in quoted]
            line = _line(lines, key, *within[:1])
            stop = "" if str(error)[-1:] in ".?" else "."  # argparse's kinds of argument end in none
            raise InputError(f"{path}, line {line}: {error}{stop}") from None
        place = f"{POLICY}, line {_line(lines, key)}"
        yield name, path.parent / setting if isinstance(setting, Path) else setting, place


def _known(key: str) -> str:
    """The option of a key, with dashes or underscores. Raises: InputError with the nearest one."""
    name = key.replace("-", "_")
    if name in OF_THE_CALL:
        raise InputError(f"{key} is about one call, not about the class; give --{key.replace('_', '-')} to the command")
    if name not in OPTIONS:
        kept = [each.replace("_", "-") for each in OPTIONS if each not in OF_THE_CALL]
        near = nearest(key.replace("_", "-"), kept, f"there are {', '.join(kept)}.")
        raise InputError(f"there is no setting {key!r}{near}")
    return name


def _read(one: Option, value: Any) -> Any:
    """The value as the command line would have it. Raises: InputError, ArgumentTypeError."""
    name, switch = one.attribute.replace("_", "-"), one.details.get("action") is argparse.BooleanOptionalAction
    if switch or isinstance(value, bool):
        if switch and isinstance(value, bool):
            return value
        raise InputError(f"{name} is {'true or false' if switch else 'neither true nor false'}, not {value!r}")
    if isinstance(value, dict):
        if one.table is None:
            raise InputError(f"{name} is one value, not a table")
        return one.table(value)
    if isinstance(value, list):
        value = ",".join(map(str, value))
    text = str(value)  # of a time as '2026-11-20 23:59:00+01:00'
    choices = one.details.get("choices")
    if choices and text not in choices:
        raise InputError(f"{name} is {' or '.join(choices)}, not {text!r}")
    return one.details.get("type", str)(text)


def _line(lines: Sequence[str], key: str, within: str = "") -> int:
    """The line of a key, or of a key within its table, which tomllib does not tell; where none is seen, of its table."""

    def numbers(start: str) -> list[int]:
        pattern = re.compile(rf"\s*(\[\s*)?([\"']?){start}\2\s*[=.\]]")
        return [number for number, line in enumerate(lines, 1) if pattern.match(line)]

    first = next(iter(numbers(re.escape(key))), 1)
    below = [number for number in numbers(rf"({re.escape(key)}\.)?{re.escape(within)}") if number >= first]
    return min(below, default=first) if within else first
