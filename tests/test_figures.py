"""The shared look: what is drawn, what is said of it, and that nothing leaks into a learner's own plots."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.patches import Rectangle

from grader import figures
from grader.figures import COLOURS, matrix, panels, picture, show
from tests.conftest import ROOT


def texts_in(ax):
    return [text.get_text() for text in ax.texts]


def pixels(drawn):
    return imread(io.BytesIO(drawn.png))


def test_importing_figures_loads_no_matplotlib():
    code = "import sys; from grader import figures; sys.exit('matplotlib' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_figures_of_a_lesson_are_found_by_name_and_unknown_ones_are_not():
    assert figures.three_tokens.whole_step.__name__ == "whole_step"
    with pytest.raises(AttributeError, match="lesson_99"):
        figures.lesson_99  # noqa: B018
    with pytest.raises(AttributeError, match="^nothing is not in this installation"):
        figures.nothing  # noqa: B018


def test_small_matrices_carry_their_numbers_and_axis_names():
    ax = matrix([[0.25, 0.75], [1.0, 0.0]], "Weights", rows=["the", "cat"], columns=["the", "cat"])
    assert texts_in(ax) == ["0.25", "0.75", "1.00", "0.00"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("key position", "query position", "Weights")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["the", "cat"]
    assert ax.images[0].get_clim() == (0, 1)


def test_large_matrices_get_a_colour_bar_in_place_of_numbers():
    ax = matrix(np.zeros((9, 8)), "Scores", kind="scores")
    assert not ax.texts
    assert len(ax.figure.axes) == 2


def test_scores_and_differences_diverge_around_zero_and_limits_can_be_shared():
    assert matrix([[3.0, -1.0]], "", kind="scores").images[0].get_clim() == (-3, 3)
    assert matrix([[0.0, 0.0]], "", kind="difference").images[0].get_clim() == (-1, 1)
    assert matrix([[3.0, -1.0]], "", kind="scores", limits=(-5, 5)).images[0].get_clim() == (-5, 5)
    assert matrix([[2.0, 2.0]], "", kind="values").images[0].get_clim() == (2, 3)


def test_missing_numbers_are_marked_without_colour():
    ax = matrix([[np.nan, 1.0], [-np.inf, 2.0]], "", kind="scores")
    assert texts_in(ax) == ["nan", "1", "−∞", "2"]
    hatched = [patch for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_hatch()]
    assert len(hatched) == 1


def test_numbers_stay_readable_on_every_cell():
    """Contrast of text and cell after WCAG 2: 4.5 is the least for text of this size."""

    def luminance(rgb):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb[:3]]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    for kind, low in (("weights", 0), ("values", 0), ("scores", -1)):
        ax = matrix(np.linspace(low, 1, 25).reshape(5, 5), "", kind=kind)
        image = ax.images[0]
        for text, number in zip(ax.texts, image.get_array().ravel(), strict=True):
            one = luminance(image.cmap(image.norm(number)))
            other = luminance(matplotlib.colors.to_rgb(text.get_color()))
            contrast = (max(one, other) + 0.05) / (min(one, other) + 0.05)
            assert contrast > 4.5, (kind, float(number), contrast)


def test_matrix_refuses_what_it_cannot_draw():
    with pytest.raises(ValueError, match=r"2-D array; got shape \(3,\)"):
        matrix(np.zeros(3), "")
    with pytest.raises(ValueError, match="got 'heat'"):
        matrix(np.zeros((2, 2)), "", kind="heat")


def test_panels_returns_a_list_and_drops_spare_axes():
    fig, axes = panels(5, columns=3)
    assert len(axes) == 5 and len(fig.axes) == 5
    fig, (ax,) = panels(1)
    assert ax.figure is fig


def test_titles_are_wrapped_where_they_would_run_into_each_other_or_over_the_edge():
    """Also those that a lesson's own code sets; as measured, so with any font."""
    fig, axes = panels(3)
    for ax in axes:
        ax.set_title("A title that is far too long for one of three panels, with $a + b + c$ in it")
    fig.suptitle("And one above all of them, " + "which is longer than the figure is wide, " * 4)
    picture(fig, alt="three empty panels")
    fig.draw_without_rendering()  # at the figure's own resolution again
    boxes = [ax.title.get_window_extent() for ax in axes]
    assert all(one.x1 < other.x0 for one, other in zip(boxes, boxes[1:], strict=False))
    for box in (*boxes, fig.texts[0].get_window_extent()):
        assert box.x0 >= 0 and box.x1 <= fig.bbox.width
    assert "$a\u00a0+\u00a0b\u00a0+\u00a0c$" in axes[0].get_title() and "\n" in axes[0].get_title()
    fig, (ax,) = panels(1)
    ax.set_title("A short one")
    picture(fig, alt="an empty panel")
    assert ax.get_title() == "A short one"


def test_every_machine_draws_with_the_font_that_matplotlib_ships():
    fig, (ax,) = panels(1)
    ax.set_title("Weights")
    picture(fig, alt="an empty panel")
    assert ax.title.get_fontfamily() == ["DejaVu Sans"]


def test_a_slider_moves_a_picture_that_is_no_widget(monkeypatch):
    """A notebook that is opened again has no kernel behind its widgets; what is an output of the cell is still there."""
    from ipywidgets import FloatSlider

    shown, updated = [], []

    class Handle:
        def update(self, new):
            updated.append(new.alt)

    monkeypatch.setattr(
        "IPython.display.display", lambda what, display_id=None: shown.append((what, display_id)) or Handle()
    )
    control = FloatSlider(1.0, min=0, max=5)
    figures.follow(lambda value: picture(panels(1)[0], alt=f"at {value}"), control)
    assert shown[0] == (control, None) and (shown[1][0].alt, shown[1][1]) == ("at 1.0", True)
    control.value = 2.5
    assert updated == ["at 2.5"]


def test_several_controls_stand_in_one_box_and_each_moves_the_picture(monkeypatch):
    from ipywidgets import IntSlider, VBox

    shown, updated = [], []

    class Handle:
        def update(self, new):
            updated.append(new.alt)

    monkeypatch.setattr("IPython.display.display", lambda what, display_id=None: shown.append(what) or Handle())
    layer, head = IntSlider(3, 0, 9), IntSlider(1, 0, 9)
    figures.follow(lambda *values: picture(panels(1)[0], alt=f"at {values}"), layer, head)
    assert isinstance(shown[0], VBox) and shown[0].children == (layer, head) and shown[1].alt == "at (3, 1)"
    head.value, layer.value = 2, 4
    assert updated == ["at (3, 2)", "at (4, 2)"]


def test_an_arrow_reaches_its_end_on_axes_of_equal_scale_that_show_it():
    _, (ax,) = panels(1)
    figures.plane.arrow(ax, (1, 2), reach=3)
    figures.plane.arrow(ax, (-1, 0.5), reach=3)
    assert [annotation.xy for annotation in ax.texts if annotation.arrow_patch] == [(1, 2), (-1, 0.5)]
    assert (ax.get_xlim(), ax.get_aspect()) == ((-3, 3), 1) and ax.get_ylim()[0] < 0 and ax.get_ylim()[1] == 3


def test_a_picture_is_an_image_with_alternative_text_in_quotes_and_all():
    fig, (ax,) = panels(1, width=3, height=2)
    ax.plot([0, 1], [0, 1])
    drawn = picture(fig, alt='rows "sum" to 1,\n  each < 2')
    bundle = drawn._repr_mimebundle_()
    assert bundle["text/plain"] == 'rows "sum" to 1, each < 2' == repr(drawn)
    assert 'alt="rows &quot;sum&quot; to 1, each &lt; 2"' in bundle["text/html"]
    assert 'width="304"' in bundle["text/html"] and "data:image/png;base64," in bundle["text/html"]
    assert pixels(drawn).shape[:2] == (384, 576)  # twice the size on screen, without its margin
    assert pixels(drawn)[..., :3].min() < 0.9  # something is drawn


def test_the_same_figure_gives_the_same_bytes():
    def draw():
        return picture(matrix([[0.5, 0.5]], "Weights").figure, alt="two equal weights").png

    assert draw() == draw()


def test_a_figure_without_alternative_text_is_refused():
    with pytest.raises(ValueError, match="alternative text"):
        picture(panels(1)[0], alt="  ")


def test_show_prints_the_text_where_there_is_no_notebook_and_displays_where_there_is(capsys, monkeypatch):
    fig, _ = panels(1)
    assert show(fig, alt="an empty panel") is None
    assert capsys.readouterr().out == "an empty panel\n"

    import IPython
    import IPython.display

    shown = []
    monkeypatch.setattr(IPython, "get_ipython", lambda: object())
    monkeypatch.setattr(IPython.display, "display", shown.append)
    show(panels(1)[0], alt="an empty panel")
    assert [drawn.alt for drawn in shown] == ["an empty panel"]
    assert capsys.readouterr().out == ""


def test_a_learners_own_settings_stay_as_they_are():
    before = dict(matplotlib.rcParams)
    picture(matrix(np.eye(3), "Weights").figure, alt="identity")
    assert dict(matplotlib.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not matplotlib.pyplot.get_fignums()


def test_the_palette_is_okabe_and_itos():
    assert (COLOURS["blue"], COLOURS["vermillion"], COLOURS["green"]) == ("#0072B2", "#D55E00", "#009E73")


def test_lesson_00_shows_where_the_hard_answer_jumps(capsys):
    degrees = np.linspace(0, 90, 181)
    figures.start_here.turning_query(degrees, np.where(degrees < 45, 1.0, 0.0), 1 - degrees / 90)
    assert "The hard look-up jumps from 1 to 0 at 45.0 degrees" in capsys.readouterr().out
    asked = np.array([20.0, 21.0, 22.0])
    hard, soft, line = np.array([32.0, 32.0, 66.0]), np.array([50.0, 59.0, 66.0]), np.array([60.0, 65.0, 70.0])
    figures.start_here.stopping(asked, asked * 3, asked, hard, soft, line)
    assert "the staircase says 32 feet, the blend 59, the line 65" in capsys.readouterr().out


def test_lesson_00_opens_with_four_positions_of_the_query_until_the_slider_moves(monkeypatch):
    followed = []
    monkeypatch.setattr(figures.start_here, "follow", lambda draw, slider: followed.extend((draw, slider)))
    figures.start_here.moving_query()
    draw, slider = followed
    assert (slider.min, slider.max) == (0, 90)
    strip = draw(slider.value).alt
    assert strip.count("With the query turned by") == 4
    assert "turned by 0 degrees" in strip and "the answer is 90% animal and 10% street" in strip
    assert draw(45).alt.count("With the query turned by") == 1
    assert "50% animal and 50% street" in draw(45).alt and "10% animal and 90% street" in draw(90).alt


def test_lesson_01_describes_what_it_draws(capsys):
    q, k, v = np.eye(2), np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([[10.0, 0.0], [0.0, 10.0]])
    names = ["cat", "it"]
    weights = np.exp(q @ k.T / np.sqrt(2))
    weights = weights / weights.sum(axis=1, keepdims=True)
    figures.three_tokens.queries_and_keys(q, k, names)
    figures.three_tokens.scores_map(q @ k.T, names)
    figures.three_tokens.whole_step(q, k, v, weights, weights @ v, names)
    figures.three_tokens.impossible_outputs(v, (weights @ v)[0], [[5.3, 4.2]])
    figures.three_tokens.longer_query(
        k, q[0], np.array([0.0, 1.0, 2.0]), np.array([[0.5, 0.5], [0.4, 0.6], [0.2, 0.8]]), target=1
    )
    said = capsys.readouterr().out
    assert "it has the dot products 1 with cat, 0 with it" in said
    assert "Weights, a row for each query: 0.5, 0.5; 0.6698, 0.3302." in said
    assert "The printed results 5.3, 4.2 lie below it" in said
    assert (
        "0, where each key has 0.50, to its full length, where key 1 has 0.60, and to twice that, where it has 0.80"
        in said
    )


def drawn_machine(monkeypatch, **how):
    kept = {}
    monkeypatch.setattr(figures.machine, "show", lambda fig, alt: kept.update(fig=fig, alt=alt))
    figures.machine.draw(**how)
    return kept["fig"].axes[0], kept["alt"]


def test_the_machine_shows_the_lit_parts_in_colour_and_the_others_pale(monkeypatch):
    ax, alt = drawn_machine(monkeypatch, lit=("query", "key", "scores"))
    ink = {text.get_text(): text.get_color() for text in ax.texts}
    assert ink["query"] == COLOURS["vermillion"] and ink["key"] == COLOURS["blue"]
    assert ink["weights"] == ink["output"] == ink["tokens"] != ink["scores"]
    assert "In color: query, key, scores; the other parts are pale." in alt


def test_the_machine_draws_what_its_own_vectors_give(monkeypatch):
    ax, alt = drawn_machine(monkeypatch)
    written = [text.get_text() for text in ax.texts]
    assert "pale" not in alt
    scores = figures.machine.KEYS @ figures.machine.QUERY / 2
    weights = np.exp(scores) / np.exp(scores).sum()
    assert all(f"{number:.1f}" in written for number in scores) and all(
        f"{number:.2f}" in written for number in weights
    )


def test_the_machine_draws_a_lessons_own_table_with_its_numbers(monkeypatch):
    keys, values = np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([[10.0, 0.0], [0.0, 10.0]])
    table = figures.machine.Table(("cat", "it"), "it", np.array([2.0, 3.0]), keys, values)
    ax, alt = drawn_machine(monkeypatch, lit=figures.machine.PARTS, table=table, scaled=False)
    written = [text.get_text() for text in ax.texts]
    assert {"2", "3", "10", "5.0", "2.0", "the table's numbers"} <= set(written)  # 5 = 2 · 1 + 3 · 1
    assert "with the numbers of the table" in alt and "cat 5.0 and 0.89, it 2.0 and 0.11" in alt


def test_the_machine_shows_plain_dot_products_where_the_scale_is_still_to_come(monkeypatch):
    ax, alt = drawn_machine(monkeypatch, lit=("query", "key", "scores"), scaled=False)
    written = [text.get_text() for text in ax.texts]
    products = figures.machine.KEYS @ figures.machine.QUERY
    weights = np.exp(products / 2) / np.exp(products / 2).sum()
    assert all(f"{number:.1f}" in written for number in products) and all(
        f"{number:.2f}" in written for number in weights
    )
    assert "q · k" in written and "÷ √d$_k$, then softmax" in written
    assert "plain dot products; the division by √d_k and softmax turn them into weights" in alt


def test_the_machine_knows_no_other_part():
    with pytest.raises(ValueError, match="tokens, query, key, value, scores, weights, blend, output; got softmax"):
        figures.machine.draw(lit=("softmax",))


# --- figures draw, and nothing else ------------------------------------------------------------

# What a lesson is about stands in its cells, where learners read and edit it. A meter says how far a training of theirs is.
TRAINS = {"backward", "zero_grad", "manual_seed_all"}
MEASURES = {
    "perf_counter",
    "perf_counter_ns",
    "process_time",
    "monotonic",
    "timeit",
    "max_memory_allocated",
    "reset_peak_memory_stats",
    "elapsed_time",
}
DIFFERENTIATES = {"torch.autograd.grad", "torch.autograd.functional.jacobian", "torch.func.grad"}
METER = {"meter.py": {"perf_counter"}}
FIGURES = sorted((ROOT / "grader" / "figures").glob("*.py"))


def experiments(path: Path) -> list[str]:
    """What a module of figures does that is no drawing: optimizers, gradients, clocks and counts of memory, by line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = METER.get(path.name, set())
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            if (
                dotted in DIFFERENTIATES
                or node.attr in TRAINS | MEASURES - allowed
                or dotted.startswith(("torch.optim.", "optim."))
            ):
                found.append(f"{path.name}:{node.lineno}: {dotted}")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("torch.optim", "timeit")):
            found.append(f"{path.name}:{node.lineno}: from {node.module}")
        elif isinstance(node, ast.Name) and node.id in MEASURES - allowed:
            found.append(f"{path.name}:{node.lineno}: {node.id}")
    return found


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.name)
def test_a_module_of_figures_holds_no_experiment_no_training_and_no_measurement(path):
    assert experiments(path) == []


@pytest.mark.parametrize(
    "line",
    [
        "loss.backward()",
        "torch.optim.SGD(p)",
        "from torch.optim import Adam",
        "time.perf_counter()",
        "timeit.repeat(f)",
        "torch.autograd.grad(y, x)",
        "torch.cuda.max_memory_allocated()",
    ],
)
def test_such_a_line_is_found(tmp_path, line):
    (tmp_path / "lesson_99.py").write_text(f"def draw():\n    {line}\n")
    assert len(experiments(tmp_path / "lesson_99.py")) == 1
