"""A roster is read as grade books write it; what it cannot be is one sentence."""

from __future__ import annotations

import pytest

from grader.submission.roster import read_roster
from grader.util.errors import InputError

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Homework (815),Current Score
,,,,,Manual Posting,
    Points Possible,,,,,20,(read only)
"Lovelace, Ada",4711,1815-12-10,ada.lovelace,Sec A,,
"Hopper, Grace",4712,1906-12-09,g.hopper,"Sec A and Sec B",,
"Student, Test",4713,,9f86d081884c7d659a2f,Sec A,,
"""
MOODLE = """Identifier,"Full name","Email address",Status,Grade
"Participant 31","Ada Lovelace",ada@example.org,Submitted,
"Participant 32","Grace Hopper",grace@example.org,"No submission",
"""
GERMAN = """ID,"Vollständiger Name",E-Mail-Adresse,Status,Bewertung,Bestwertung,"Bewertung kann geändert werden"
Teilnehmer/in31,"Ada Lovelace",ada@example.org,"Zur Bewertung abgegeben",,"14,00",Ja
Teilnehmer/in32,"Grace Hopper",grace@example.org,"Keine Abgabe",,"14,00",Ja
"""
FORMS = {
    "canvas": (CANVAS, "login", ["ada.lovelace", "g.hopper"]),
    "moodle worksheet": (MOODLE, "email", ["ada@example.org", "grace@example.org"]),
    "moodle worksheet, in German": (GERMAN, "email", ["ada@example.org", "grace@example.org"]),
    "moodle users, in German": (
        "Vorname;Nachname;Anmeldename\nAda;Lovelace;ada\nGrace;Hopper;ghop\n",
        "login",
        ["ada", "ghop"],
    ),
    "moodle users": (
        "Username;First name;Last name;ID number\nada;Ada;Lovelace;1\nghop;Grace;Hopper;2\n",
        "login",
        ["ada", "ghop"],
    ),
    "gradescope": (
        "First Name,Last Name,SID,Email,Sections\nAda,Lovelace,1,ada@x.org,\nGrace,Hopper,2,gh@x.org,\n",
        "email",
        ["ada@x.org", "gh@x.org"],
    ),
    "github": (
        '"identifier","github_username","github_id","name"\n"Ada Lovelace","adal","1","Ada"\n"Grace Hopper","ghop","2","G"\n',
        "github",
        ["adal", "ghop"],
    ),
    "tabs": ("id\tfirst_name\tlast_name\n1\tAda\tLovelace\n2\tGrace\tHopper\n", "number", ["1", "2"]),
}


@pytest.mark.parametrize("said, field, keys", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_each_grade_book_s_roster_is_read(tmp_path, said, field, keys, encoding):
    (tmp_path / "roster.csv").write_bytes(said.encode(encoding))
    found = read_roster(tmp_path / "roster.csv")
    assert [one.key for one in found.people] == [one[field] for one in found.people] == keys and found.notes == ()


@pytest.mark.parametrize(
    "form", [*(form for form in FORMS if form.startswith("moodle")), "canvas", "gradescope", "tabs"]
)
def test_a_name_is_found_in_any_order_of_its_parts(tmp_path, form):
    (tmp_path / "roster.csv").write_text(FORMS[form][0])
    found = read_roster(tmp_path / "roster.csv")
    for name in ("Ada Lovelace", "ada  lovelace", "ADA LOVELACE"):
        assert found.person("name", name) is found.people[0]
    assert found.person("name", "Ada") is None and found.person("name", "") is None


def test_canvas_ids_are_those_of_canvas(tmp_path):
    (tmp_path / "roster.csv").write_text(CANVAS)
    ada = read_roster(tmp_path / "roster.csv").person("canvas", "4711")
    assert (ada["name"], ada["number"], ada["login"], ada["section"]) == (
        "Lovelace, Ada",
        "1815-12-10",
        "ada.lovelace",
        "Sec A",
    )


def test_the_column_that_names_the_folders_may_be_named(tmp_path):
    (tmp_path / "roster.csv").write_text(CANVAS)
    found = read_roster(tmp_path / "roster.csv", "sis user id")
    assert [one.key for one in found.people] == ["1815-12-10", "1906-12-09"] and found.notes == ()
    assert found.people[0]["number"] == "1815-12-10" and found.person("key", "1815-12-10")["login"] == "ada.lovelace"


@pytest.mark.parametrize("form", ["moodle worksheet", "moodle worksheet, in German"])
def test_a_participant_is_a_number_in_any_language(tmp_path, form):
    (tmp_path / "roster.csv").write_text(FORMS[form][0])
    found = read_roster(tmp_path / "roster.csv")
    assert found.person("participant", "32") is found.people[1] and "participant" in found.filled_columns


def test_a_column_whose_heading_nobody_knows_may_be_named(tmp_path):
    (tmp_path / "roster.csv").write_text("Adresse de courriel,Nom\nada@x.org,Ada\n,Grace\n,\n")
    found = read_roster(tmp_path / "roster.csv", "adresse de courriel")
    assert [one.key for one in found.people] == ["ada@x.org"] and found.person("key", "Ada@x.org")
    assert found.notes == (f"{tmp_path / 'roster.csv'}: no Adresse de courriel in line 3; left out.",)


def test_two_of_one_name_are_nobody(tmp_path):
    (tmp_path / "roster.csv").write_text("Username,Full name\nli1,Li Na\nli2,Li Na\n")
    found = read_roster(tmp_path / "roster.csv")
    assert (
        found.person("name", "Li Na") is None
        and found.person("key", "li1") is found.people[0]
        and found.person("key", "LI2 ") is found.people[1]
    )


def test_a_row_ends_with_its_line_alone(tmp_path):
    """Not at what a word processor or a page puts into a cell's text, and not within quotation marks."""
    cells = ["ada", "Ada\x0bAugusta", "Lovelace\u2028", '"of\r\nLovelace\x85"']
    (tmp_path / "roster.csv").write_text(
        "Username,First name,Last name,Title\r\n" + ",".join(cells) + "\r\nbob\r\n", "utf-8", newline=""
    )
    ada, bob = read_roster(tmp_path / "roster.csv").people
    assert ada.cells == ("ada", "Ada\x0bAugusta", "Lovelace", "of\r\nLovelace") and bob.key == "bob"


def test_rows_without_the_key_are_told(tmp_path):
    (tmp_path / "roster.csv").write_text("Username,Full name\nada,Ada\n,Grace\n")
    assert read_roster(tmp_path / "roster.csv").notes == (
        f"{tmp_path / 'roster.csv'}: no Username in line 3; left out.",
    )


@pytest.mark.parametrize(
    "said, by, told",
    [
        (
            b"Grade,Weight\n1,2\n",
            "",
            "no column that identifies learners, such as SIS Login ID, Username or Email; it has Grade, Weight",
        ),
        (b"Username\nada\n", "Matrikel", "has no column 'Matrikel'; it has Username."),
        (b"Username,Full name\nada,A\nbob,B\nADA,C\n", "", "lines 2 and 4 both have 'ADA' as Username"),
        ("Username,Full name\nada,Zoë\n".encode("latin-1"), "", "is not UTF-8 (line 2); save it as 'CSV UTF-8'"),
        (b"PK\x03\x04 xlsx", "", "is a spreadsheet or an archive; save it as CSV"),
        (b"Username\n../ada\n", "", "line 2: '../ada' can't be a folder's name; name another column with --by"),
        (b"Username\nsolutions\n", "", "can't be a folder's name"),
        (b"Username\nclass.toml\n", "", "can't be a folder's name"),
        (b"Username\n", "", "has no learner below its header row"),
        (b"", "", "no column that identifies learners"),
        (b"Username\na\0b\n", "", "is not text"),
    ],
)
def test_a_roster_that_is_none_is_a_sentence(tmp_path, said, by, told):
    (tmp_path / "roster.csv").write_bytes(said)
    with pytest.raises(InputError) as error:
        read_roster(tmp_path / "roster.csv", by)
    assert told in str(error.value)


def test_a_folder_is_no_roster(tmp_path):
    with pytest.raises(InputError, match="is a folder; a roster is a CSV file"):
        read_roster(tmp_path)
