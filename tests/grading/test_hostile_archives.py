"""`grader collect` with one hostile learner among others: whatever an archive holds, it costs its learner alone, and the others all they had."""

from __future__ import annotations

import io
import tarfile
import warnings
import zipfile
from pathlib import Path

import pytest

from tests.grading.test_collect import collect, packed, tree

FINE = {"lovelaceada_1_5001_a.ipynb": b"A", "hoppergrace_2_5002_a.ipynb": b"G"}


def tar(*members: tarfile.TarInfo, form: int = tarfile.PAX_FORMAT) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as archive:
        for about in members:
            archive.addfile(about, io.BytesIO(b"x" * about.size))
    return made.getvalue()


def member(name: str, size: int = 1, **fields: object) -> tarfile.TarInfo:
    about = tarfile.TarInfo(name)
    about.size = size
    for field, value in fields.items():
        setattr(about, field, value)
    return about


def negative() -> bytes:
    """A file, and one of less than no bytes, after which the same entry comes again."""
    header = bytearray(member("b.ipynb", 0).tobuf(tarfile.GNU_FORMAT))
    header[124:136] = (-1024).to_bytes(12, "big", signed=True)
    header[148:156] = b"%06o\0 " % (256 + sum(header[:148]) + sum(header[156:512]))
    return member("a.ipynb").tobuf(tarfile.GNU_FORMAT) + b"x" * 512 + bytes(header) + b"\0" * 1024


def zipped(files: list[tuple[str, bytes]]) -> bytes:
    made = io.BytesIO()
    with (
        warnings.catch_warnings(action="ignore"),
        zipfile.ZipFile(made, "w") as archive,
    ):  # of names that are there already
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name, (2026, 10, 1, 9, 0, 0)), data)
    return made.getvalue()


def claiming(count: int, size: int) -> bytes:
    """A zip whose files say that they unpack to so many bytes each."""
    data = bytearray(zipped([(f"{number}.ipynb", b"x") for number in range(count)]))
    at = 0
    while (at := data.find(b"PK\x01\x02", at)) >= 0:
        data[at + 24 : at + 28] = size.to_bytes(4, "little")
        at += 4
    return bytes(data)


def month_0() -> bytes:
    data = zipped([("a.ipynb", b"x")])
    return data.replace((46 << 9 | 10 << 5 | 1).to_bytes(2, "little"), (46 << 9 | 0 << 5 | 0).to_bytes(2, "little"))


def attacks() -> dict[str, tuple[str, bytes, set[str], str]]:
    """What the archive is called and holds; which of its files are then there; what is said, '' where all is well."""
    return {
        "a time of 1e30": ("w.tar", tar(member("a.ipynb", pax_headers={"mtime": "1e30"})), {"w/a.ipynb"}, ""),
        "a time before all": ("w.tar", tar(member("a.ipynb", pax_headers={"mtime": "-1e300"})), {"w/a.ipynb"}, ""),
        "a time that is none": ("w.tar", tar(member("a.ipynb", pax_headers={"mtime": "nan"})), {"w/a.ipynb"}, ""),
        "the month 0": ("w.zip", month_0(), {"w/a.ipynb"}, ""),
        "a negative size": (
            "w.tar",
            negative(),
            {"w.tar"},
            "not unpacked: it is damaged (a file of less than no bytes)",
        ),
        "one name 12,000 times": (
            "w.zip",
            zipped([("a.ipynb", b"%d" % n) for n in range(12_000)]),
            {"w.zip"},
            "it holds more than 10,000 files",
        ),
        "one name 2,000 times": (
            "w.zip",
            zipped([("a.ipynb", b"%d" % n) for n in range(2_000)]),
            {"w/a.ipynb"},
            "one of 2,000 attempts at the same file",
        ),
        "a name of 20 MB": (
            "w.tar",
            tar(member("a" * (20 << 20) + ".ipynb")),
            {"w.tar"},
            "it holds names of more than 1,048,576 characters",
        ),
        "a long name": (
            "w.tar",
            tar(member("a" * 2_000 + ".ipynb"), member("b.ipynb")),
            {"w/b.ipynb"},
            "has a path of more than 1000 characters",
        ),
        "many long names": (
            "w.zip",
            zipped([(f"{n:09}" + "/a" * 495, b"") for n in range(2_000)]),
            {"w.zip"},
            "it holds names of more than",
        ),
        "a file that is a folder": (
            "w.zip",
            zipped([("a", b"x"), ("a/b.ipynb", b"y"), ("c/d", b"x"), ("c", b"y")]),
            {"w/a", "w/c/d"},
            "could not be copied",
        ),
        "half letters": ("w.tar", tar(member("\udcff.ipynb"), form=tarfile.GNU_FORMAT), {"w/-.ipynb"}, ""),
        "4 GB, as it says": ("w.zip", claiming(20, 255 << 20), {"w.zip"}, "it holds more than 1 GB"),
        "a file of 4 GB, as it says": ("w.zip", claiming(1, 0xFFFFFFF0), set(), "is larger than 256 MB"),
        "another size than it says": ("w.zip", claiming(1, 5_000), {"w/0.ipynb"}, ""),
        "folders without end": (
            "w.tar",
            tar(*(member("d/" * (n % 9 + 1), 0, type=tarfile.DIRTYPE) for n in range(11_000))),
            {"w.tar"},
            "more than 10,000 files",
        ),
        "links without end": (
            "w.tar",
            tar(*(member(f"{n}", 0, type=tarfile.SYMTYPE, linkname="/etc/passwd") for n in range(5_000))),
            set(),
            "and 4980 more",
        ),
        "a sparse file": (
            "w.tar",
            tar(
                member(
                    "a.ipynb",
                    0,
                    pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "-5"},
                )
            ),
            {"w.tar"},
            "not unpacked",
        ),
    }


@pytest.mark.timeout(120)
def test_an_archive_costs_its_learner_alone(tmp_path, capsys, monkeypatch):
    """All of them in one class, before and between the others' work."""
    monkeypatch.setattr("grader.cli.collect.MOST", 1_000)
    all_attacks = attacks()
    theirs = {f"mal_{number}": attack for number, attack in enumerate(all_attacks)}
    files = {f"{learner}_5009_{all_attacks[attack][0]}": all_attacks[attack][1] for learner, attack in theirs.items()}
    assert collect(tmp_path, packed(tmp_path / "s.zip", {**files, **FINE})) == 1, capsys.readouterr()
    there, said = tree(tmp_path / "collected"), capsys.readouterr()
    assert (
        there["lovelaceada_1/a.ipynb"] == "A"
        and there["hoppergrace_2/a.ipynb"] == "G"
        and "Nothing was changed" not in said.err
    )
    found, expected = {}, {}
    for learner, attack in theirs.items():
        _, _, left, told = all_attacks[attack]
        lines = [line for line in said.out.splitlines() if f"  {learner}_" in line]
        expected[attack] = left, told
        found[attack] = (
            {path.removeprefix(f"{learner}/") for path in there if path.startswith(f"{learner}/")},
            told if told in "".join(lines) and bool(told) == bool(lines) else lines,
        )
    assert found == expected


@pytest.mark.timeout(60)
def test_claims_of_one_are_not_counted_for_another(tmp_path, capsys):
    """Of many archives that each say that they hold a gigabyte, all are opened, and so is what comes after them."""
    large = claiming(3, 255 << 20)
    files = {f"evilmal_9_{number}_{number}.zip": large for number in range(5_000, 5_010)}
    fine = zipped([("b.ipynb", b"B")])
    assert collect(tmp_path, packed(tmp_path / "s.zip", {**files, **FINE, "lovelaceada_1_5003_w.zip": fine})) == 1
    there = tree(tmp_path / "collected")
    assert there["lovelaceada_1/w/b.ipynb"] == "B" and there["hoppergrace_2/a.ipynb"] == "G"
    assert "of evilmal_9 was not collected: it is more than 1024 MB" in capsys.readouterr().out


@pytest.mark.parametrize(
    "data, told",
    [
        (negative(), "is damaged (a file of less than no bytes)"),
        (zipped([("ada/a.ipynb", b"A")])[:-30], "is not an archive"),
    ],
)
@pytest.mark.timeout(60)
def test_a_download_that_is_broken_is_a_sentence(tmp_path, capsys, data, told):
    (tmp_path / "s.tar").write_bytes(data)
    assert collect(tmp_path, tmp_path / "s.tar") == 2
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1 and not (tmp_path / "collected").exists()


def test_a_download_s_times_and_names_end_nothing(tmp_path, capsys):
    """What a learner chose of a file stands in the platform's archive, too."""
    odd = (
        member("bob/a.ipynb", pax_headers={"mtime": "1e30"}),
        member("eve/" + "a" * 3_000 + ".ipynb"),
        member("ada/a.ipynb"),
    )
    (tmp_path / "s.tar").write_bytes(tar(*odd))
    assert collect(tmp_path, tmp_path / "s.tar") == 1
    assert {path for path in tree(tmp_path / "collected")} == {"bob/a.ipynb", "ada/a.ipynb"}
    assert "has a path of more than 1000 characters" in capsys.readouterr().out


def test_one_learner_with_more_files_than_anybody_has_is_told(tmp_path, capsys, monkeypatch):
    from grader.grading.collecting import collection

    monkeypatch.setattr(collection, "LEARNER_FILES", 5)
    files: dict[str, bytes | str] = {f"eve/{number}.ipynb": "E" for number in range(9)}
    assert collect(tmp_path, packed(Path(tmp_path / "s.zip"), {**files, "zoe/a.ipynb": "Z"})) == 1
    there = tree(tmp_path / "collected")
    assert there["zoe/a.ipynb"] == "Z" and len(there) == 6
    assert "eve/5.ipynb  and what follows of eve was not collected: it is more than 5 files" in capsys.readouterr().out


def test_a_checkout_with_more_files_than_anybody_has_is_not_read_to_its_end(tmp_path, capsys, monkeypatch):
    """Else one learner could reach what a download as a whole may hold."""
    from grader.grading.collecting import sources

    monkeypatch.setattr(sources, "LEARNER_FILES", 5)
    monkeypatch.setattr(sources, "MOST_FILES", 9)
    folder = tmp_path / "hw-submissions"
    for name, count in (("eve", 40), ("zoe", 1)):
        (folder / f"hw-{name}" / ".git").mkdir(parents=True)
        for number in range(count):
            (folder / f"hw-{name}" / f"{number:02}.ipynb").write_text(name)
    assert collect(tmp_path, folder) == 1
    there = tree(tmp_path / "collected")
    assert there["zoe/00.ipynb"] == "zoe" and len([path for path in there if path.startswith("eve/")]) == 5
    assert "hw-eve/05.ipynb  and what follows is not read: a checkout may hold 5 files" in capsys.readouterr().out
