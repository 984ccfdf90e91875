"""What is seen of the operators that run, wherever they run and whatever switches the looking off."""

from __future__ import annotations

import cProfile
import ctypes
import pstats
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from grader.course.spec import Case
from grader.worker.observe import observe
from grader.worker.operations import ATTENTION, library_files
from grader.worker.probes import ContractError, Run, module
from grader.worker.values import Tensor
from grader.worker.watch import UNWATCHED, follow_threads, watching

Q = torch.ones(1, 2, 3)
FUSED = [F.scaled_dot_product_attention]  # taken from a list, no name of it is read


def fused() -> torch.Tensor:
    return list(map(FUSED[0], [Q], [Q], [Q]))[0]


@pytest.fixture
def threads_followed():
    """As a worker does from its start; put back for the other tests of this process."""
    before = threading.getprofile()
    follow_threads()
    yield
    threading.setprofile(before)


def seen_of(work) -> set[str]:
    with watching(("attention",)) as seen:
        work()
    return set(seen)


@pytest.mark.parametrize(
    "loss",
    [
        lambda: Q.logcumsumexp(-1),
        lambda: torch.ops.aten.logcumsumexp(Q, -1),
        lambda: Q.logsumexp(-1),
        lambda: torch.logsumexp(Q, -1),
        lambda: torch.ops.aten.logsumexp(Q, [-1]),
        lambda: F.cross_entropy(Q[0], torch.tensor([0, 1])),
        lambda: torch.nn.NLLLoss()(Q[0], torch.tensor([0, 1])),
    ],
)
def test_a_ready_made_loss_is_seen_while_it_runs(loss):
    with watching(("cross_entropy",)) as seen:
        loss()
        assert seen


def test_nothing_is_seen_of_honest_work():
    assert seen_of(lambda: torch.softmax(Q @ Q.mT, -1) @ Q) == set()
    with watching(()) as seen:
        fused()
    assert seen == []


@pytest.mark.parametrize(
    "thread", [threading.Thread(target=fused), threading.Thread(target=partial(FUSED[0], Q, Q, Q))]
)
def test_a_thread_is_seen(thread):
    def work():
        thread.start()
        thread.join()

    assert "scaled_dot_product_attention" in seen_of(work)


def test_a_thread_that_was_there_before_is_seen(threads_followed):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        assert "scaled_dot_product_attention" in seen_of(lambda: pool.submit(fused).result())
        assert seen_of(lambda: pool.submit(torch.softmax, Q, -1).result()) == set()


def _profile_off():
    sys.setprofile(None)
    fused()


def _profile_off_for_a_while():
    hook = sys.getprofile()
    getattr(sys, "set" + "profile")(None)
    fused()
    sys.setprofile(hook)


def _profile_off_in_c():
    ctypes.pythonapi.PyEval_SetProfile.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    ctypes.pythonapi.PyEval_SetProfile(None, None)
    fused()


def _modes_off():
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        fused()


@pytest.mark.parametrize("work", [_profile_off, _profile_off_for_a_while, _profile_off_in_c, _modes_off])
def test_switching_it_off_is_seen(work):
    assert UNWATCHED in seen_of(work)
    assert sys.getprofile() is None or "pytest" in str(sys.getprofile())


def _modes_popped_and_put_back():
    function, dispatch = torch._C._pop_torch_function_stack(), torch._C._pop_torch_dispatch_stack(None)
    fused()
    torch._C._push_on_torch_function_stack(function)
    torch._C._push_on_torch_dispatch_stack(dispatch)


def _unseen_pops():
    list(map(torch._C._pop_torch_dispatch_stack, [None]))  # what map calls, no profile hook is told of
    fused()


class OtherFunctions(TorchFunctionMode):
    pass


class OtherOperators(TorchDispatchMode):
    pass


class _OnlyRuns(threading.Thread):
    def _bootstrap(self):
        self._started.set()
        self.run()


def _a_thread_that_only_runs():
    done = threading.Event()
    _OnlyRuns(target=lambda: (fused(), done.set())).start()
    assert done.wait(5)


def _a_raw_thread():
    done = threading.Event()
    threading._start_new_thread(lambda: (fused(), done.set()), ())
    assert done.wait(5)


LEFT = {
    "modes popped and put back": _modes_popped_and_put_back,
    "a mode popped unseen": _unseen_pops,
    "a function mode left on top": lambda: OtherFunctions().__enter__(),
    "an operator mode left on top": lambda: OtherOperators().__enter__(),
    "threads' hook left": lambda: threading.setprofile(None),
    "threads' trace left": lambda: threading.settrace(print),
    "a trace left": lambda: sys.settrace(lambda *_: None),
    "a thread that only runs": _a_thread_that_only_runs,
    "a raw thread": _a_raw_thread,
}


@pytest.mark.parametrize("work", LEFT.values(), ids=LEFT.keys())
def test_what_is_on_top_on_leaving_is_what_was_there(work):
    before = threading.getprofile(), threading.gettrace(), sys.gettrace()
    heights = torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()
    try:
        assert UNWATCHED in seen_of(work)
        assert threading.getprofile() is before[0]
        assert (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()) == heights
    finally:
        threading.setprofile(before[0])
        threading.settrace(before[1])
        sys.settrace(before[2])
    assert seen_of(lambda: torch.softmax(Q @ Q.mT, -1)) == set()


def test_honest_threads_and_modes_are_none():
    def work():
        thread = threading.Timer(0, int)
        thread.start()
        thread.join()
        with OtherFunctions(), ThreadPoolExecutor(2) as pool:
            list(pool.map(int, range(4)))

    assert seen_of(work) == set()


@pytest.mark.parametrize("shape", [(1, 2, 3), (1, 1, 2, 3)])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"attn_mask": torch.ones(2, 2).tril()}, {"dropout_p": 0.5}]
)
def test_the_operator_traced_in_a_cell_is_seen(shape, grad, options):
    op = torch.jit.trace(
        lambda q: F.scaled_dot_product_attention(q, q, q, **options), torch.ones(shape), check_trace=False
    )
    assert seen_of(lambda: op(torch.ones(shape, requires_grad=grad))) & ATTENTION


def test_torch_dropped_from_the_modules_is_still_watched(monkeypatch):
    assert seen_of(int) == set()
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    assert ATTENTION & seen_of(fused)


@pytest.mark.parametrize(
    "guard",
    [
        lambda x: isinstance(x, torch.Tensor),
        lambda x: isinstance(x, torch.nn.Parameter),
        torch.is_tensor,
        lambda x: type(x) is torch.Tensor,
    ],
)
def test_asking_for_the_type_calls_no_library(guard):
    with watching(("torch",)) as seen:
        guard(np.ones(2))
    assert seen == []
    with watching(("torch",)) as seen:
        torch.from_numpy(np.ones(2))
    assert set(seen) == {"torch"}


@pytest.fixture(scope="module")
def seen_elsewhere() -> list[str]:
    """What an interpreter prints that has not imported torch, of its import, of a call, and of torch's compiler."""
    text = (
        "import sys\nimport numpy as np\nfrom grader.worker.watch import watching\n"
        "with watching(('torch',)) as seen:\n    import torch\n    isinstance(np.ones(2), torch.Tensor)\nprint(seen)\n"
        "with watching(('torch',)) as seen:\n    import torch\n    torch.ones(1)\nprint(set(seen))\n"
        "with watching(('attention',)):\n    torch.ones(3) + 1\nprint('torch._dynamo' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"exec(compile({text!r}, '<cell 1>', 'exec'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_torch_may_be_imported_where_it_is_asked_for(seen_elsewhere):
    """What runs while a library is imported is none of its operations."""
    assert seen_elsewhere[:2] == ["[]", "{'torch'}"]


def test_watching_does_not_import_torch_s_compiler(seen_elsewhere):
    assert seen_elsewhere[2:] == ["False"]


def _with_a_profiler(work):
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        work()
        after_the_check()
    finally:
        profiler.disable()
    return pstats.Stats(profiler).get_stats_profile().func_profiles


def after_the_check():
    pass


def test_a_profiler_that_was_there_goes_on_and_blames_nobody():
    """As with `%prun check(f)`: cProfile before Python 3.12 hooks where we do."""
    seen = []
    counted = _with_a_profiler(lambda: seen.append(seen_of(lambda: torch.softmax(Q @ Q.mT, -1))))
    assert seen == [set()] and "after_the_check" in counted
    _with_a_profiler(lambda: seen.append(seen_of(fused)))
    assert seen[1] & ATTENTION


@pytest.mark.parametrize("hook", [lambda *_: None, threading.local().__init__], ids=["a function", "a method"])
def test_hooks_of_a_profiler_s_or_debugger_s_own_are_put_back(hook):
    trace, profile = sys.gettrace(), sys.getprofile()
    try:
        sys.settrace(lambda *_: None)
        sys.setprofile(hook)
        found, after = seen_of(lambda: torch.softmax(Q, -1)), sys.getprofile()
    finally:
        sys.setprofile(profile)
        sys.settrace(trace)
    assert found == set() and after is hook


def test_a_debugger_may_change_its_own_trace():
    before = sys.gettrace()
    try:
        sys.settrace(lambda *_: None)
        found = seen_of(lambda: sys.settrace(lambda *_: None))
    finally:
        sys.settrace(before)
    assert found == set()


def test_what_a_cell_puts_in_its_place_is_not_used(monkeypatch):
    monkeypatch.setattr(sys, "setprofile", lambda hook: None)
    assert "scaled_dot_product_attention" in seen_of(lambda: F.scaled_dot_product_attention(Q, Q, Q))


def test_the_graders_own_look_aside_is_none():
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.w(x)

    with watching(("attention",)) as seen:
        module(
            Layer,
            Run(
                (torch.ones(1, 2, 3, requires_grad=True),),
                options={"gradients": True, "state": {"w.bias": [0.0, 0, 0]}},
            ),
        )
    assert seen == []


class Late(torch.Tensor):
    """Computes when it is read."""

    def numpy(self, force=False):
        fused()
        return torch._C.TensorBase.numpy(self.as_subclass(torch.Tensor), force=force)


class LateList(list):
    def __iter__(self):
        fused()
        return super().__iter__()


def shown_by(function):
    return observe(
        function,
        Case(
            "toy", "a toy", (Tensor(np.ones((1, 2, 3), np.float32)),), options={"watch": ("attention",)}, names=("q",)
        ),
    )


@pytest.mark.parametrize(
    "function", [lambda q: q.as_subclass(Late), lambda q: [q.as_subclass(Late)], lambda q: (1, [q.as_subclass(Late)])]
)
def test_a_tensor_that_would_compute_when_it_is_read_is_read_without_asking_it(function):
    """What is read is what lies in memory, so that a late answer is the one that has not been computed."""
    seen = shown_by(function)
    assert seen.failure is None and seen.calls == ()
    part = seen.parts["result"]
    while part.kind == "sequence":
        part = part.items[-1]
    assert (part.array == 1).all()


def test_a_list_that_computes_when_it_is_read_is_seen():
    assert shown_by(lambda q: [1, (2.0, q)]).calls == ()
    assert FUSED[0].__name__ in shown_by(lambda q: LateList([1.0])).calls


def test_what_stands_in_the_place_of_torchs_own_methods_is_not_asked(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "numpy", Late.numpy, raising=False)
    assert shown_by(lambda q: q).calls == ()


def test_a_parameter_that_no_longer_asks_for_its_gradient_is_named():
    class Frozen(torch.nn.Linear):
        def forward(self, x):
            self.requires_grad_(False)
            return x * 2

    run = Run(
        (torch.ones(1, 3, requires_grad=True),),
        options={"init": (3, 3), "gradients": True, "state": {"bias": [0.0, 0, 0]}},
    )
    with pytest.raises(ContractError, match="^gradient|bias does not require a gradient"):
        module(Frozen, run)


def test_packages_that_an_environment_borrows_are_no_learner_s_code():
    """As with `python -m venv --system-site-packages`: torch's own files then lie outside the environment."""
    found = library_files(
        ["/usr/lib/python3/dist-packages", "/opt/other/lib/python3.11/site-packages", "/home/ada/helpers", ""]
    )
    assert {"/usr/lib/python3/dist-packages", "/opt/other/lib/python3.11/site-packages"} <= set(found)
    assert "/home/ada/helpers" not in found and "" not in found
