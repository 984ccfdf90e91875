"""Has strangers' files read by a limited process for each learner: notebooks, their code, archives.

Python's parsers can be made to take all time and memory, or to crash; what does so costs its learner alone. Where forking is safe,
the process is forked from a parent that never holds a stranger's bytes; elsewhere it is a fresh one. It ends with its learner. What
fails is tried once more in another; what then fails is the learner's own, unless it is the machine that lacks memory.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.sandbox.isolation import SandboxError
from grader.sandbox.process import Program, SpawnedWorker, Worker, WorkerLost
from grader.sandbox.scratch import new_folder, remove_folder
from grader.sandbox.zygote import Forker
from grader.submission.archives import Quota
from grader.submission.ipynb import Notebook, Unreadable
from grader.submission.plan import Given, LocalReader, Plan, Pristine, Rules
from grader.util.names import printable
from grader.util.records import decoded, encoded
from grader.worker import protocol

if TYPE_CHECKING:
    from grader.source.policy import Offence
    from grader.source.slips import Slip
    from grader.submission.plan import SourceFindings

PROGRAM = Program(path=Path(__file__).resolve().parents[1] / "submission" / "reading_process.py")
FORKS = sys.platform == "linux"
CPU_S = 10  # of the processor, for one question; a solved lesson takes a twentieth of a second
WALL_S = 30.0  # for one question, on a machine that does other things, too
LEARNER_S = 60.0  # for all that is asked about one learner's files
MEMORY_BYTES = 1 << 30  # for one learner
_HINT = "Its code is too long or nested too deeply: take out what no answer needs, and keep data in files."
_MACHINE_CAUSES = ("killed", "machine")  # what ended a process twice, and is no file's doing


class Reader(LocalReader):
    """Reads notebooks, and archives. A context manager; what it forks from starts at once and is ready when it is asked.

    patience: how many times as long everything may take; for what is a whole class's.
    """

    def __init__(self, patience: int = 1) -> None:
        self._folder = new_folder()
        self._forker = Forker(PROGRAM) if FORKS else None
        self._process: Worker | None = None
        self._patience = patience
        self._left_s = LEARNER_S * patience

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all its processes."""
        self.end()
        if self._forker is not None:
            self._forker.close()
        remove_folder(self._folder)

    def begin(self) -> None:
        """Another learner's files follow: they have a process of their own, and the whole time."""
        self.end()
        self._left_s = LEARNER_S * self._patience

    def end(self) -> None:
        """Ends the learner's process, with all that it holds; the next question begins another."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def notebook(self, path: Path, base: Path) -> Notebook:
        """The notebook of a file, with the names that its cells bind; no link below `base` is followed. Raises: Unreadable."""
        reply = self._read(path.name, do="notebook", path=str(path.absolute()), base=str(base.absolute()))
        return decoded(Notebook, reply["notebook"])

    def plan(self, pristine: Pristine, notebook: Notebook) -> Plan:
        """What to run of a notebook. Raises: Unreadable."""
        return decoded(Plan, self._read(notebook.file, do="plan", pristine=pristine, notebook=notebook)["plan"])

    def sources(self, cells: Sequence[str], rules: Rules, imports: Given) -> dict[str, SourceFindings]:
        """For each exercise the first offence in the code that it reaches, and what beginners let slip in it.

        That it cannot be read is an offence where there are rules.
        """
        from grader.source.policy import TOO_LONG, Offence
        from grader.source.slips import Slip

        try:
            findings = self._read("the notebook", do="sources", cells=cells, rules=rules, given=imports)["sources"]
        except Unreadable:
            return {name: (TOO_LONG if any(rule) else None, ()) for name, rule in rules.items()}
        return decoded(dict[str, tuple[Offence | None, tuple[Slip, ...]]], findings)

    def archive(self, path: str, quota: Quota, into: str) -> None:
        """Writes what an archive holds into a file, as JSON: see archives.Archive. Raises: Unreadable; `summary` follows a name."""
        self._unpack(do="archive", path=path, quota=quota, into=into)

    def member(self, path: str, quota: Quota, index: int, into: str) -> None:
        """Writes the archive's entry of that number into a file. Raises: as archive() does."""
        self._unpack(do="member", path=path, quota=quota, at=index, into=into)

    def _read(self, file: str, **message: Any) -> dict[str, Any]:
        """Raises: Unreadable where it takes too much; SandboxError where no process can be had."""
        file, reply = printable(file), self._ask(message)
        if "late" in reply:
            raise Unreadable(f"{file} was not read, because the files handed in with it took too long to read.", _HINT)
        if "lost" in reply:
            raise Unreadable(f"{file} cannot be read: {self._reason(reply['lost'])}.", _HINT)
        if "unreadable" in reply:
            subject, sentence = reply["unreadable"]
            raise Unreadable(subject, sentence.removeprefix(f"{subject} "))
        return reply

    def _unpack(self, **message: Any) -> None:
        reply = self._ask(message)
        if "late" in reply:
            raise Unreadable("was not read, because what was handed in with it took too long to read", "")
        if "lost" in reply:
            raise Unreadable(f"can't be read: {self._reason(reply['lost'])}", "")
        if "unreadable" in reply:
            raise Unreadable(reply["unreadable"][0], "")

    def _reason(self, cause: str) -> str:
        return {
            "memory": f"more than {MEMORY_BYTES >> 20} MB of memory would be needed to read it",
            "large": "there is too much in it",
            "deep": "it is nested too deeply to be read",
            "timeout": f"reading it takes longer than {CPU_S * self._patience} s",
        }.get(cause, "the process that was to read it ended")

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer; 'lost' where there is none, see _reason(); 'late' where the learner's time is over. Raises: SandboxError."""
        if self._left_s <= 0:
            return {"late": True}
        message["limits"] = MEMORY_BYTES, CPU_S * self._patience
        text = json.dumps(encoded(message), ensure_ascii=False)
        body = protocol.Body(text.encode("utf-8", "surrogatepass"), b"")
        reply = self._reply(body)
        # By what the learner's other files left there, or from outside.
        if reply.get("lost") in ("died", "memory", *_MACHINE_CAUSES):
            self.end()
            reply = self._reply(body)
        if reply.get("lost") in _MACHINE_CAUSES:
            raise SandboxError("this computer lacks the memory to read the files")
        return reply

    def _reply(self, body: protocol.Body) -> dict[str, Any]:
        """What the process says, or why it says nothing: 'lost', see _reason()."""
        start_s = time.monotonic()
        try:
            if self._process is None:
                self._process = self._start()
            timeout_s = max(min(WALL_S * self._patience, self._left_s), 0.001)
            return json.loads(next(self._process.replies(body, 1, timeout_s)).text)
        except OSError as error:
            raise SandboxError(f"no process to read in could be started: {error}") from error
        except WorkerLost as error:
            assert self._process is not None
            status, self._process = self._process.status, None
            if error.kind in ("timeout", "memory"):
                return {"lost": error.kind}
            signals = {-getattr(signal, "SIGXCPU", 0): "timeout", -getattr(signal, "SIGKILL", 0): "killed"}
            return {"lost": signals.get(status or 1, "died")}
        finally:
            self._left_s -= time.monotonic() - start_s

    def _start(self) -> Worker:
        if self._forker is not None:
            process: Worker = self._forker.fork(MEMORY_BYTES)
        else:
            process = SpawnedWorker(PROGRAM, self._folder, MEMORY_BYTES)
        process.guard()
        return process


class RemoteSources:
    """A notebook's code as the judge asks about it; it is read for all exercises at once, when the first is judged."""

    def __init__(self, reader: Reader, cells: Sequence[str], rules: Rules, imports: Given) -> None:
        self._findings = cache(lambda: reader.sources(cells, rules, imports))

    def offence(self, name: str, forbids: tuple[str, ...], requires: tuple[str, ...]) -> Offence | None:
        """The first offence in the code that an exercise reaches."""
        return self._findings()[name][0]

    def slips(self, name: str) -> tuple[Slip, ...]:
        """What beginners let slip, of the definition of that name."""
        return self._findings()[name][1]
