"""Has strangers' notebooks read by a process of its own, against the clock and with limited memory.

Python's parsers can be made to take all time and memory, or to crash; what does so costs its learner alone. The process
is kept from one notebook to the next, and replaced where it had to be ended.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.course import registry
from grader.sandbox.process import SandboxError, SpawnedWorker, WorkerLost, start_interpreter
from grader.sandbox.scratch import new_folder, remove_folder
from grader.submission.ipynb import Notebook, NotebookCell, Unreadable, printable
from grader.submission.plan import Plan, Pristine, RunCell
from grader.submission.reads import Rules
from grader.worker import protocol

if TYPE_CHECKING:
    from grader.source.policy import Offence
    from grader.source.slips import Slip
    from grader.submission.reads import SourceFindings

PROGRAM = Path(__file__).resolve().parents[1] / "submission" / "reading_process.py"
CPU_S = 10  # of the processor, for one question; a solved lesson takes a twentieth of a second
WALL_S = 30.0  # for one question, on a machine that does other things, too
LEARNER_S = 60.0  # for all that is asked about one learner's notebooks
MEMORY_BYTES = 1 << 30
_MEND = "Its code is too long or nested too deeply: take out what no answer needs, and keep data in files."


def _why(lost: str) -> str:
    return {
        "memory": f"more than {MEMORY_BYTES >> 20} MB of memory would be needed to read it",
        "large": "there is too much in it",
        "deep": "it is nested too deeply to be read",
        "timeout": f"reading it takes longer than {CPU_S} s",
    }.get(lost, "the process that was to read it ended")


class _Process(SpawnedWorker):
    """One process that reads. It starts nothing and writes nothing."""

    def __init__(self, folder: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            handed = "share" if sys.platform == "win32" else str(theirs.fileno())
            arguments = [handed, str(MEMORY_BYTES), str(CPU_S)]
            process = start_interpreter(arguments, folder, theirs, PROGRAM)
            if handed == "share":
                shared = theirs.share(process.pid)  # type: ignore[attr-defined]
                assert process.stdin is not None
                process.stdin.write(len(shared).to_bytes(4, "big") + shared)
                process.stdin.close()
        super().__init__(process, ours, MEMORY_BYTES, "")
        self.guard()

    @property
    def used_up_its_time(self) -> bool:
        """Whether the system ended it for that, once it has ended."""
        return self._process.returncode == -getattr(signal, "SIGXCPU", 0)

    def _end(self) -> None:
        self._channel.close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Reader:
    """Reads as reads.Reads says. A context manager; the process starts at once and is ready when it is asked."""

    def __init__(self) -> None:
        self._folder = new_folder()
        self._process: _Process | None = _Process(self._folder)
        self._left_s = LEARNER_S

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.close()
            self._process = None
        remove_folder(self._folder)

    def begin(self) -> None:
        """Another learner's notebooks follow: they have the whole time."""
        self._left_s = LEARNER_S

    def notebook(self, path: Path, base: Path) -> Notebook:
        """The notebook of a file, with the names that its cells bind; no link below `base` is followed. Raises: Unreadable."""
        file, cells, lesson, notes, defines = self._ask(
            {"do": "notebook", "path": str(path.absolute()), "base": str(base.absolute())}, path.name
        )["notebook"]
        return Notebook(file, tuple(NotebookCell(*cell) for cell in cells), lesson, tuple(notes), frozenset(defines))

    def plan(self, pristine: Pristine, notebook: Notebook) -> Plan:
        """What to run of a notebook. Raises: Unreadable."""
        cells = [list(vars(cell).values()) for cell in notebook.cells]
        theirs = {"file": notebook.file, "cells": cells, "lesson": notebook.lesson, "notes": notebook.notes}
        reply = self._ask({"do": "plan", "pristine": pristine.plain(), "notebook": theirs}, notebook.file)
        lesson, exercises, run, owners, absent, notes, handed_in = reply["plan"]
        return Plan(lesson, tuple(exercises), tuple(RunCell(*cell) for cell in run), owners, absent, tuple(notes), handed_in)

    def sources(self, cells: Sequence[str], rules: Rules) -> dict[str, SourceFindings]:
        """For each exercise the first offence in the code that it reaches, and what beginners let slip in it.

        That it cannot be read is an offence where there are rules.
        """
        from grader.source.policy import Offence, too_long
        from grader.source.slips import Slip

        try:
            found = self._ask({"do": "sources", "cells": cells, "rules": rules, "given": registry.GIVEN}, "the notebook")["sources"]
        except Unreadable:
            return {name: (too_long(*rule), ()) for name, rule in rules.items()}
        return {
            name: (None if offence is None else Offence(*offence), tuple(Slip(*slip) for slip in slips))
            for name, (offence, slips) in found.items()
        }

    def _ask(self, message: dict[str, Any], file: str) -> dict[str, Any]:
        """Raises: Unreadable where it takes too much; SandboxError where no process can be started."""
        file = printable(file)
        if self._left_s <= 0:
            raise Unreadable(f"{file} was not read, because the files handed in with it took too long to read.", _MEND)
        body = protocol.Body(json.dumps(message, ensure_ascii=False, default=list).encode("utf-8", "surrogatepass"), b"")
        reply = self._reply(body)
        if reply.get("lost") == "died":  # perhaps somebody else ended it
            reply = self._reply(body)
        if "lost" in reply:
            raise Unreadable(f"{file} cannot be read: {_why(reply['lost'])}.", _MEND)
        if "unreadable" in reply:
            what, told = reply["unreadable"]
            raise Unreadable(what, told.removeprefix(f"{what} "))
        return reply

    def _reply(self, body: protocol.Body) -> dict[str, Any]:
        """What the process says, or why it says nothing: 'lost', see _why()."""
        started = time.monotonic()
        try:
            if self._process is None:
                self._process = _Process(self._folder)
            return json.loads(next(self._process.replies(body, 1, max(min(WALL_S, self._left_s), 0.001))).text)
        except OSError as error:
            raise SandboxError(f"no process to read in could be started: {error}") from error
        except WorkerLost as lost:
            assert self._process is not None
            late = lost.kind == "timeout" or self._process.used_up_its_time
            self._process = None
            return {"lost": "timeout" if late else "memory" if lost.kind == "memory" else "died"}
        finally:
            self._left_s -= time.monotonic() - started


class SourcesApart:
    """A notebook's code as the judge asks about it; it is read for all exercises at once, when the first is judged."""

    def __init__(self, reader: Reader, cells: Sequence[str], rules: Rules) -> None:
        self._asked = reader, cells, rules
        self._found: dict[str, SourceFindings] | None = None

    def offence(self, name: str, forbids: tuple[str, ...], requires: tuple[str, ...]) -> Offence | None:
        """The first offence in the code that an exercise reaches."""
        return self._of(name)[0]

    def slips(self, name: str) -> tuple[Slip, ...]:
        """What beginners let slip, of the definition of that name."""
        return self._of(name)[1]

    def _of(self, name: str) -> SourceFindings:
        if self._found is None:
            reader, cells, rules = self._asked
            self._found = reader.sources(cells, rules)
        return self._found[name]
