"""Labelled texts from files and databases."""

import csv
import io
import json
import math
import sqlite3
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modwatch.common.errors import SourceError
from modwatch.data.sources.labelled import LabelColumns, LabelledTexts, read_labelled
from modwatch.data.sources.values import Vocabulary


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    return written(path, "".join(json.dumps(row) + "\n" for row in rows))


def database(path: Path, rows: list[tuple[Any, ...]]) -> str:
    names = "abcd"[: len(rows[0])]
    with sqlite3.connect(path) as opened:
        opened.execute(f"CREATE TABLE comment ({', '.join(names)})")
        marks = ", ".join("?" * len(names))
        opened.executemany(f"INSERT INTO comment VALUES ({marks})", rows)
    opened.close()
    return f"sqlite:///{path}"


def words(*toxic: str, other: tuple[str, ...] = ()) -> LabelColumns:
    value = [*(f"{word}=toxic" for word in toxic), *(f"{word}=other" for word in other)]
    return LabelColumns(vocabulary=Vocabulary.of(value))


def closed(found: LabelledTexts) -> bool:
    used = found.account.places["used"]
    return found.account.places.total() == found.account.read and used == len(found.texts)


def test_every_format_gives_the_same(tmp_path):
    rows = pd.DataFrame({"text": ["one", "two", "three"], "label": [1, 0, 1]})
    rows.to_csv(tmp_path / "a.csv", index=False)
    rows.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    rows.to_parquet(tmp_path / "a.parquet")
    rows.to_excel(tmp_path / "a.xlsx", index=False)
    rows.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    with sqlite3.connect(tmp_path / "a.db") as database:
        rows.to_sql("comment", database)
    suffixes = ("csv", "tsv", "parquet", "jsonl", "xlsx")
    sources = [(str(tmp_path / f"a.{suffix}"), None) for suffix in suffixes]
    sources += [(f"sqlite:///{tmp_path / 'a.db'}", "SELECT text, label FROM comment")]
    for source, query in sources:
        found = read_labelled([source], query=query)
        assert found.texts == ("one", "two", "three")
        assert found.labels.tolist() == [1, 0, 1]
        assert closed(found)


class TestLabels:
    @pytest.mark.parametrize(
        ("label", "share"),
        [
            (0.25, 0.25),
            ("0.25", 0.25),
            (True, 1.0),
            ("False", 0.0),
            ("yes", 1.0),
            ("nein", 0.0),
            ([1, 0, 0, 1], 0.5),
            ([True, None, False], 0.5),
            ("[1, 1, 0, 1]", 0.75),
            (["1", "", math.nan, "no"], 0.5),
        ],
    )
    def test_shares_and_votes(self, label, share, tmp_path):
        path = table(tmp_path / "a.jsonl", [{"text": "x", "label": label}])
        assert read_labelled([path]).labels.tolist() == [share]

    @pytest.mark.parametrize(
        "label", [None, "", "  ", math.nan, "\\N", "nan", "NaT", "<NA>", "null", "None", [], [None]]
    )
    def test_a_missing_label_is_counted_and_no_word(self, label, tmp_path):
        rows = [{"text": "x", "label": 1}, {"text": "y", "label": label}, {"text": "z", "label": 0}]
        found = read_labelled([table(tmp_path / "a.jsonl", rows)])
        assert (found.texts, found.labels.tolist()) == (("x", "z"), [1, 0])
        assert found.account.left_out == {"no_label": 1}
        assert found.account.first["no_label"] == "a.jsonl, line 2"
        if label not in ("null", "None", "NaT"):  # which may be words
            found = read_labelled(
                [table(tmp_path / "b.jsonl", [{"text": "x", "label": "hate"}, rows[1]])],
                columns=words("hate"),
            )
            assert (found.texts, found.account.left_out) == (("x",), {"no_label": 1})

    @pytest.mark.parametrize(
        "label", ["5", "-1", "inf", "maybe", "a private remark in it", "[2]", "[", "{}"]
    )
    def test_another_label_stops_with_its_row(self, label, tmp_path):
        path = written(tmp_path / "a.csv", f'text,label\nx,1\ny,"{label}"\nz,"{label}"\n')
        with pytest.raises(SourceError, match=r"2 rows \(the first: a\.csv, line 3\)") as caught:
            read_labelled([path])
        assert "private" not in str(caught.value)

    def test_a_column_of_comments_is_not_listed(self, tmp_path):
        rows = "".join(f"x,private{n}\n" for n in range(60))
        path = written(tmp_path / "a.csv", f"text,label\n{rows}")
        with pytest.raises(SourceError, match=r"60 different values.*--column label=…") as caught:
            read_labelled([path])
        assert "private" not in str(caught.value)


class TestWords:
    def test_without_case_width_or_space(self, tmp_path):
        path = written(tmp_path / "a.csv", "body,class\nx,hate\ny,Fine\nz,HATE \nv,ｆｉｎｅ\n")
        columns = replace(words("Hate", other=("fine",)), text="body", label="class")
        assert read_labelled([path], columns=columns).labels.tolist() == [1, 0, 1, 0]

    @pytest.mark.parametrize(
        ("toxic", "labels", "shown"),
        [
            (["hate", "insult"], ["hate_insult", "normal"], ["'hate_insult' (1)", "'normal' (1)"]),
            (["hate", "insult"], ["Hate/Insult", "hate/insult"], ["'hate/insult' (2)"]),
            (["beleidigung"], ["üble Nachrede", "Üble Nachrede"], ["'üble nachrede' (2)"]),
            (["仇恨"], ["正常"], ["'正常' (1)"]),
            (["2", "3"], ["1", 1.0, "0"], ["'1' (2)", "'0' (1)"]),
            (["toxic"], ["t\u043exic"], [r"'t\u043exic' (1)"]),
            (["toxic"], ["toxic\u200b"], [r"'toxic\u200b' (1)"]),
            (["hate"], [True], ["'true' (1)"]),
        ],
    )
    def test_a_word_that_no_option_names_stops_with_a_list(self, toxic, labels, shown, tmp_path):
        rows = [{"text": "x", "label": label} for label in [*toxic, *labels]]
        with pytest.raises(SourceError, match="that no option names: ") as caught:
            read_labelled([table(tmp_path / "a.jsonl", rows)], columns=words(*toxic))
        for word in shown:
            assert word in str(caught.value)
        assert f"{len(labels)} rows (the first: a.jsonl, line {len(toxic) + 1})" in str(
            caught.value
        )

    def test_the_message_has_the_options_to_copy(self, tmp_path):
        path = written(tmp_path / "a.csv", "text,label\nx,hate\ny,hate|insult\nz,ok\nw,ok\n")
        with pytest.raises(SourceError) as caught:
            read_labelled([path], columns=words("hate"))
        assert str(caught.value).endswith(
            "Say what each means: --value WORD=toxic or --value WORD=other; of people who did not "
            "judge, --value WORD=abstain; where there is no label, --value WORD=missing."
        )

    def test_whoever_abstains_is_on_neither_side(self, tmp_path):
        path = written(tmp_path / "a.csv", "text,label\nx,hate\ny,ok\nz,Unsure\nv,NA\nw,-\n")
        known = Vocabulary.of(["hate=toxic", "ok=other", "unsure=abstain", "-=missing"])
        found = read_labelled([path], columns=LabelColumns(vocabulary=known))
        assert (found.texts, found.account.left_out) == (("x", "y"), {"no_label": 3})

    def test_numbers_are_compared_by_value(self, tmp_path):
        labels = ["2", "2.0", 2, 2.0, " 2 ", "２"]
        path = table(tmp_path / "a.jsonl", [{"text": "x", "label": label} for label in labels])
        assert read_labelled([path], columns=words("2")).labels.tolist() == [1] * 6
        assert read_labelled([path], columns=words(other=("2.0",))).labels.tolist() == [0] * 6

    def test_lists_of_words(self, tmp_path):
        rows = [{"text": "x", "label": ["hate", "normal", None, "Hate"]}]
        found = read_labelled([table(tmp_path / "a.jsonl", rows)],
                              columns=words("hate", other=("normal",)))  # fmt: skip
        assert found.labels == pytest.approx([2 / 3])

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (["hate=toxic", "Hate =other"], "means both toxic and other"),
            (["hate=toxic", "Hate=abstain"], "'Hate' means both toxic and abstain"),
            (["hate=bad"], "write WORD=MEANING in place of 'hate=bad'; it may mean toxic, other"),
            (["=toxic"], "write WORD=MEANING"),
            (["weg=removed", "weg=kept"], "'weg' means both removed and kept"),
        ],
    )
    def test_a_word_means_one_thing(self, value, message):
        with pytest.raises(SourceError, match=message):
            Vocabulary.of(value)


class TestWideVotes:
    COLUMNS = LabelColumns(votes=("ann", "ben", "cy"))

    def test_the_label_is_the_share_of_those_who_voted(self, tmp_path):
        path = written(
            tmp_path / "a.csv",
            "text,ann,ben,cy\nx,1,0,1\ny,,yes,\nz,,,\nw,false,no,0\nv,\\N,nan,1.0\n",
        )
        found = read_labelled([path], columns=self.COLUMNS)
        assert found.texts == tuple("xywv")
        assert found.labels == pytest.approx([2 / 3, 1, 0, 1])
        assert found.account.left_out == {"no_label": 1}
        assert closed(found)

    def test_of_words(self, tmp_path):
        path = written(tmp_path / "a.csv", "text,ann,ben,cy\nx,hate,ok,\ny,ok,ok,odd\n")
        columns = replace(words("hate", other=("ok",)), votes=("ann", "ben", "cy"))
        with pytest.raises(SourceError, match=r"line 3\).*'ann', 'ben', 'cy' that.*'odd' \(1\)"):
            read_labelled([path], columns=columns)

    def test_a_column_named_twice_counts_twice(self, tmp_path):
        path = written(tmp_path / "a.csv", "text,toxic,insult\nx,1,0\ny,1,1\nz,0,1\n")
        columns = LabelColumns(votes=("toxic", "toxic", "insult"))
        found = read_labelled([path], columns=columns)
        assert found.labels == pytest.approx([2 / 3, 1, 1 / 3])


class TestIds:
    COLUMNS = LabelColumns(comment_id="id")

    def test_one_row_a_vote(self, tmp_path):
        path = written(tmp_path / "a.csv", "id,text,label\n1,x,1\n2,y,0\n1,x,0\n1,x,1\n")
        found = read_labelled([path], columns=self.COLUMNS)
        assert found.texts == ("x", "y")
        assert found.labels == pytest.approx([2 / 3, 0])
        assert (found.account.places["used"], found.account.places["merged"]) == (2, 2)
        assert closed(found)

    def test_a_row_that_was_exported_twice_is_one_vote(self, tmp_path):
        rows = "1,x,1,ann\n2,y,0,ann\n1,x,1,ann\n1,x,1,ben\n1,x,0,cem\n"
        path = written(tmp_path / "a.csv", f"id,text,label,person\n{rows}")
        found = read_labelled([path], columns=self.COLUMNS)
        assert found.labels == pytest.approx([2 / 3, 0])
        assert (found.account.places["repeated"], found.account.places["merged"]) == (1, 2)
        assert closed(found)

    @pytest.mark.parametrize("blank", [None, "", "\\N", "\u200b"])
    def test_blank_ids_are_never_one_comment(self, blank, tmp_path):
        ids = ["a", blank, blank, "b", "c"]
        rows = [{"id": key, "text": f"text {n}", "label": n % 2} for n, key in enumerate(ids)]
        url = database(tmp_path / "a.db", [tuple(row.values()) for row in rows])
        query = "SELECT a AS id, b AS text, c AS label FROM comment"
        for source in (url, table(tmp_path / "a.jsonl", rows)):
            found = read_labelled([source], columns=self.COLUMNS, query=query)
            assert found.texts == ("text 0", "text 3", "text 4")
            assert found.account.left_out == {"missing_id": 2}
            assert closed(found)

    def test_most_ids_blank(self, tmp_path):
        path = written(tmp_path / "a.csv", "id,text,label\na,x,1\n,y,0\n,z,0\n")
        with pytest.raises(
            SourceError, match=r"most of 3 records.*missing_id 2 .*line 3.*--column id=…"
        ):
            read_labelled([path], columns=self.COLUMNS)

    def test_ids_are_compared_as_text(self, tmp_path):
        key = uuid.uuid4()
        ids = [17, 17.0, "17", str(key)]
        rows = [
            {"id": value, "text": "y" if "-" in str(value) else "x", "label": 1} for value in ids
        ]
        found = read_labelled([table(tmp_path / "a.jsonl", rows)], columns=self.COLUMNS)
        assert (found.texts, found.account.places["merged"]) == (("x", "y"), 2)

    def test_another_text_of_the_same_id_is_left_out(self, tmp_path):
        path = written(tmp_path / "a.csv", "id,text,label\n1,x,1\n1,other,0\n1,x,1\n2,y,0\n")
        found = read_labelled([path], columns=self.COLUMNS)
        assert (found.texts, found.labels.tolist()) == (("x", "y"), [1, 0])
        assert found.account.left_out == {"other_text_of_id": 1}
        assert found.account.first["other_text_of_id"] == "a.csv, line 3"

    def test_votes_in_several_files(self, tmp_path):
        paths = [written(tmp_path / f"{n}.csv", f"id,text,label\n1,x,{n}\n") for n in range(2)]
        found = read_labelled(paths, columns=self.COLUMNS)
        assert (found.texts, found.labels.tolist()) == (("x",), [0.5])
        assert found.account.read == 4
        assert closed(found)


class TestTexts:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (None, "blank_text"),
            ("\\N", "blank_text"),
            (" \u200b\u3164", "blank_text"),
            ("a\0b", "nul_byte"),
            ("x" * 50_001, "long_text"),
            ("\ud83d", "undecodable_text"),
            (True, "malformed_record"),
            (["a"], "malformed_record"),
            ({"a": 1}, "malformed_record"),
        ],
    )
    def test_a_text_that_cannot_be_a_comment(self, text, reason, tmp_path):
        rows = [{"text": value, "label": 1} for value in ("a", text, "b")]
        found = read_labelled([table(tmp_path / "a.jsonl", rows)])
        assert (found.texts, found.account.left_out) == (("a", "b"), {reason: 1})
        assert found.account.first[reason] == "a.jsonl, line 2"
        assert closed(found)

    def test_typed_values_of_a_database(self, tmp_path):
        rows = [
            (b"one", 1, "k1"),
            (b"caf\xe9", 1, "k2"),
            (None, 1, "k3"),
            (17, b"\x01", b"k4"),
            ("five", None, "k5"),
            ("six", b"\x00", 6),
            ("seven", 0.25, 7.0),
        ]
        url = database(tmp_path / "a.db", rows)
        query = "SELECT a AS text, b AS label, c AS id FROM comment"
        found = read_labelled([url], columns=LabelColumns(comment_id="id"), query=query)
        assert found.texts == ("one", "17", "six", "seven")
        assert found.labels.tolist() == [1, 1, 0, 0.25]
        assert found.account.left_out == {"undecodable_text": 1, "blank_text": 1, "no_label": 1}
        assert found.account.first["no_label"].endswith("a.db, row 5")
        assert (found.account.read, closed(found)) == (7, True)


class TestEncodings:
    ROWS = "".join(f"Grüße aus Köln {n},{n % 2}\n" for n in range(20))
    TEXT = f"text,label\n{ROWS}"

    def test_most_rows_are_undecodable(self, tmp_path):
        encoding = "cp1252"
        (tmp_path / "a.csv").write_bytes(self.TEXT.encode(encoding))
        with pytest.raises(SourceError, match=r"undecodable_text 20 .*a\.csv, line 2.*--encoding"):
            read_labelled([tmp_path / "a.csv"])
        found = read_labelled([tmp_path / "a.csv"], encoding=encoding)
        assert found.texts[3] == "Grüße aus Köln 3"
        assert found.account.left_out == {}

    def test_a_mixture(self, tmp_path):
        mixed = b"text,label\n" + "Köln,1\n".encode() * 3 + "Köln,1\n".encode("cp1252") * 2
        (tmp_path / "a.csv").write_bytes(mixed)
        found = read_labelled([tmp_path / "a.csv"])
        assert (set(found.texts), found.account.left_out) == ({"Köln"}, {"undecodable_text": 2})
        assert found.account.first["undecodable_text"] == "a.csv, line 5"
        assert closed(found)

    def test_no_encoding_of_text(self, tmp_path):
        path = written(tmp_path / "a.csv", self.TEXT)
        for encoding in ("nothing", "hex", "a\0"):
            with pytest.raises(SourceError, match="does not exist; use one such as"):
                read_labelled([path], encoding=encoding)


def test_languages_and_groups(tmp_path):
    rows = [
        {"text": "x", "label": 1, "lang": "de", "groups": ["women", " ", None]},
        {"text": "y", "label": 0, "lang": "", "groups": '["men"]'},
        {"text": "z", "label": 0, "lang": math.nan, "groups": None},
        {"text": "w", "label": 0, "lang": "NaN"},
        {"text": "v", "label": 0, "lang": "en", "groups": {"women": 1}},
    ]
    columns = LabelColumns(language="lang", groups="groups")
    found = read_labelled([table(tmp_path / "a.jsonl", rows)], columns=columns)
    assert found.languages == ("de", None, None, "NaN")
    assert found.groups == (("women",), ("men",), (), ())
    assert found.account.left_out == {"malformed_record": 1}


def test_damaged_records_are_counted(tmp_path):
    text = 'text,label\n"x",1\n\n ,1\ny,\n"two\nlines",0\nonly one\ntext,label\n"o"n,1\n"z",0\n'
    found = read_labelled([written(tmp_path / "a.csv", text)])
    assert found.texts == ("x", "two\nlines", "z")
    assert found.account.left_out == {"blank_text": 1, "no_label": 1, "malformed_record": 2}
    assert found.account.places["header"] == 2
    assert closed(found)


@pytest.mark.parametrize("column", ["text", "label"])
def test_a_missing_column_is_named(column, tmp_path):
    path = written(tmp_path / "a.csv", f"{column},other\n")
    missing = "label" if column == "text" else "text"
    with pytest.raises(
        SourceError, match=f"no column '{missing}'; it has {column}, other. .*--column {missing}=…"
    ):
        read_labelled([path])


@pytest.mark.parametrize("first", ["mind your own business,1", "quillfeather and kettle,0.5"])
def test_a_first_row_is_never_shown(first, tmp_path):
    path = written(tmp_path / "a.csv", f"{first}\nfine,0\n")
    with pytest.raises(SourceError, match=r"no column 'text', 'label'; its first line") as error:
        read_labelled([path])
    assert not any(word in str(error.value) for word in first.replace(",", " ").split())
    written(path, f"{first.replace(',', ',is ')}\nfine,0\n")
    with pytest.raises(SourceError, match="it has column 1, column 2") as error:
        read_labelled([path])
    assert not any(word in str(error.value).split() for word in first.split(",")[0].split())


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("text,label,label", LabelColumns()),
        ("text,label,id,id", LabelColumns(comment_id="id")),
        ("text,a,b,b", LabelColumns(votes=("a", "b"))),
        ("text,label,groups,groups", LabelColumns(groups="groups")),
    ],
)
def test_two_columns_of_one_name_are_refused(header, columns, tmp_path):
    path = written(tmp_path / "a.csv", f"{header}\n" + "1," * header.count(",") + "1\n")
    with pytest.raises(SourceError, match=r"a\.csv has several columns \w+; rename all but one"):
        read_labelled([path], columns=columns)
    other = written(tmp_path / "b.csv", "text,label,note,note\nfine,0,a,b\n")
    assert read_labelled([other]).texts == ("fine",)


def test_a_database_needs_a_query_and_shows_no_password(tmp_path):
    with pytest.raises(SourceError, match="--query"):
        read_labelled(["sqlite:///x.db"])
    with pytest.raises(SourceError, match="OperationalError") as caught:
        read_labelled([f"sqlite:///{tmp_path}/x.db"], query="SELECT secret FROM nowhere")
    assert "secret" not in str(caught.value)
    with pytest.raises(SourceError, match="The driver of who://x/ cannot be loaded"):
        read_labelled(["who://knows:secret@x"], query="SELECT 1")


def test_an_empty_file_has_no_rows(tmp_path):
    found = read_labelled([written(tmp_path / "a.csv", "text,label\n")])
    assert (found.texts, np.asarray(found.labels).size) == ((), 0)
    assert found.account.rows() == [("Header lines", 1, "")]


#: A kind of damage, or none; and the row that it makes of an id, a text and a label.
DAMAGE: dict[str, Any] = {
    "": lambda *row: row,
    "no_label": lambda key, text, _: (key, text, " "),
    "missing_id": lambda _, text, label: ("", text, label),
    "blank_text": lambda key, _, label: (key, "\u200b", label),
    "undecodable_text": lambda key, text, label: (key, f"{text}\udce9", label),
    "malformed_record": lambda key, text, label: (key, text, label, "one", "more"),
}
#: Damage of most rows that stops the run.
STOPS = ("missing_id", "undecodable_text", "malformed_record")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1),
            st.sampled_from(["0", "1", "0.25", "true", "No"]),
            st.sampled_from(["", "", "", "", *DAMAGE]),
            st.booleans(),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_damage_changes_no_other_row_and_the_account_closes(rows, tmp_path):
    expected, lines = [], io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(["id", "text", "label"])
    values = {"0": 0, "1": 1, "0.25": 0.25, "true": 1, "No": 0}
    left_out: dict[str, int] = {}
    for number, (text, label, damage, blank_line) in enumerate(rows):
        whole = f"{text} comment {number}"
        writer.writerow(DAMAGE[damage](f"c{number}", whole, label))
        lines.write("\n" * blank_line)
        if damage:
            left_out[damage] = left_out.get(damage, 0) + 1
        else:
            expected.append((whole, values[label]))
    (tmp_path / "a.csv").write_bytes(lines.getvalue().encode("utf-8", "surrogateescape"))
    columns = LabelColumns(comment_id="id")
    if 2 * max(left_out.get(damage, 0) for damage in STOPS) > len(rows):
        with pytest.raises(SourceError, match="records are left out"):
            read_labelled([tmp_path / "a.csv"], columns=columns)
        return
    if not expected:
        with pytest.raises(SourceError, match="no row can be used: "):
            read_labelled([tmp_path / "a.csv"], columns=columns)
        return
    found = read_labelled([tmp_path / "a.csv"], columns=columns)
    assert list(zip(found.texts, found.labels.tolist(), strict=True)) == expected
    assert found.account.left_out == left_out
    assert found.account.read == 1 + len(rows) + sum(row[3] for row in rows)
    assert closed(found)
