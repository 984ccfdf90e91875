"""What the instructors' page shows is read as it stands there."""

from __future__ import annotations

from grader.grading.journal import load
from tests.grading.test_handed_in import hand_in
from tests.submission.test_roster import CANVAS
from tests.test_readme import GUIDES


def test_the_example_of_a_class_s_settings_is_read(graded, tmp_path):
    folder = hand_in(tmp_path / "class", **{"ada.lovelace": ("01_three_tokens",), "g.hopper": ("01_three_tokens",)})
    (folder / "roster.csv").write_text(CANVAS.replace("1906-12-09", "g.hopper"))
    (folder / "class.toml").write_text(GUIDES["instructors"].partition("```toml\n")[2].partition("```")[0])
    assert graded(folder, tmp_path / "out") == 0
    about = load(tmp_path / "out" / "journal.jsonl").settings
    assert about.lessons == ("01_three_tokens", "05_numpy_to_pytorch")
    assert (about.weights, about.grace) == ({"softmax_rows": 3}, 900)
    assert about.due == "2026-11-20T22:59:00+00:00" and about.penalty == (10, True)
