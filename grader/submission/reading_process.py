"""The process that reads strangers' files, so that what a file does to a parser costs its learner alone.

Run by its path: `python -I -B reading_process.py warm FD …` is a parent that never holds a stranger's bytes and forks a process
for each learner, as worker/warm.py does (Linux); `reading_process.py worker FD|share …` is one such process, begun afresh.
It runs nothing of theirs, and knows no answer. A message is framed as worker/protocol.py does it, without arrays.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from grader.submission.archives import Archive, Quota
from grader.submission.ipynb import Notebook, Unreadable
from grader.submission.plan import Given, LocalReader, Pristine
from grader.util.records import decoded, encoded
from grader.worker import limits, protocol

_reader = LocalReader()
_archives: dict[str, Archive] = {}  # of this process's learner
_size_at_start = 0  # bytes of the address space when the first question came


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """What is said to one question; see reader.py."""
    try:
        return {message["do"]: _answer(message)}
    except Unreadable as error:
        return {"unreadable": [error.summary, str(error)]}
    except RecursionError:
        return {"lost": "deep"}
    except MemoryError:
        # Where half of what this process may take was left, the machine lacks memory; no file took it.
        early = sys.platform == "linux" and limits.address_space("VmPeak") - _size_at_start < message["limits"][0] // 2
        return {"lost": "machine" if early else "memory"}


def _answer(message: dict[str, Any]) -> Any:
    if message["do"] == "notebook":
        return _reader.notebook(Path(message["path"]), Path(message["base"]))
    if message["do"] == "plan":
        return _reader.plan(decoded(Pristine, message["pristine"]), decoded(Notebook, message["notebook"]))
    if message["do"] == "sources":
        return _reader.sources(message["cells"], message["rules"], decoded(Given, message["given"]))
    path = message["path"]
    if path not in _archives:
        _archives[path] = Archive(path, Quota(*message["quota"]))
    archive = _archives[path]
    if message["do"] == "member":
        return archive.copy(message["at"], message["into"])
    with open(message["into"], "w", encoding="ascii") as file:  # since the list may be longer than a reply
        json.dump([archive.entries, archive.refusals, sorted(archive.checkouts)], file)
    return len(archive.entries)


def allow(cpu_s: int) -> None:
    """So many seconds more of the processor; then the system ends this process, also when nobody else is there to do it."""
    limits.set_limit("RLIMIT_CPU", limits.used_cpu_s() + 1 + cpu_s, grace=None)


def serve(channel: socket.socket) -> None:
    """Answers what is asked about one learner's files, until nobody asks any more. The first question sets the memory."""
    global _size_at_start
    with suppress(EOFError):
        while True:
            body, nonce = protocol.receive_body(channel.recv)
            message = json.loads(body.text)
            memory_bytes, cpu_s = message["limits"]
            if not _size_at_start:
                _size_at_start = limits.address_space("VmSize") if sys.platform == "linux" else 1
                limits.limit_memory(memory_bytes)
            allow(cpu_s)
            reply = json.dumps(encoded(answer(message)), ensure_ascii=False)
            text = reply.encode("utf-8", "surrogatepass")
            if len(text) > protocol.MAX_JSON_BYTES:
                text = b'{"lost": "large"}'
            channel.sendall(protocol.frame(protocol.Body(text, b""), nonce))


def main(arguments: list[str]) -> None:
    import grader.source.policy  # noqa: F401  with NumPy: what `sources` needs, once for all that are forked

    role, descriptor = arguments[:2]
    if role == "warm":
        from grader.worker import warm

        gc.freeze()  # a collection in a forked process then leaves these pages shared
        warm.live(socket.socket(fileno=int(descriptor)), serve)
    else:
        serve(protocol.connect(descriptor))


if __name__ == "__main__":
    main(sys.argv[1:])
