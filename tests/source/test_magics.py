"""What becomes of magics and shell commands."""

from __future__ import annotations

import time

import pytest

from grader.source.magics import without_magics

CASES = {
    "x = 1": "x = 1",
    "%matplotlib inline\nx = 1": "pass\nx = 1",
    "!pip install torch\nx = 1": "pass\nx = 1",
    "if True:\n    !ls\n    x = 1": "if True:\n    pass\n    x = 1",
    "files = !ls *.py\nx = 1": "files = None\nx = 1",
    "t = %timeit -o f()\n": "t = None\n",
    "%time x = f(3)": "x = f(3)",
    "np.sum?\nx = 1": "pass\nx = 1",
    "?np.sum": "pass",
    "np.sum??": "pass",
    "np.*sum*?\nx = 1": "pass\nx = 1",
    "%%time\nx = 1": "\nx = 1",
    "%%capture out\n%cd x\nx = 1": "\npass\nx = 1",
    "\n%%capture out -n 3\nx = 1": "\nx = 1",
    "\n%%timeit -n 3\nx = 1": "",  # it binds x in a function of its own
    "%%bash\nrm -rf /": "",
    "%%html\n<b>": "",
    "!tar \\\n  -x \\\n  file\nx = 1": "pass\n\n\nx = 1",
    "x = (7\n % 4)\n%cd y": "x = (7\n % 4)\npass",
    "text = '''\n%not a magic\n'''\n%magic": "text = '''\n%not a magic\n'''\npass",
    "x = 7 % 4  # why?": "x = 7 % 4  # why?",
    "s = '(' # [\n%magic": "s = '(' # [\npass",
    "s = 'it\\'s (\n%m": "s = 'it\\'s (\npass",
    "s = 'a\\\n%m": "s = 'a\\\n%m",
    "x = 7 \\\n % 4\n%cd y": "x = 7 \\\n % 4\npass",
    "x = 7  # \\\n%cd y": "x = 7  # \\\npass",
    "\n    def f(x):\n        return x\n\n    y = 1": "\ndef f(x):\n    return x\n\ny = 1",
    "  %%time\n  x = 1": "\nx = 1",
    "  %cd y\n  x = 1": "pass\nx = 1",
    "s = \"'\" + '(\\'' # (\n%m": "s = \"'\" + '(\\'' # (\npass",
    "x != 3\n%m": "x != 3\npass",
    "def f(:\n    return": "def f(:\n    return",
}


@pytest.mark.parametrize("text", CASES)
def test_magics(text):
    assert without_magics(text) == CASES[text]


@pytest.mark.parametrize(
    "line", ["'" + "\\'" * 200_000, '"' * 400_000, "'\"" * 200_000, "\\" * 400_000, "f('" * 100_000]
)
def test_a_long_line_takes_a_time_in_proportion(line):
    started = time.process_time()
    assert without_magics(f"{line}\n(").endswith("\n(")
    assert time.process_time() - started < 2


def test_python_is_never_changed():
    text = "x = 10\ny = x \\\n% 3\nz = '''\n!not a command\n'''\n"
    assert without_magics(text) == text
