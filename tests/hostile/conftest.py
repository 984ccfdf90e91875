"""One warm sandbox for the attacks: afterwards none of its processes and files is left."""

from __future__ import annotations

import pytest

from grader.sandbox.sandbox import Sandbox
from tests.conftest import children


@pytest.fixture(scope="module")
def shared():
    with Sandbox(timeout_s=1.5, memory_bytes=300 << 20) as made:
        yield made
    assert not children()
