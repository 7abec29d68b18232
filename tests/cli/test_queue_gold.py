"""Gold comments by command line."""

import json

import pytest
from sqlalchemy import select

from installation import MONDAY
from modwatch.cli.main import main
from modwatch.installation.resources import open_resources
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue.intake import enqueue
from modwatch.review.queue.items import NewItem
from modwatch.review.tables import gold_comment
from review.labelling import label_next

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

PRIVATE = "what nobody may repeat"

HEADER = "comment_id,text,label,source"


@pytest.fixture(autouse=True)
def _home(install, monkeypatch):
    for name, value in install().env.items():
        monkeypatch.setenv(name, value)


def stored() -> dict[str, tuple[int, str | None, bool]]:
    """Return the label, the language and whether it is in use, by the comment's id."""
    with open_resources() as resources, resources.database.connect() as connection:
        rows = connection.execute(select(gold_comment)).all()
    return {
        row.comment_id: (row.label, row.shown.get("language"), row.retired_at is None)
        for row in rows
    }


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was printed, which is one line and holds no text of a comment."""
    out, err = capsys.readouterr()
    result = out + err
    assert result.count("\n") == 1
    assert PRIVATE not in result
    return result


def test_a_file_is_added_once_and_retired_by_id(tmp_path, capsys):
    table, lines = tmp_path / "gold.csv", tmp_path / "gold.jsonl"
    table.write_text(f"{HEADER},language\ng1,{PRIVATE},1,panel,\ng2,{PRIVATE},0,panel,de\n")
    record = {"comment_id": "g3", "text": PRIVATE, "label": 1, "source": "panel"}
    lines.write_text(f"{json.dumps(record)}\n")
    for file, new in ((table, 2), (table, 0), (lines, 1)):
        assert main(["queue", "gold", "add", str(file)]) == 0
        used = f"{file}: {'Header lines 1, ' * (file is table)}Used records"
        assert printed(capsys) == f"{new} new gold comments; {used} {1 + (file is table)}\n"
    assert main(["queue", "gold", "retire", "g2", "g3", "g4"]) == 0
    assert printed(capsys) == "2 gold comments retired\n"
    assert stored() == {"g1": (1, None, True), "g2": (0, "de", False), "g3": (1, None, False)}


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("gold.csv", f"{HEADER}\ng1,{PRIVATE},1,p\ng2,{PRIVATE},x,p\n", "the first: line 3;"),
        ("gold.csv", f"{HEADER}\ng1,{PRIVATE},1,p\n{PRIVATE}\n", "the first: line 3;"),
        ("gold.csv", f"{PRIVATE},{PRIVATE}\n1,2\n", "it has column 1, column 2"),
        ("gold.csv", f"{HEADER}\ng1,{PRIVATE},7,p\n", "the label is neither 1 nor 0"),
        ("gold.csv", f"{HEADER}\ng1,\u200b,1,p\n", "blank_text 1 (the first: line 2;"),
        (
            "gold.tsv",
            f"comment_id\ttext\tlabel\ng1\t{PRIVATE}\t1\n",
            "no column 'source'; it has comment_id",
        ),
        ("gold.jsonl", f'{{"text": "{PRIVATE}"}}\n', "no column 'comment_id', 'label', 'source'"),
        ("gold.jsonl", f"{PRIVATE}\n", "the first: line 1;"),
        ("gold.csv", "", "it has no columns"),
        ("gold.doc", PRIVATE, "is unknown"),
    ],
)
def test_a_file_comes_in_whole_or_not_at_all(tmp_path, capsys, name, content, problem):
    (tmp_path / name).write_text(content)
    assert main(["queue", "gold", "add", str(tmp_path / name)]) == 1
    assert problem in printed(capsys)
    assert stored() == {}


def test_the_encoding_of_a_file_is_an_option(tmp_path, capsys):
    file = tmp_path / "gold.txt"
    file.write_bytes(f"{HEADER}\ng1,caf\xe9 {PRIVATE},ja,p\n".replace(",", ";").encode("cp1252"))
    assert main(["queue", "gold", "add", str(file)]) == 1
    assert "undecodable_text 1 (the first: line 2;" in printed(capsys)
    assert main(["queue", "gold", "add", str(file), "--encoding", "cp1252"]) == 0
    assert printed(capsys).startswith("1 new gold comments; ")
    assert stored() == {"g1": (1, None, True)}


def test_a_file_that_is_not_there_is_one_sentence(tmp_path, capsys):
    assert main(["queue", "gold", "add", str(tmp_path / "none.csv")]) == 1
    assert "none.csv does not exist" in printed(capsys)


def test_what_people_agreed_on_becomes_gold(capsys):
    comment = NewItem(
        comment_id="c1", text=PRIVATE, reason="uncertainty", stratum=0, inclusion_probability=1.0,
        rank=1, review_score=0.2, prob=0.3, uncertainty=0.2, model_version="1", labels_wanted=2,
    )  # fmt: skip
    with open_resources() as resources:
        enqueue(resources.database, [comment], MONDAY)
        ann, ben = (
            create_moderator(resources.database, name, "moderator") for name in ("ann", "ben")
        )
        item = str(label_next(resources.database, ann).item_id)
    assert main(["queue", "gold", "add", "--item", item]) == 1
    assert f"item {item} is not a decided review item" in printed(capsys)
    with open_resources() as resources:
        label_next(resources.database, ben)
    assert main(["queue", "gold", "add", "--item", item]) == 0
    assert printed(capsys) == "1 new gold comments\n"
    assert stored() == {"c1": (1, None, True)}
    for neither_or_both in ([], ["a.csv", "--item", item]):
        with pytest.raises(SystemExit, match="2"):
            main(["queue", "gold", "add", *neither_or_both])
