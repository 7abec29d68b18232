import json

from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.account import Account
from modwatch.data.duplicates import near_duplicates, plain_text
from modwatch.models.data_report import data_report

LONG = "the committee decided that the old stone bridge over the river must be closed for a year"


def test_the_report_counts_what_there_is():
    account = Account(read=8, first={"no_label": "a.csv, line 3"})
    account.places.update(header=1, no_label=2, used=5)
    texts = ["You fool!", "you  FOOL", "you fool", "kind words here", LONG]
    report = data_report(
        texts,
        [1, 0, 1, 0.25, 0],
        stream=[LONG.replace("a year", "two years")],
        languages=["en", "en", None, "en", "de"],
        account=account,
    )
    assert (report.rows, report.toxic, report.contested) == (5, 2, 1)
    assert (report.duplicates, report.contradictions, report.leaks) == (2, 2, 1)
    assert report.languages == {"en": 3, "unknown": 1, "de": 1}
    text = "\n".join(report.lines())
    for expected in ("5, 2 toxic (40.00%)", "1 rows (nearly) equal", "en 3"):
        assert expected in text
    assert text.splitlines()[-4:] == [
        "source           8 lines and records; of these:",
        "                1  Header lines",
        "                2  left out: no_label, the first: a.csv, line 3",
        "                5  Used records",
    ]
    assert "fool" not in text
    stored = json.loads(json.dumps(report.to_json()))
    assert stored["account"]["places"] == {"header": 1, "no_label": 2, "used": 5}
    assert stored["rows"] == 5


def test_nothing_to_report_on():
    report = data_report([], [])
    assert (report.rows, report.characters) == (0, (0, 0, 0, 0))
    assert "not compared" in "\n".join(report.lines())


def test_a_changed_word_makes_a_near_duplicate_and_another_text_none():
    found = near_duplicates([LONG.replace("stone", "iron"), LONG[::-1], ""], [LONG, ""])
    assert found.tolist() == [True, False, False]


def test_short_texts_must_be_equal():
    assert near_duplicates(["go away", "Go away!"], ["go home"]).tolist() == [False, False]
    assert near_duplicates(["Go away!"], ["go away"]).tolist() == [True]


words = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=12).map(" ".join)


@given(texts=st.lists(words, min_size=1, max_size=5), of=st.lists(words, min_size=1, max_size=5))
def test_it_is_the_jaccard_similarity_of_shingles(texts, of):
    def shingles(text: str) -> set[tuple[str, ...]]:
        parts = text.split()
        return {tuple(parts[k : k + 3]) for k in range(max(1, len(parts) - 2))}

    expected = [
        any(
            len(shingles(text) & shingles(other)) / len(shingles(text) | shingles(other)) >= 0.5
            for other in of
        )
        for text in texts
    ]
    assert near_duplicates(texts, of).tolist() == expected


@given(st.text())
def test_plain_text_is_its_own_plain_text(text):
    assert plain_text(plain_text(text)) == plain_text(text)
