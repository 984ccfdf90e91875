"""The command line: what it prints, where, and its exit code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from grader.cli import grade, main
from grader.cli.arguments import lesson_name
from grader.course.course import open_course
from grader.course.spec import SEED
from grader.util.errors import InputError
from tests import toy_course as toy
from tests.conftest import ROOT


@pytest.fixture
def solved(tmp_path, monkeypatch):
    """A notebook of the toy lesson, solved."""
    toy.install(monkeypatch)
    return toy.write(tmp_path / f"{toy.NAME}.ipynb", toy.solved())


@pytest.fixture
def half(tmp_path, monkeypatch):
    """A notebook of the toy lesson with one mistake in it: 3 of 6 points."""
    toy.install(monkeypatch)
    wrong = "def row_sums(x):\n    return x.sum(axis=0)"
    return toy.write(tmp_path / f"{toy.NAME}.ipynb", toy.solved(row_sums=wrong))


def test_grade_of_a_solved_notebook_exits_0_with_a_card(solved, capsys):
    assert main(["grade", str(solved)]) == 0
    out = capsys.readouterr().out
    assert "double" in out and "6 of 6" in out


def test_grade_of_a_wrong_notebook_exits_1_and_names_the_mistake(half, capsys):
    assert main(["grade", str(half)]) == 1
    assert "TY1: This is TY1." in capsys.readouterr().out


def test_json_on_standard_output_is_alone_there(half, capsys):
    assert main(["grade", str(half), "--json", "-"]) == 1
    seen = capsys.readouterr()
    report = json.loads(seen.out)
    assert report["format"] == 1
    assert report["seed"] == SEED
    (one,) = report["submissions"]
    assert (one["score"], one["max_score"]) == (3, 6)
    rows = next(each for each in one["lessons"][0]["exercises"] if each["name"] == "row_sums")
    assert rows["status"] == "failed" and rows["mistakes"] == ["TY1"] and rows["headline"]
    assert "grading" in seen.err


def test_reports_go_to_files_and_the_card_to_standard_output(half, tmp_path, capsys):
    files = {form: tmp_path / f"report.{form}" for form in ("json", "junit", "markdown", "html", "csv", "gradescope")}
    main(["grade", str(half), *(part for form, file in files.items() for part in (f"--{form}", str(file)))])
    assert json.loads(files["json"].read_text())["format"] == 1
    suite = ElementTree.fromstring(files["junit"].read_text())
    assert {case.get("name") for case in suite.iter("testcase")} >= {"double", "row_sums"}
    assert len(list(suite.iter("failure"))) == 1
    assert "row_sums" in files["markdown"].read_text()
    assert "This is TY1." in files["html"].read_text(encoding="utf-8")
    assert files["csv"].read_text(encoding="utf-8").startswith('"learner","')
    results = json.loads(files["gradescope"].read_text())
    assert results["score"] == 3 and sum(test["max_score"] for test in results["tests"]) == 6
    assert "3 of 6" in capsys.readouterr().out


def test_two_reports_never_share_a_place(half, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.xml").write_text("as it was")
    (tmp_path / "link.xml").symlink_to("there.xml")
    os.link(tmp_path / "there.xml", tmp_path / "hard.xml")
    same = [
        ("-", "-"),
        ("new.json", "new.json"),
        ("new.json", f"./{tmp_path.name}/../new.json"),
        ("there.xml", "link.xml"),
        ("there.xml", "hard.xml"),
        ("new.json", str(tmp_path / "new.json")),
    ]
    (tmp_path / tmp_path.name).mkdir()
    forms = ("json", "junit", "markdown", "html", "csv", "gradescope")
    for at, (one, other) in enumerate(same):
        first, second = forms[at % 6], forms[(at + 1 + at // 2) % 6]
        assert main(["grade", str(half), f"--{first}", one, f"--{second}", other]) == 2, (one, other)
        seen = capsys.readouterr()
        assert (
            f"--{first}" in seen.err and f"--{second}" in seen.err and "a file of its own" in seen.err and not seen.out
        )
        assert ("standard output" in seen.err) == (one == "-")
    assert (tmp_path / "there.xml").read_text() == "as it was" and not (tmp_path / "new.json").exists()


@pytest.mark.parametrize("name", ["mine.ipynb", "new.IPYNB"])
def test_no_report_takes_a_notebook_s_place(half, tmp_path, capsys, name):
    (tmp_path / "mine.ipynb").write_text("work")
    assert main(["grade", str(half), "--html", str(tmp_path / name)]) == 2
    assert (
        "called like a notebook, whose place a report must not take; name --html another file."
        in capsys.readouterr().err
    )
    assert (tmp_path / "mine.ipynb").read_text() == "work" and not (tmp_path / "new.IPYNB").exists()


def test_standard_output_is_known_by_where_it_leads(half, tmp_path):
    with open(tmp_path / "out.txt", "w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "grader", "grade", str(tmp_path), "--json", "-", "--csv", str(tmp_path / "out.txt")],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            timeout=120,
        )
    assert done.returncode == 2 and "both write to standard output" in done.stderr


def test_min_score_takes_points_or_a_share(half, monkeypatch):
    """Of one report: the thresholds don't change how it is graded."""
    once, kept = grade.grade, []

    def graded(*given, **more):
        if not kept:
            kept.append(once(*given, **more))
        return kept[0]

    monkeypatch.setattr(grade, "grade", graded)
    for threshold, code in (("3", 0), ("4", 1), ("50%", 0), ("50.1%", 1), ("0", 0), ("100%", 1)):
        assert main(["grade", str(half), "--min-score", threshold]) == code, threshold


def test_min_score_holds_for_every_submission(half, tmp_path):
    (tmp_path / "ada").mkdir()
    full = toy.write(tmp_path / "ada" / f"{toy.NAME}.ipynb", toy.solved())
    assert main(["grade", str(full), "--min-score", "6"]) == 0
    assert main(["grade", str(full), str(half), "--min-score", "6"]) == 1


def test_what_cannot_be_graded_exits_3_and_leaves_no_number(solved, tmp_path, monkeypatch, capsys):
    def broken(*_, **__):
        raise RuntimeError("ours")

    monkeypatch.setattr("grader.grading.grade.judge", broken)
    results, other = tmp_path / "results.json", tmp_path / "report.json"
    results.write_text('{"score": 6}')  # of an earlier run
    assert main(["grade", str(solved), "--min-score", "0", "--gradescope", str(results), "--json", str(other)]) == 3
    assert not results.exists() and json.loads(other.read_text())["submissions"][0]["score"] is None
    assert "the grader's failure and no learner's: 01_toy (double, row_sums and the_answer)" in capsys.readouterr().err
    assert main(["grade", str(solved), "--gradescope", "-"]) == 3
    assert capsys.readouterr().out == ""


def test_lessons_limits_what_is_graded(solved, capsys):
    main(["grade", str(solved), "--lessons", "02", "--json", "-"])
    (one,) = json.loads(capsys.readouterr().out)["submissions"]
    assert [lesson["name"] for lesson in one["lessons"]] == ["02_second"]


def test_a_seed_is_taken_and_reported(solved, capsys):
    assert main(["grade", str(solved), "--seed", "11", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["seed"] == 11


def test_timeout_is_for_one_exercise(tmp_path, monkeypatch, capsys):
    toy.install(monkeypatch)
    endless = "def double(x):\n    while True:\n        pass"
    path = toy.write(tmp_path / f"{toy.NAME}.ipynb", toy.solved(double=endless))
    assert main(["grade", str(path), "--timeout", "1.5", "--json", "-"]) == 1
    exercises = json.loads(capsys.readouterr().out)["submissions"][0]["lessons"][0]["exercises"]
    assert {each["name"]: each["status"] for each in exercises} == {
        "double": "timeout",
        "row_sums": "passed",
        "the_answer": "passed",
    }


def test_a_learner_s_name_commands_neither_terminal_nor_ci(solved, tmp_path, capsys, monkeypatch):
    names = ["a\n::error::boo\x1b[31m", "##teamcity[buildStop]", "##vso[task.complete]"]
    monkeypatch.chdir(tmp_path)  # a path that begins with the name
    for name in names:
        (tmp_path / name).mkdir()
        shutil.copy(solved, tmp_path / name)
    assert main(["grade", *names]) == 0
    for name in names:
        assert main(["grade", f"{name}x"]) == 2
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / f"{name}.txt").touch()
        assert main(["class", str(tmp_path / "class"), "--out", str(tmp_path / "class" / name)]) == 2
    seen = capsys.readouterr()
    for line in (seen.out + seen.err).split("\n"):
        assert "\x1b" not in line and "##teamcity[" not in line and "##vso[" not in line and "::error" not in line


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["grade", "nowhere.ipynb"], "nowhere.ipynb is not there"),
        (["grade", __file__], "is not a notebook"),
        (["grade", "{empty}"], "contains no notebook"),
        (["grade"], "PATH"),
        (["grade", ""], "'' is no file or folder"),
        (["grade", "{solved}", "--json", ""], "'' is no file or folder"),
        (["class", "", "--out", "x"], "'' is no file or folder"),
        (["grade", "{solved}", "--json", "no/such/folder/x.json"], "there is no folder no/such/folder"),
        (["grade", "{solved}", "--json", "{empty}"], "can't be written"),
        (["grade", "{solved}", "--min-score", "most"], "neither points"),
        (["grade", "{solved}", "--min-score", "101%"], "neither points"),
        (["grade", "{solved}", "--seed", "-1"], "whole number"),
        (["grade", "{solved}", "--timeout", "0"], "number of seconds"),
        (["grade", "{solved}", "--lessons", "01,01_tyo"], "did you mean 01_toy"),
        (["grade", "{solved}", "--lessons", ""], "names no lesson"),
        (["grade", "{solved}", "--lessons", ","], "names no lesson"),
        (["grade", "{solved}", "--seed", "²"], "whole number"),
        (["grade", "{solved}", "--timeout", "nan"], "number of seconds"),
        (["grade", "{solved}", "--min-score", "nan"], "neither points"),
        (["class", "{empty}", "--out", "x", "--lessons", " "], "names no lesson"),
        (["class", "{empty}", "--out", "x", "--jobs", "0"], "whole number of 1"),
        (["class", "{empty}", "--out", "x", "--max-points", "-3"], "number above 0"),
        (["release", "x", "--lessons", ""], "names no lesson"),
        (["build", "77"], "there is no lesson '77'"),
        (["reset", "01_tyo"], "did you mean 01_toy"),
        (["reset", "01", "--folder", "nowhere"], "nowhere is not a folder"),
        (["update", "--folder", "{empty}"], "contains no notebook of the course"),
        (["explain", "QQ99"], "No mistake has the id 'QQ99'. `grader explain` lists all of them."),
        (["grad", "x"], "invalid choice"),
    ],
)
def test_a_wrong_call_is_one_sentence_and_exit_code_2(solved, tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.setattr(open_course(), "mistake_ids", lambda: ("TY1",))
    (tmp_path / "empty").mkdir()
    filled = [text.format(solved=solved, empty=tmp_path / "empty") for text in arguments]
    assert main(filled) == 2
    seen = capsys.readouterr()
    assert said in seen.err
    assert "Traceback" not in seen.err
    assert seen.out == ""


@pytest.mark.parametrize("text", ["1", "01", "01_toy", "01_toy.ipynb", "notebooks/01_toy.ipynb", "solutions/01_toy.py"])
def test_a_lesson_is_known_by_number_name_or_file(monkeypatch, text):
    toy.install(monkeypatch)
    assert lesson_name(text) == "01_toy"


def test_an_unknown_lesson_without_a_near_one_lists_them(monkeypatch):
    toy.install(monkeypatch)
    with pytest.raises(InputError, match="there are 01_toy, 02_second"):
        lesson_name("zzz")


def test_the_command_alone_lists_the_commands(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out
    assert all(f"\n    {name} " in said for name in ("grade", "explain", "progress", "reset", "update", "doctor"))


def test_explain_takes_an_id_in_any_case(monkeypatch, capsys):
    toy.install(monkeypatch)
    monkeypatch.setattr(open_course(), "mistake_ids", lambda: ("TY1",))
    assert main(["explain", "ty1"]) == 0
    assert "TY1" in capsys.readouterr().out
    for what in (["row_sums"], ["01"], []):
        assert main(["explain", *what]) == 0 and "TY1" in capsys.readouterr().out


def test_a_read_only_folder_is_a_sentence(solved, tmp_path, monkeypatch, capsys):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "mine/.01_toy.ipynb.x")

    monkeypatch.setattr("grader.util.links.write", refuse)
    command = ["reset", "01", "--folder", str(tmp_path)]
    assert main(command) == 2
    assert main([*command, "--confirm", capsys.readouterr().err.split("--confirm ")[1][:6]]) == 2
    assert "Permission denied" in capsys.readouterr().err
    assert solved.exists()


def test_a_full_disk_costs_one_report_and_not_the_others(half, tmp_path, monkeypatch, capsys):
    real = grade.write_atomically

    def full(path, content):
        if path.suffix == ".json":
            raise OSError(28, "No space left on device")
        real(path, content)

    monkeypatch.setattr(grade, "write_atomically", full)
    files = ["--json", str(tmp_path / "a.json"), "--markdown", str(tmp_path / "a.md")]
    assert main(["grade", str(half), *files]) == 2
    seen = capsys.readouterr()
    assert "No space left" in seen.err
    assert "3 of 6" in seen.out
    assert (tmp_path / "a.md").is_file()


def test_a_mistake_of_the_grader_s_own_is_no_traceback(monkeypatch, capsys):
    toy.install(monkeypatch)
    monkeypatch.delenv("GRADER_DEBUG", raising=False)
    monkeypatch.setattr("grader.notebook.workspace.reset", lambda *_: 1 / 0)
    assert main(["reset", "01"]) == 3
    assert "ZeroDivisionError" in capsys.readouterr().err


def in_a_process(*arguments: str, **settings) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "grader", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **settings)


def test_version_and_help_need_nothing_heavy():
    program = (
        "import sys; from grader.cli import main; main(['--version']); main(['--help']); "
        "heavy = ('torch', 'jupytext', 'rich', 'nbformat', 'matplotlib'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("grader ")
    assert "grade" in done.stdout
    assert done.stdout.endswith("[]\n")


def test_a_mistake_that_lessons_share_is_explained_without_importing_a_lesson():
    program = (
        "import sys; from grader.cli import main; main(['explain', 'RS1']); "
        "print([name for name in sys.modules if '.exercises.' in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("RS1: ") and done.stdout.endswith("\n[]\n"), done.stdout + done.stderr


def test_it_runs_as_a_module_from_any_folder(tmp_path):
    root = str(ROOT)
    done = in_a_process("grade", "nowhere", cwd=tmp_path, env={**os.environ, "PYTHONPATH": root})
    assert done.returncode == 2
    assert done.stdout == ""
    assert "nowhere is not there" in done.stderr


def test_a_reader_that_leaves_early_is_no_error():
    reader = subprocess.run(
        f"{sys.executable} -m grader --help | head -1; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in reader.stderr and "BrokenPipe" not in reader.stderr
