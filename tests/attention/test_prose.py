"""What lessons' prose may hold: predictions folded away, numbers quoted from the run, notes for instructors."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import pytest

from grader.authoring import build, lint, reading_time, teaching
from grader.authoring.audit import audit
from grader.course import percent, stubs
from grader.course.course import open_course
from grader.util.errors import AuthorError
from tests import small_lesson as small

PREDICTION = """
# %% [markdown]
# @predict
#
# What is the sum?
#
# - **A** 3
# - **B** 6
#
# @answer
#
# **A**: 0 + 1 + 2 = {{ total:d }}, and on average {{ total / 3:.2f }}.
#
# @wrong
#
# Six counts from one.
"""
SET = small.BODY.replace("import numpy as np", f"{small.PASSING}\ntotal = np.arange(3).sum()\nassert total == 3")
WHOLE = SET + PREDICTION + small.END


def problems(text: str) -> list[str]:
    return list(map(str, lint.proofread(small.FILE, small.cells(text), small.LESSON)))


def texts(notebook: dict) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook["cells"]]


# --- as an author writes it --------------------------------------------------------------------


def test_a_lesson_with_everything_has_no_slips():
    assert problems(WHOLE) == []


@pytest.mark.parametrize(
    "find, put, said",
    [
        ("# What is the sum?\n#\n# - **A** 3\n# - **B** 6\n", "", "no question"),
        ("# **A**: 0 + 1 + 2 = {{ total:d }}, and on average {{ total / 3:.2f }}.\n", "", "no '@answer'"),
        ("# @wrong\n#\n# Six counts from one.\n", "", "no '@wrong'"),
        ("# Six counts from one.\n", "", "no '@wrong'"),
        ("# Six counts from one.\n", "# Six.\n#\n# @answer\n#\n# Again.\n", "then one '@answer', then one '@wrong'"),
        ("# One line.\n", "# **Predict:** what stays?\n", "a separate cell"),
        ("# One line.\n", "# One line.\n#\n# @answer\n", "belongs to a cell"),
        ("{{ total:d }}", "{{ total 1 }}", "not an expression"),
        ("{{ total:d }}", "{{ total:d; it > }}", "not an expression"),
        ("{{ total:d }}", "{{ double(lonely):d }}", "nothing asserts"),
        ("{{ total:d }}", "{{ total:d }\n# }", "on the same line"),
        ("{{ total:d }}", "{{ total\n# :d }}", "on the same line"),
        ("{{ total:d }}", "{{total:d}}", "on the same line"),
        ("**Before this lesson:**", "Before this lesson:", "'**Before this lesson:**'"),
        ("## What we keep", "## The end", "'## What we keep'"),
        ("# ## To discuss\n#\n# Is one number an array?\n#\n", "", "these headings"),
        ("# ## To discuss", "# ## Discuss", "these headings"),
        ("# Nothing either.\n", "", "the section '## Cut for 90 minutes' is empty"),
        ("# - double TY2: What", "# - doubel TY2: What", "not an exercise of this lesson"),
        ("# - double TY2: What", "# - double TY7: What", "has no mistake TY7; it has TY1, TY2, TY3"),
        ("# - double TY2: What is twice 0?\n", "", "1 mistakes to expect; 2 to 4 are wanted"),
        ("# - double TY2: What", "# Ask: what", "has the form '- exercise ID: a question to ask?'"),
        ("# Nothing either.", "# Skip {{ total }}.", "cannot quote numbers"),
    ],
)
def test_a_slip_of_the_author_is_said_with_its_line(find, put, said):
    assert find in WHOLE
    text = WHOLE.replace(find, put, 1)
    told = [problem for problem in problems(text) if said in problem]
    assert told and all(re.match(rf"{small.FILE}:\d+: ", problem) for problem in told), problems(text)


def test_the_line_of_a_quoted_number_is_its_own():
    text = WHOLE.replace("{{ total / 3:.2f }}", "{{ total / : }}")
    (problem,) = problems(text)
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "total / :" in line)
    assert problem.startswith(f"{small.FILE}:{line}: ")


def test_five_predictions_are_enough():
    assert problems(SET + 5 * PREDICTION + small.END) == []
    (problem,) = problems(SET + 6 * PREDICTION + small.END)
    assert "at most 5 predictions" in problem


BEYOND = "\n# %% [markdown]\n# ## Further: more\n#\n# For the curious.\n"


def test_a_further_part_stands_between_the_core_and_what_is_kept():
    assert problems(small.BODY + BEYOND + BEYOND + small.END) == []
    (problem,) = problems(small.BODY + BEYOND + "\n# %% [markdown]\n# ## Back to the core\n" + small.END)
    assert "'## Back to the core' stands below a further part; the core comes first." in problem
    inside = BEYOND.replace("# For the curious.", "# For the curious.\n#\n# ## Further: and more")
    (problem,) = problems(small.BODY + inside + small.END)
    line = (small.BODY + inside).splitlines().index("# ## Further: and more") + 1
    assert problem.startswith(f"{small.FILE}:{line}: '## Further: and more' begins a cell of its own")


@pytest.mark.parametrize(
    "more, said",
    [
        ("# %% [markdown]\n# " + "word " * lint.MOST_WORDS, "the core has 2,019 words, and 2,000 are the most"),
        ('# %% role="demo"\n' + "x = 1\n" * lint.MOST_LINES, "the core has 94 lines of code that are not folded"),
        ('# %% role="demo" tags=["hide-input"]\n' + "figures.a(1)\n" * 91, "the core has 46 minutes of reading"),
    ],
)
def test_a_core_that_asks_too_much_is_refused_with_what_it_has(more, said):
    (problem,) = problems(small.BODY + f"\n{more}\n" + small.END)
    assert said in problem and "or move a part under '## Further: …'." in problem
    assert problems(small.BODY + BEYOND + f"\n{more}\n" + small.END) == [], "what is further is nobody's budget"


def test_exercises_have_a_budget_too():
    slow = replace(small.LESSON, exercises=(replace(small.LESSON.exercises[0], minutes=51),))
    (problem,) = lint.proofread(small.FILE, small.cells(small.SOURCE), slow)
    assert "the core has 51 minutes of exercises, and 50 are the most" in problem.sentence


def test_an_exercise_under_a_further_heading_is_further_and_the_heading_is_collapsed(monkeypatch, tmp_path):
    at = small.BODY.index("# %% [markdown]\n# @exercise double")
    small.install(monkeypatch, tmp_path, small.BODY[:at] + BEYOND + "\n" + small.BODY[at:] + small.END)
    assert open_course().further(small.NAME) == {"double"} and open_course().core_exercises() == ()
    assert open_course().lesson(small.NAME).exercises[0].further
    heading, *others = [
        cell
        for cell in open_course().pristine(small.NAME)["cells"]
        if "jp-MarkdownHeadingCollapsed" in cell["metadata"]
    ]
    assert "".join(heading["source"]).startswith("## Further: more") and not others


def test_a_folded_cell_is_folded_in_both_notebooks(monkeypatch, tmp_path):
    small.install(monkeypatch, tmp_path, small.SOURCE.replace('tags=["nbval-check-output"]', 'tags=["hide-input"]'))
    solved = build.solution_notebook(open_course(), small.NAME)
    for notebook in (open_course().pristine(small.NAME), solved):
        (folded,) = [cell for cell in notebook["cells"] if cell["metadata"].get("jupyter") == {"source_hidden": True}]
        assert "print(np.arange(3).sum())" in folded["source"] and folded["metadata"]["cellView"] == "form"


def test_notes_for_instructors_are_one_cell_the_last():
    assert any(
        "may begin only the last cell" in problem
        for problem in problems(WHOLE + "\n# %% [markdown]\n# ## What we keep\n# More.\n")
    )
    assert any(
        "may begin only the last cell" in problem
        for problem in problems(WHOLE + small.END[small.END.index("\n# %% [markdown]\n# @") :])
    )


def test_a_source_without_notes_for_instructors_is_refused():
    assert problems(small.BODY + small.END.partition("\n# %% [markdown]\n# @")[0]) == [
        f"{small.FILE}: the source has no notes for instructors: its last cell must begin with '@teaching'."
    ]


@pytest.mark.parametrize(
    "text",
    [r"$\frac{{ a }}{{ b }}$", r"$x^{{ n }}_{{ k }}$", r"$\{{ x }\}$", r"$\sqrt{{{ y }}}$", "{ x }", r"$\mathbf{{W}}$"],
)
def test_latex_is_no_quoted_number(text):
    assert (
        percent.quotes(text) == [] and percent.fill_values(text, iter(())) == text and percent.broken_quotes(text) == []
    )


def test_what_pythons_f_strings_write_may_be_quoted():
    text = 'one {{ a[0, 2]:.3f }}, **{{ d["k"][1:2]!r:>8 }}**, $p = {{ p:.1% }}$'
    assert [one.text for one in percent.quotes(text)] == ["a[0, 2]:.3f", 'd["k"][1:2]!r:>8', "p:.1%"]
    assert not any(percent.syntax_error(one.text) for one in percent.quotes(text))
    values = iter([("a[0, 2]:.3f", "1.000"), ('d["k"][1:2]!r:>8', "x"), ("p:.1%", "5.0%")])
    assert percent.fill_values(text, values) == "one 1.000, **x**, $p = 5.0%$"


def test_an_answer_is_markdown_inside_of_html():
    """As nbconvert's renderer has it; a real JupyterLab is asked in test_lab.py. Without blank lines the list would be plain text."""
    from nbconvert.filters.markdown_mistune import markdown2html_mistune

    page = markdown2html_mistune(
        percent.prediction_markdown(
            percent.Prediction("Which?\n\n- A\n- B", "**A**:\n\n- one\n- two", "*B* reads it backwards.")
        )
    )
    question, answer = page.split("<details>")
    assert question.count("<li>") == 2 and "<strong>Predict.</strong>" in question
    assert "<summary>Answer</summary>" in answer and answer.count("<li>") == 2
    assert "<p><strong>A</strong>:</p>" in answer and "<em>B</em>" in answer and answer.count("</details>") == 1


# --- as notebooks have it ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def built_once(tmp_path_factory):
    """The folder of the small lesson with everything, built: a kernel takes a second to start."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "docs").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        build.build(small.install(patch, folder, WHOLE), small.NAME)
    return folder


@pytest.fixture
def built(monkeypatch, tmp_path, built_once):
    """A copy of it as the course. Returns the learner's notebook and the solved one."""
    shutil.copytree(built_once, tmp_path, dirs_exist_ok=True)
    small.install(monkeypatch, tmp_path, WHOLE)
    return [
        json.loads(path(small.NAME).read_text(encoding="utf-8"))
        for path in (open_course().notebook_path, open_course().solution_path)
    ]


def test_both_notebooks_fold_the_answer_and_quote_the_run(built):
    for notebook in built:
        page = next(text for text in texts(notebook) if text.startswith("**Predict.** What is the sum?"))
        question, folded = page.split("\n\n<details>\n<summary>Answer</summary>\n\n")
        assert "**B** 6" in question
        assert "0 + 1 + 2 = 3, and on average 1.00." in folded
        assert folded.endswith("\n\nSix counts from one.\n\n</details>")
        assert "@predict" not in str(notebook) and "{{" not in str(notebook["cells"])
    assert built[1]["metadata"]["grader"]["quoted"] == [["total:d", "3"], ["total / 3:.2f", "1.00"]]


def test_quoting_disturbs_neither_the_count_of_cells_nor_what_they_show(built):
    counts = [cell["execution_count"] for cell in built[1]["cells"] if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    shown = next(cell for cell in built[1]["cells"] if cell["id"].startswith("demo"))
    assert shown["outputs"][0]["text"] == ["3\n"]


def test_notes_for_instructors_stand_in_no_notebook(built):
    assert not any("@teaching" in text or "To discuss" in text for notebook in built for text in texts(notebook))
    page = teaching.path(open_course(), small.NAME).read_text(encoding="utf-8")
    assert "# Teaching 01 · A small lesson" in page and "**Before this lesson:** addition, and arrays." in page
    assert "- TY1 (TY1)\n  *Ask:* What is 3 times 3, and what twice 3?" in page
    assert "**1.** What is the sum?" in page and "0 + 1 + 2 = 3, and" in page and "*Behind a wrong guess.* Six" in page
    headings = re.findall(r"^## (.*)", page, re.MULTILINE)
    assert [heading for heading in headings if heading in teaching.HEADINGS] == list(teaching.HEADINGS)


def test_what_was_built_is_not_stale_until_something_is_edited(built):
    assert build.stale(open_course(), small.NAME) == []
    path = teaching.path(open_course(), small.NAME)
    path.write_text(path.read_text().replace("To double", "To treble"))
    assert build.stale(open_course(), small.NAME) == ["docs/teaching/01_small.md: is not what its source builds."]


@pytest.mark.parametrize("which", ["notebook_path", "solution_path"])
def test_a_quoted_number_that_is_not_the_run_s_is_stale(built, which):
    path = getattr(open_course(), which)(small.NAME)
    text = path.read_text(encoding="utf-8")
    assert "on average 1.00" in text
    path.write_text(text.replace("on average 1.00", "on average 1.01"), encoding="utf-8")
    (problem,) = build.stale(open_course(), small.NAME)
    assert problem.startswith(f"{path.parent.name}/{path.name}: is ")


def test_other_numbers_of_the_same_run_change_no_cell_s_id_and_make_nothing_stale(built):
    """What a machine measures differs; the notebooks of that build agree with each other."""
    said = [("total:d", "4"), ("total / 3:.2f", "1.33")]
    way, opening = open_course().nav_links(small.NAME), open_course().opening(small.NAME)
    other = stubs.learner_notebook(open_course().cells(small.NAME), small.LESSON, said, way, opening)
    assert [cell["id"] for cell in other["cells"]] == [cell["id"] for cell in built[0]["cells"]]
    assert any("on average 1.33" in text for text in texts(other))


def test_a_learner_s_notebook_is_made_without_running_anything(built):
    assert open_course().handout_notebook(small.NAME) == built[0]
    codes = [
        [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for notebook in (open_course().pristine(small.NAME), built[0])
    ]
    assert codes[0] == codes[1]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.unlink(),
        lambda path: path.write_text("{}"),
        lambda path: path.write_text(path.read_text().replace('"total:d"', '"total:f"')),
    ],
)
def test_a_lesson_that_was_not_built_says_so(built, spoil):
    spoil(open_course().solution_path(small.NAME))
    with pytest.raises(
        AuthorError, match=r"solutions/01_small.ipynb: it has no value for \{\{ total:d \}\}; run `grader build 01`"
    ):
        open_course().handout_notebook(small.NAME)
    assert open_course().pristine(small.NAME)["cells"]  # grading needs no prose


@pytest.mark.parametrize(
    "put, said",
    [
        ("{{ totla:d; it }}", "NameError"),
        ("{{ total:q }}", "ValueError"),
        ("{{ total:d; it > 3 }}", "AssertionError: the text relies on it > 3"),
    ],
)
def test_a_number_that_can_not_be_had_is_the_author_s_slip_and_nothing_is_written(monkeypatch, tmp_path, put, said):
    text = SET + PREDICTION.replace("{{ total:d }}", put) + small.END
    small.install(monkeypatch, tmp_path, text)
    line = next(number for number, line in enumerate(text.splitlines(), 1) if put in line)
    with pytest.raises(AuthorError, match=re.escape(f"{small.FILE}:{line}: {put} raises {said}")):
        build.build(open_course(), small.NAME)
    assert not list(tmp_path.rglob("*.ipynb")) and not list(tmp_path.rglob("*.md"))


def test_prose_above_a_run_can_quote_nothing_of_it(monkeypatch, tmp_path):
    small.install(monkeypatch, tmp_path, WHOLE.replace("and arrays.", "and arrays: {{ total:d }}."))
    with pytest.raises(AuthorError, match="total:d }} raises NameError"):
        build.build(open_course(), small.NAME)


def test_a_prediction_quotes_what_the_cells_right_below_it_find(monkeypatch, tmp_path):
    below = '\n# %% role="demo"\nlater = 41 + 1\n\n# %% [markdown]\n# Then {{ later:d; it == 42 }} stands there.\n'
    small.install(
        monkeypatch, tmp_path, SET + PREDICTION.replace("{{ total:d }}", "{{ later:d; it == 42 }}") + below + small.END
    )
    build.build(open_course(), small.NAME)
    shown = "\n".join(texts(json.loads(open_course().notebook_path(small.NAME).read_text(encoding="utf-8"))))
    assert "**A**: 0 + 1 + 2 = 42, and on average 1.00." in shown
    assert "Then 42 stands there." in shown


# --- what else is said of a lesson ---------------------------------------------------------------


def test_a_task_says_how_difficult_it_is():
    assert stubs.task("@exercise double", replace(small.EXERCISE, difficulty=2)).splitlines()[2] == (
        "*●●○ difficulty 2 of 3 · 3 minutes · 1 point* — Double each number."
    )


def test_the_audit_asks_for_a_difficulty(monkeypatch, tmp_path):
    small.install(monkeypatch, tmp_path, WHOLE)
    assert not any("difficulty" in problem for problem in audit(open_course(), [small.NAME]).problems)
    for level in (None, 0, 4):
        exercise = replace(small.EXERCISE, difficulty=level, course=open_course(), lesson=small.NAME)
        lesson = replace(small.LESSON, exercises=(exercise,))
        monkeypatch.setattr(open_course(), "lesson", lambda name, lesson=lesson: lesson)
        assert any(
            f"its difficulty is {level}; it must be 1, 2 or 3" in problem
            for problem in audit(open_course(), [small.NAME]).problems
        )


def test_the_audit_counts_predictions(monkeypatch, tmp_path):
    small.install(monkeypatch, tmp_path, SET + 6 * PREDICTION + small.END)
    assert any("at most 5 predictions" in problem for problem in audit(open_course(), [small.NAME]).problems)


def test_reading_takes_200_words_or_10_lines_of_code_or_two_figures_a_minute():
    words = "# %% [markdown]\n# " + "word " * 400 + "\n\n"
    code = '# %% role="demo"\n' + "x = 1\n\n" * 20 + "\n"
    notes = "# %% [markdown]\n# @teaching\n# " + "word " * 900 + "\n"
    figures = '# %% role="demo" tags=["hide-input"]\n' + "figures.three_tokens.machine(x)\n" * 4 + "\n"
    texts = (words, code, figures, words + code + figures + notes)
    assert [reading_time.reading(small.cells(text)).minutes for text in texts] == [2, 2, 2, 6]


def test_lessons_lead_to_their_neighbors_and_the_glossary():
    first, second, last = open_course().lessons()[0], open_course().lessons()[1], open_course().lessons()[-1]
    assert open_course().nav_links(first).startswith("[Glossary](glossary.md) | [01 · ") and open_course().nav_links(
        first
    ).endswith(f"]({second}.ipynb) →")
    assert open_course().nav_links(last).startswith("← [") and open_course().nav_links(last).endswith(
        "[Glossary](glossary.md)"
    )
    assert (
        open_course().nav_links(last, (first, last))
        == f"← [{open_course().heading(first)}]({first}.ipynb) | [Glossary](glossary.md)"
    )


@pytest.mark.parametrize("name", open_course().lessons())
def test_numbers_that_prose_quotes_are_those_of_the_stored_run(name):
    """Each quoted number has a value of the executed notebook, and each sentence in both notebooks has that value."""
    asked = [
        one.text
        for cell in percent.learner_cells(open_course().cells(name))
        if cell.role == "prose"
        for one in percent.quotes(cell.text)
    ]
    assert [expression for expression, _ in open_course().quoted_values(name)] == asked
    said = iter(open_course().quoted_values(name))
    wanted = [
        percent.fill_values(cell.text, said)
        for cell in percent.learner_cells(open_course().cells(name))
        if cell.role == "prose" and percent.quotes(cell.text)
    ]
    for path in (open_course().notebook_path(name), open_course().solution_path(name)):
        pages = "\n".join(texts(json.loads(path.read_text(encoding="utf-8")))) if wanted else ""
        for text in wanted:
            assert all(line in pages for line in text.splitlines() if line.strip() and line[0] not in "@"), (
                path.name,
                text,
            )


@pytest.mark.parametrize("name", open_course().lessons())
def test_below_each_prediction_with_options_is_its_call_and_its_answer_is_one_of_them(name):
    cells = ["".join(cell["source"]) for cell in open_course().handout_notebook(name)["cells"]]
    asked = [at for at, text in enumerate(cells) if percent.is_folded(text)]
    predictions = percent.predictions(open_course().cells(name), open_course().quoted_values(name))
    for number, (at, prediction) in enumerate(zip(asked, predictions, strict=True), 1):
        if letters := percent.options(cells[at]):
            assert cells[at + 1] == f'from grader import predict\n\npredict("{name[:2]}.{number}", "{letters}")'
            assert "{{" not in prediction.answer + prediction.wrong and prediction.answer in cells[at]
            assert re.match(r"\*\*([A-H])\b", prediction.answer)[1] in letters
