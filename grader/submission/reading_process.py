"""The process that reads strangers' notebooks, so that what a notebook does to Python's parsers costs its learner alone.

Run by its path: `python -I -B reading_process.py FD MEMORY_BYTES CPU_S`. It runs nothing of theirs, and knows no answer.
A message is framed as worker/protocol.py does it, without arrays, since NumPy takes longer to import than a notebook to read.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from grader.submission.ipynb import Notebook, NotebookCell, Unreadable
from grader.submission.plan import Pristine
from grader.submission.reads import Here

try:
    import resource
except ImportError:  # Windows has none; there the clock and the memory are the other side's to watch
    resource = None  # type: ignore[assignment]

HEADER = struct.Struct(">20sIQ")  # magic and nonce, which go back as they came; bytes of JSON; bytes of arrays, none
MOST_BYTES = 4_000_000  # of a reply, see worker/protocol.py
_here = Here()


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """What is said to one question; see reader.py."""
    try:
        if message["do"] == "notebook":
            return {"notebook": _here.notebook(Path(message["path"]), Path(message["base"]))}
        if message["do"] == "plan":
            notebook = message["notebook"]
            cells = tuple(NotebookCell(*cell) for cell in notebook["cells"])
            read = Notebook(notebook["file"], cells, notebook["lesson"], tuple(notebook["notes"]))
            return {"plan": _here.plan(Pristine.of(*message["pristine"]), read)}
        from grader.course import registry  # with NumPy, for which the first notebook need not wait

        registry.know_given(message["given"])
        return {"sources": _here.sources(message["cells"], message["rules"])}
    except Unreadable as error:
        return {"unreadable": [error.what, str(error)]}
    except (MemoryError, RecursionError) as error:
        return {"lost": "memory" if isinstance(error, MemoryError) else "deep"}


def encoded(value: Any) -> Any:
    """A dataclass as its fields in their order; a set as a list. For json.dumps."""
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return sorted(value)


def limit(memory_bytes: int) -> None:
    """Limits the address space, where that can be done, to so much more than there is."""
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with open("/proc/self/statm", "rb") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = now + memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def allow(cpu_s: int) -> None:
    """So many seconds more of the processor; then the system ends this process, also when nobody else is there to do it."""
    if resource is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        most = int(used.ru_utime + used.ru_stime) + 1 + cpu_s
        resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def serve(stream: BinaryIO, channel: socket.socket, cpu_s: int) -> None:
    """Answers until nobody asks any more."""
    first = True
    while True:
        header = stream.read(HEADER.size)
        if len(header) < HEADER.size:
            return
        whose, size, _ = HEADER.unpack(header)
        allow(cpu_s)
        reply = json.dumps(answer(json.loads(stream.read(size))), ensure_ascii=False, default=encoded)
        text = reply.encode("utf-8", "surrogatepass")
        if len(text) > MOST_BYTES:
            text = b'{"lost": "large"}'
        channel.sendall(HEADER.pack(whose, len(text), 0) + text)
        if first:
            first = False
            import grader.source.policy  # noqa: F401  needed next, while the other side starts its workers


def main(arguments: list[str]) -> None:
    descriptor, memory_bytes, cpu_s = arguments
    if descriptor == "share":  # Windows hands a socket over as bytes, once the process is there
        size = int.from_bytes(sys.stdin.buffer.read(4), "big")
        channel = socket.fromshare(sys.stdin.buffer.read(size))  # type: ignore[attr-defined]
    else:
        channel = socket.socket(fileno=int(descriptor))
    limit(int(memory_bytes))
    serve(channel.makefile("rb"), channel, int(cpu_s))


if __name__ == "__main__":
    main(sys.argv[1:])
