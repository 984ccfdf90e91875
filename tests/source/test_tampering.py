"""What no cell may do where something is forbidden is refused in every place, as it is read or as it runs; what only looks is not."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import pytest
import torch

from grader.judging.judge import judge
from grader.source.policy import Sources
from grader.source.tampering import CLOSED_MODULES, CLOSED_NAMES, CLOSED_TORCH, OBJECT_FINDERS
from grader.worker import observe
from tests.conftest import WHOLE_GRID
from tests.live import from_cells, offence
from tests.mixing_course import COURSE

GIVEN = (*COURSE.given_names, ("F", "torch.nn.functional"))
OWN = "def attend(q, k, v):\n    w = torch.softmax(q @ k.mT, -1)\n    return w @ v, w\n"


def refused(*cells: str) -> bool:
    """Whether `attend` is, and for what the notebook does to the watch."""
    found = offence("attend", ("attention",), (), Sources(cells, GIVEN))
    return found is not None and "cannot be checked" in found.sentence


SPELLINGS = {  # {n}: the name; {a}{b}: the same in two pieces; {r}: backwards
    "by a dot": "x = display.{n}",
    "set": "display.{n} = 1",
    "getattr": "x = getattr(display, '{n}')",
    "in two pieces": "x = getattr(display, '{a}' + '{b}')",
    "by a variable": "name = '{n}'\nx = getattr(display, name)",
    "from a list": "for name in ['shape', '{n}']:\n    x = getattr(display, name)",
    "vars": "x = vars(display)['{n}']",
    "__dict__": "x = display.__dict__['{n}']",
    "operator.attrgetter": "from operator import attrgetter\nx = attrgetter('{n}')(display)",
    "attrgetter under another name": "from operator import attrgetter as get\nx = get('{a}' + '{b}')(display)",
    "methodcaller": "from operator import methodcaller\nmethodcaller('{n}')(display)",
    "an import": "from somewhere import {n} as x",
    "a pattern": "match display:\n    case object({n}=x):\n        pass",
    "text that is run": "exec('x = display.{n}')",
    "text put together": "exec('x = display.' + '{r}'[::-1])",
    "the same of builtins": "import builtins\nbuiltins.exec('x = display.' + '{r}'[::-1])",
    "eval": "x = eval('getattr(display, \"{n}\")')",
}
COMPUTED = {  # nothing in the source tells the name; what it is shows while it runs
    "in an f-string": "part = '{b}'\nx = getattr(display, f'{a}{{part}}')",
    "backwards": "x = getattr(display, '{r}'[::-1])",
    "backwards, by a variable": "name = '{r}'[::-1]\nx = getattr(display, name)",
    "joined": "x = getattr(display, ''.join(['{a}', '{b}']))",
    "formatted": "x = getattr(display, '%s{b}' % '{a}')",
    "with a default": "x = getattr(display, '{r}'[::-1], None)",
    "handed to a function": "def get(o, n):\n    return getattr(o, n)\nx = get(display, '{r}'[::-1])",
    "by another name": "look = getattr\nx = look(display, '{r}'[::-1])",
    "of builtins": "import builtins\nx = builtins.getattr(display, '{r}'[::-1])",
    "inspect.getattr_static": "import inspect\nx = inspect.getattr_static(display, '{r}'[::-1])",
    "object's own method": "x = object.__getattribute__(display, '{r}'[::-1])",
    "the object's own method": "x = display.__getattribute__('{r}'[::-1])",
    "vars, backwards": "x = vars(display)['{r}'[::-1]]",
    "__dict__, backwards": "x = display.__dict__['{r}'[::-1]]",
    "attrgetter backwards": "import operator as o\nx = o.attrgetter('{r}'[::-1])(display)",
    "set": "box = [math][0]\nsetattr(box, 'op', getattr(display, '{r}'[::-1]))\nx = box.op",
}
PLACES = {
    "a cell above": lambda text: (text, OWN),
    "a cell below": lambda text: (OWN, text),
    "a helper": lambda text: (f"def helper():\n{textwrap.indent(text, '    ')}\n    return x\nhelper()", OWN),
    "a thread": lambda text: (
        OWN,
        f"import threading\ndef work():\n{textwrap.indent(text, '    ')}\nthreading.Thread(target=work).start()",
    ),
    "the answer": lambda text: (f"def attend(q, k, v):\n{textwrap.indent(text, '    ')}\n    return q, k",),
}


def in_places(spellings: Sequence[str]) -> list[tuple[str, str]]:
    """Each spelling in one place, the next in the next, and the first in all; WHOLE_GRID=1: each in all."""
    every = list(PLACES)
    return [
        (one, place)
        for number, one in enumerate(spellings)
        for place in (every if WHOLE_GRID or not number else [every[number % len(every)]])
    ]


@pytest.mark.parametrize("spelling, place", in_places(list(SPELLINGS)))
def test_no_spelling_of_a_closed_name_passes(spelling, place):
    for name in sorted(CLOSED_NAMES):
        text = SPELLINGS[spelling].format(n=name, a=name[:4], b=name[4:], r=name[::-1])
        assert refused(*PLACES[place](text)), text


ANSWER = "def mix_torch(q, k, v, **more):\n{}\n    return x(q, q, q)"
GETTING = "import math, threading\ndef get_{kind}(display):\n{text}\n    return x\n"


def _getting(kind: str, spelling: str, name: str) -> str:
    """A function that gets something of a module by a name that is put together."""
    text = COMPUTED[spelling].format(a=name[:4], b=name[4:], r=name[::-1])
    return GETTING.format(kind=kind, text=textwrap.indent(text, "    "))


@pytest.mark.parametrize("blind", [False, True], ids=["watched", "with the profile hook taken off"])
@pytest.mark.parametrize("spelling", COMPUTED)
def test_an_operator_whose_name_is_put_together_is_seen_while_it_runs(spelling, blind):
    getting = _getting("op", spelling, "scaled_dot_product_attention")
    body = "    x = get_op([F][0])"
    if blind:
        getting += _getting("hook", spelling, "setprofile")
        body = f"    get_hook([threading][0])(None)\n{body}"
    verdict = judge(
        COURSE.exercise("mix_torch"),
        from_cells("mix_torch", getting + "from torch.nn import functional as F", ANSWER.format(body)),
    )
    assert verdict.status == "forbidden", verdict.headline
    assert verdict.headline.startswith("While it ran"), verdict.headline


@pytest.mark.parametrize(
    "putting, getting",
    [
        ("import math as m\nm.att = F.scaled_dot_product_attention", "import math\n    x = math.att"),
        (
            "def op(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)\ntorch.Tensor.att = op",
            "x = lambda q, k, v: q.att(k, v)",
        ),
    ],
    ids=["a module", "a class of torch's"],
)
def test_an_operator_that_was_put_into_a_library_is_forbidden(putting, getting, monkeypatch):
    monkeypatch.setattr(math, "att", None, raising=False)
    monkeypatch.setattr(torch.Tensor, "att", None, raising=False)
    given = "import torch\nfrom torch.nn import functional as F\n"
    verdict = judge(
        COURSE.exercise("mix_torch"), from_cells("mix_torch", given + putting, ANSWER.format(f"    {getting}"))
    )
    assert verdict.status == "forbidden", verdict.headline


@pytest.mark.parametrize(
    "spelling, place",
    in_places(
        [
            "x = torch.{n}",
            "import torch as t\nx = t.{n}",
            "from torch import {n}",
            "from torch import {n} as x",
            "import torch.{n} as x",
            "import torch.{n}",
            "from torch.{n} import y as x",
            "x = getattr(torch, '{n}')",
            "x = getattr(torch, '{a}' + '{b}')",
            "t = torch\nx = t.{n}",
            "t = torch\nu = t\nx = u.{n}.y",
            "x = vars(torch)['{n}']",
            "x = torch.__dict__['{a}' + '{b}']",
            "x = F.torch.{n}",
            "import importlib\nx = importlib.import_module('torch.{n}')",
            "import sys\nx = sys.modules['torch'].{n}",
            "import sys\nx = sys.modules['torch.{n}']",
            "import sys as s\nx = s.modules['torch'].{n}",
            "from sys import modules as ms\nx = ms['torch.{n}']",
            "from operator import attrgetter\nx = attrgetter('{n}')(torch)",
            "x = __import__('torch.{n}')",
            "if 0:\n    torch = 1\nx = torch.{n}",
            "x = eval('torch.{n}')",
        ]
    ),
)
def test_no_spelling_of_a_closed_part_of_torch_passes(spelling, place):
    for name in sorted(CLOSED_TORCH):
        text = spelling.format(n=name, a=name[:1], b=name[1:])
        assert refused(*PLACES[place](text)), text


MIX = ANSWER.replace("return x(q, q, q)", "w = (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)\n    return w @ v, w")
OFF = "    getattr(s, 'eliforptes'[::-1])(None)"
OTHER_NAMES = {  # of sys, under which reading does not find it again
    "in a list": "import sys\ns = [sys][0]",
    "handed to a function": "import sys\ns = (lambda m: m)(sys)",
    "another module's": "import os\ns = os.sys",
    "imported from another": "from os import sys as s",
    "imported by a text": "import importlib\ns = importlib.import_module('sys')",
    "from the modules": "import sys\ns = sys.modules['sys']",
}


@pytest.mark.parametrize("naming", OTHER_NAMES.values(), ids=OTHER_NAMES.keys())
def test_the_watch_that_is_switched_off_by_another_name_of_sys_is_missed(naming):
    verdict = judge(COURSE.exercise("mix_torch"), from_cells("mix_torch", naming, MIX.format(OFF)))
    assert verdict.status == "forbidden" and "the watch for forbidden operators" in verdict.headline, verdict.headline


def test_a_name_of_the_graders_that_a_cell_has_bound_to_something_else_is_seen(monkeypatch):
    monkeypatch.setattr(observe, "watching", observe.watching)  # put back at the end
    cell = (
        "import contextlib, sys\nms = sys.modules\nfor m in list(ms.values()):\n"
        f"    if getattr(m, '__name__', '') == {observe.__name__!r}:\n        m.watching = lambda *_: contextlib.nullcontext([])"
    )
    candidate = from_cells("mix_torch", cell, MIX.format(""))
    assert candidate.sources.offence("mix_torch", ("attention",), ()) is None
    verdict = judge(COURSE.exercise("mix_torch"), candidate)
    assert verdict.status == "forbidden" and "functions were replaced" in verdict.headline, verdict.headline


@pytest.mark.parametrize("place", PLACES)
def test_closed_modules_are_closed_by_every_import(place):
    for name in sorted(CLOSED_MODULES | {"grader.worker"}):
        for text in (
            f"import {name} as x",
            f"import {name}.watch as x",
            f"from {name} import y as x",
            f"import sys\nx = sys.modules['{name}.watch']",
            f"import importlib as i\nx = i.import_module('{name[:3]}' + '{name[3:]}')",
        ):
            assert refused(*PLACES[place](text)), text


@pytest.mark.parametrize("name", sorted(OBJECT_FINDERS))
def test_what_finds_objects_may_be_looked_at_and_not_used(name):
    look = f"print(len(thing.{name}))"
    assert not refused(look, OWN) and not refused(OWN, look)
    assert refused(f"found = thing.{name}", "first = found[0]", "def attend(q, k, v):\n    return first(q)")
    assert refused(OWN, f"found = thing.{name}", "for one in found:\n    one.watching = 1")
    assert refused(f"def attend(q, k, v):\n    return thing.{name}['op'](q)")


STATUS_STYLES = {
    "a frame's name and line": "f = sys._getframe(1)\nprint(f.f_code.co_name, f.f_lineno, f.f_back)",
    "a module of one's own dropped": "import sys\nfor m in [m for m in sys.modules if m.startswith('helper')]:\n    del sys.modules[m]",
    "by its items": "import sys\nfor m, _ in list(sys.modules.items()):\n    if m.startswith('helper'):\n        del sys.modules[m]",
    "by its name": "import sys\nif 'helper' in sys.modules:\n    del sys.modules['helper']\nsys.modules.pop('helper', None)",
    "reloaded": "import sys, importlib\nif 'helper' in sys.modules:\n    importlib.reload(sys.modules['helper'])",
    "a module's members listed": "import inspect\nfor name, f in inspect.getmembers(nn):\n    print(name)",
    "the same by its own name": "from inspect import getmembers\nprint(getmembers(nn))",
    "classes gone through": "for kind in nn.Module.__subclasses__():\n    print(kind.__name__)",
    "sys asked": "import sys\nprint(sys.version, sys.maxsize, getattr(sys, 'ps1', None), hasattr(sys, 'last_value'))",
    "from sys": "from sys import float_info, version_info\nprint(version_info)",
    "sys by another name": "import sys as system\nprint(system.version, [system], system.modules)",
    "a layer by its name": "def show(layer):\n    for name in ('w_q', 'w_k'):\n        print(getattr(layer, name).weight)",
    "a layer by half a name": "for x in 'qkv':\n    print(getattr(layer, 'w_' + x), getattr(layer, f'w_{x}'), getattr(layer, 'w_%s' % x))",
    "a layer by a helper": "def put(layer, name, w):\n    getattr(layer, name).weight.copy_(w)\nput(a, 'w_q', 1)\nput(a, name='w_k', w=1)",
    "layers and values": "for name, w in zip(('w_q', 'w_k'), weights):\n    setattr(layer, name, w)\nfor i, n in enumerate(['a', 'b']):\n    getattr(layer, n)",
    "layers in a dict": "for name, w in {'w_q': 1}.items():\n    getattr(layer, name).weight = w",
    "names of parameters": "for name, p in layer.named_parameters():\n    print(getattr(layer, name).shape)",
    "of oneself": "class Net(nn.Module):\n    def forward(self, x, which):\n        return getattr(self, which)(x)",
    "a function of NumPy": "def show(name):\n    return getattr(np, name)(3)",
    "a dtype": "x.to(getattr(torch, str(x.dtype).split('.')[1]))",
    "its own super": "class Net(nn.Module):\n    def __getattr__(self, name):\n        return super().__getattr__(name)",
    "words in a text": "print('sys.setprofile is not for us; see __globals__ in the manual')",
    "a number worked out": "print(eval('1 + 1'))",
    "own methods": "class Box:\n    def export(self):\n        return self.jit\nBox().export()",
    "a helper called so": "def _bootstrap(xs):\n    return xs\nx = _bootstrap([1])",
    "compiled": "import re\nmodel.compile()\nre.compile('a')\nmodel.eval()",
    "threads": "import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()",
}


@pytest.mark.parametrize("text", STATUS_STYLES.values(), ids=STATUS_STYLES.keys())
def test_a_cell_that_only_looks_is_no_offence(text):
    assert offence("attend", ("attention",), (), Sources((text, OWN), GIVEN)) is None
    assert offence("attend", ("attention",), (), Sources((OWN, text), GIVEN)) is None


@pytest.mark.parametrize(
    "text",
    [
        "import sys\ndel sys.modules['torch']",
        "import sys\nsys.modules.pop('torch.overrides')",
        "import sys\nsys.modules['numpy'] = mine",
        "import sys as s\ns.modules['numpy'] = mine",
        "from sys import modules as ms\nms.pop('torch')",
        "import sys\nms = sys.modules\ndel ms['torch']",
    ],
)
def test_a_library_is_not_dropped_or_replaced(text):
    assert refused(text, OWN) and refused(OWN, text)


def test_what_a_branch_binds_hides_no_library():
    for hiding in (
        "if 0:\n    F = 1",
        "for F in []:\n    pass",
        "F = F",
        "G = F\nF = G",
        "try:\n    F = 1 / 0\nexcept ZeroDivisionError:\n    pass",
    ):
        text = "def attend(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)"
        for cells in ((hiding, text), (text, hiding)):
            assert "from scratch" in offence("attend", ("attention",), (), Sources(cells, GIVEN)).sentence, cells
    for hiding in ("if 0:\n    np = 1", "np = np", "n = np", "from numpy import *\nif 0:\n    matmul = 1"):
        for call in (
            "np.matmul(q, k)",
            *(["n.matmul(q, k)"] if hiding == "n = np" else ()),
            *(["matmul(q, k)"] if "*" in hiding else ()),
        ):
            found = offence(
                "f", (), ("einsum_products",), Sources((hiding, f"def f(q, k, v):\n    return {call}"), GIVEN)
            )
            assert found is not None and "einsum" in found.sentence, (hiding, call)
    assert (
        offence(
            "attend", ("attention",), (), Sources(("F = softmax(x)", "def attend(q, k, v):\n    return q @ F"), GIVEN)
        )
        is None
    )


def test_nothing_is_refused_where_nothing_is_forbidden():
    assert offence("attend", (), (), Sources(("import ctypes, sys as s\nx = f.__globals__", OWN), GIVEN)) is None


def test_names_that_lead_to_each_other_end():
    chain = "\n".join(f"a{i} = a{i + 1}" for i in range(2000))
    assert offence("attend", ("attention",), (), Sources((chain, OWN.replace("torch.", "a0.")), GIVEN)) is None
    around = "def g():\n" + "    a, b = a, b\n    a = b\n    b = a\n    a.jit\n" * 500
    assert offence("attend", ("attention",), (), Sources((around, OWN), GIVEN)) is None
