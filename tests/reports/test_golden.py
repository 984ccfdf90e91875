"""What readers see is compared with files that a person has read; see samples.py to renew them."""

from __future__ import annotations

import pytest

from tests.reports.samples import GOLDEN, golden

FILES = golden()


@pytest.mark.parametrize("name", FILES)
def test_report_reads_as_it_was_approved(name):
    assert FILES[name] == (GOLDEN / name).read_text(encoding="utf-8")


def test_no_golden_file_is_left_over():
    assert {path.name for path in GOLDEN.iterdir()} == set(FILES)
