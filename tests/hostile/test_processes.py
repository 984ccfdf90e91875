"""Attacks on the promise that a submission starts, signals and reaches nothing, and that nothing outlives it."""

from __future__ import annotations

import pytest

from tests.hostile.attack import RETURN_X, bystanders, earns, verdicts

LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
# What refuses raises or returns an error; `double` then returns its input, which is wrong.
ATTACKS = {
    "fork bomb": "import os\ndef double(x):\n    while True:\n        os.fork()",
    "fork bomb in a cell": "import os\nfor _ in range(1000):\n    try: os.fork()\n    except OSError: pass" + RETURN_X,
    "fork bomb through ctypes": LIBC + "for _ in range(1000): libc.fork(); libc.vfork()" + RETURN_X,
    "clone3 by its number": LIBC
    + "for _ in range(50): libc.syscall(435, ctypes.create_string_buffer(88), 88)"
    + RETURN_X,
    "multiprocessing": "import multiprocessing as m\ndef double(x):\n    return m.get_context('fork').Pool(2).map(abs, [1])",
    "subprocess": "import subprocess\ndef double(x):\n    return subprocess.run(['sleep', '60'])",
    "os.system": "import os\nos.system('sleep 60 &')" + RETURN_X,
    "exec in place": "import os, sys\ndef double(x): os.execv(sys.executable, ['python', '-c', 'while True: pass'])",
    "posix_spawn": "import os\ndef double(x): os.posix_spawn('/bin/sleep', ['sleep', '60'], {})",
    "setsid and a daemon": "import os\nos.setsid() if os.getpgrp() != os.getpid() else None\nif os.fork() == 0: os.execlp('sleep', 'sleep', '60')"
    + RETURN_X,
    "threads that go on": "import threading\ndef spin():\n    while True: pass\n[threading.Thread(target=spin).start() for _ in range(2)]"
    + RETURN_X,
    "a thread for every process": "import threading, time\ndef double(x):\n    for _ in range(5000): threading.Thread(target=time.sleep, args=(60,)).start()\n    return x",
    "atexit": "import atexit, time\natexit.register(time.sleep, 60)" + RETURN_X,
    "kill the parent": "import os, signal\ndef double(x):\n    os.kill(os.getppid(), signal.SIGKILL); return x",
    "kill everybody": "import os\ndef double(x):\n    os.kill(-1, 9); return x",
    "kill the group": "import os\ndef double(x): os.killpg(0, 9)",
    "stop oneself": "import os, signal\ndef double(x): os.kill(os.getpid(), signal.SIGSTOP)",
    "ignore every signal": "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n    except OSError: pass\ndef double(x):\n    while True: pass",
    "outlive the parent by prctl": LIBC + "libc.prctl(1, 0)\nlibc.prctl(36, 1)\ndef double(x): raise SystemExit",
    "ptrace the parent": LIBC + "def double(x):\n    assert libc.ptrace(16, os.getppid(), 0, 0) == 0; return x",
    "pidfd_send_signal": LIBC + "def double(x):\n    fd = libc.syscall(434, os.getppid(), 0); assert fd >= 0; return x",
    "raise one's limits": "import resource\ndef double(x):\n    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)); return x",
    "unshare": LIBC + "def double(x):\n    assert libc.unshare(0x10000000) == 0; return x",
    "a socket": "import socket\ndef double(x): return socket.socket()",
    "a connection out": "import urllib.request\ndef double(x): return urllib.request.urlopen('http://192.0.2.1/')",
    "a name server": "import socket\ndef double(x): return socket.getaddrinfo('example.org', 80)",
    "a listening socket": "import socket\ndef double(x): return socket.create_server(('127.0.0.1', 0))",
    "io_uring": LIBC
    + "def double(x):\n    assert libc.syscall(425, 4, ctypes.create_string_buffer(128)) >= 0; return x",
    "a queue of messages": LIBC + "def double(x):\n    return 2 * x if libc.msgget(7, 0o1666) >= 0 else x",
    "a semaphore": LIBC + "def double(x):\n    return 2 * x if libc.semget(7, 1, 0o1666) >= 0 else x",
    "the kernel's log": LIBC
    + "def double(x):\n    return 2 * x if libc.klogctl(3, ctypes.create_string_buffer(4096), 4096) >= 0 else x",
    "the kernel's log as a device": "import os\ndef double(x):\n    os.mknod('log', 0o20600, os.makedev(1, 11)); os.open('log', 0); return 2 * x",
    "the machine's name": LIBC
    + "def double(x):\n    return 2 * x if libc.sethostname(os.uname().nodename.encode(), 2) >= 0 else x",
    "a signal by a socket": "import fcntl, os, signal, socket, struct\na, b = socket.socketpair()\ndef double(x):\n"
    "    fcntl.ioctl(a, 0x8901, struct.pack('i', os.getppid())); a.setblocking(0)\n"
    "    fcntl.fcntl(a, 10, signal.SIGKILL); fcntl.fcntl(a, 4, 0o20000); b.send(b'x'); return 2 * x",
    "a crash in C": "import ctypes\ndef double(x): ctypes.string_at(0)",
    "a crash of the stack": "import sys\nsys.setrecursionlimit(10**9)\ndef double(x): return eval('(' * 10**5 + ')' * 10**5)",
    "a fault handler": "import faulthandler\nfaulthandler.enable(open('f', 'w'))\ndef double(x): faulthandler._sigabrt()",
}


@pytest.mark.parametrize("promise", ATTACKS)
def test_nothing_is_started_reached_or_ended(monkeypatch, tmp_path, shared, promise):
    earns(verdicts(monkeypatch, tmp_path, shared, ATTACKS[promise]), None)
    assert bystanders(shared) == []
