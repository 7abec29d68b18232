"""The rows of a file of annotations: used, merged or left out, whatever is in them."""

import csv
import json
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modwatch.cli.main import main
from modwatch.common.errors import SourceError
from modwatch.data.sources.labels import look_alikes
from modwatch.monitoring.annotation_report import (
    annotation_report,
    read_annotations,
    render_page,
    rows_section,
)


def timed(*, seed=1, items=150, people=4, slips=0.17, again=0):
    """Return a table of labels with slips; the first `again` are given again an hour later."""
    rng = np.random.default_rng(seed)
    opinion = rng.random((items, people)) < np.repeat(rng.random(items) < 0.5, people).reshape(
        items, people
    )
    table = pd.DataFrame(
        {
            "item": np.repeat([f"c{n}" for n in range(items)], people),
            "annotator": np.tile([f"ann{n}" for n in range(people)], items),
            "label": (opinion ^ (rng.random(opinion.shape) < slips)).ravel().astype(int),
        }
    )
    table["time"] = pd.Timestamp("2026-03-01T09:00:00Z") + pd.to_timedelta(
        17 * np.arange(len(table)), unit="s"
    )
    later = table.iloc[:again].copy()
    later["time"] += pd.Timedelta(hours=9)
    later["label"] ^= rng.random(again) < 2 * slips * (1 - slips)
    return pd.concat([table, later], ignore_index=True)


def written(table, path):
    shown = table.copy()
    if "time" in shown:
        shown["time"] = [getattr(t, "isoformat", lambda t=t: t)() for t in shown["time"]]
    shown.to_csv(path, index=False)
    return path


def triples(table):
    """Return the annotations as (item, annotator, label), in order of time."""
    found = table.annotations
    return [
        (found.items[i], found.annotators[a], found.classes[k])
        for i, a, k in zip(found.item, found.annotator, found.label, strict=True)
    ]


def elsewhere(time):
    return time.tz_convert("Asia/Kolkata")


def shuffled(table):
    return pd.concat([table, table]).sample(frac=1, random_state=2)


COPIES = {
    "appended": lambda t: pd.concat([t, t]),
    "adjacent": lambda t: t.loc[t.index.repeat(2)],
    "shuffled": shuffled,
    "other order of columns": lambda t: pd.concat([t, t])[["time", "label", "annotator", "item"]],
    "same instant in another zone": lambda t: pd.concat(
        [t.astype({"time": object}), t.assign(time=t["time"].map(elsewhere)).astype(object)]
    ),
    "three times": lambda t: pd.concat([t, t, t]),
    "labels as other numbers": lambda t: pd.concat(
        [t.astype(object), t.assign(label=t["label"].map("{}.0".format)).astype(object)]
    ),
    "copy without a time": lambda t: pd.concat(
        [t.astype(object).assign(time=""), t.astype(object)]
    ),
}


@pytest.mark.parametrize("copies", COPIES)
def test_an_annotation_exported_again_is_one_annotation(tmp_path, copies):
    table = timed(items=60, again=100)
    once = read_annotations(written(table, tmp_path / "once.csv"))
    copied = COPIES[copies](table)
    twice = read_annotations(written(copied, tmp_path / "twice.csv"))
    assert Counter(triples(twice)) == Counter(triples(once))
    assert once.annotations.retests.item.size == twice.annotations.retests.item.size == 100
    merged = len(copied) - len(table)
    assert twice.account.places["merged"] == merged
    (note,) = twice.notes
    assert note.startswith(f"{merged:,} rows repeat the item, annotator, label and time of another")


def test_the_page_and_the_output_say_where_the_rows_went(tmp_path, capsys):
    table = timed()
    path = written(pd.concat([table, table]), tmp_path / "twice.csv")
    with path.open("a") as file:
        file.write("\n,ann0,1,\nc1,,1,\nc2,ann0,,\nc3,ann0,1\n")
    assert main(["annotations", "report", str(path), "--output", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "Rows: 1,206 (header lines 1, blank lines 1, records merged with another 600, " in out
    assert "missing_annotator 1 (the first: twice.csv, line 1204)" in out
    page = " ".join(re.sub("<[^>]*>", " ", (tmp_path / "out" / "report.html").read_text()).split())
    assert "Where the rows went Of 1,206 rows, 600 are labels, 0 of them given again." in page
    assert "Records merged with another 600 twice.csv, line 602" in page
    assert "No label 1 twice.csv, line 1205" in page
    assert re.search(r"At most 2[0-9]\.\d% of the labels are slips", page)


def test_one_object_with_the_records_is_named(tmp_path):
    path = tmp_path / "mine.json"
    for indent in (None, 1):
        path.write_text(json.dumps({"data": [{"item": "a"}]}, indent=indent))
        with pytest.raises(SourceError, match="one JSON object with the records in it; save"):
            read_annotations(path)


def test_copies_without_a_time_are_merged_and_the_page_says_why(tmp_path):
    table = timed().drop(columns="time")
    found = read_annotations(written(pd.concat([table, table]), tmp_path / "twice.csv"))
    assert found.annotations.retests.item.size == 0
    (note,) = found.notes
    assert note.startswith(
        "600 rows repeat the item, annotator and label of another: merged, since"
    )
    page = render_page(annotation_report(found.annotations), more=[rows_section(found)])
    assert "add a column time or round" in page


def test_changed_labels_without_a_time_give_no_slip_rate_of_their_own(tmp_path):
    """Unchanged ones look like copies; a rate of the changed ones alone would be far too high."""
    table = timed(again=400).drop(columns="time")
    found = read_annotations(written(table, tmp_path / "mine.csv"))
    retests = found.annotations.retests
    assert retests.differ.all()
    assert retests.item.size + found.account.places["merged"] == 400
    report = annotation_report(found.annotations)
    assert report.rates is None or report.rates.method == "svd"


@pytest.mark.parametrize("name", ["round", "time"])
def test_a_number_of_a_round_tells_labels_given_again_from_copies(tmp_path, name):
    table = timed(again=300).drop(columns="time")
    table[name] = [1] * 600 + [2] * 300
    found = read_annotations(written(pd.concat([table, table]), tmp_path / "mine.csv"))
    assert found.annotations.retests.item.size == 300
    assert 0.5 < 1 - found.annotations.retests.differ.mean() < 1
    assert found.account.places["merged"] == 900


#: Spellings of one label each.
ONE_CLASS = [
    ["toxic", "Toxic", "TOXIC", "toxic ", "\ttoxic", "\xa0toxic", "ｔｏｘｉｃ"],
    ["1", "1.0", " 1", "1e0", "０1", "+1"],
    ["STRASSE", "straße"],
    ["caf\u00e9", "cafe\u0301", "CAFÉ"],
    ["0.5", "0.50", ".5", "5e-1"],
]


def test_spellings_of_a_label_are_one_class(tmp_path):
    labels = [form for forms in ONE_CLASS for form in forms]
    rows = [(f"c{n}", "ann", form) for n, form in enumerate(labels)]
    path = written(pd.DataFrame(rows, columns=["item", "annotator", "label"]), tmp_path / "m.csv")
    found = read_annotations(path)
    assert len(found.annotations.classes) == len(ONE_CLASS)
    codes = iter(found.annotations.label)
    assert [len({next(codes) for _ in forms}) for forms in ONE_CLASS] == [1] * len(ONE_CLASS)
    assert found.account.places["used"] == len(rows)


def test_labels_of_json_and_parquet_are_those_of_csv(tmp_path):
    rows = [{"item": f"c{n}", "annotator": "ann", "label": n % 2} for n in range(6)]
    frame = pd.DataFrame(rows)
    frame.astype({"label": float}).to_parquet(tmp_path / "m.parquet")
    frame.to_csv(tmp_path / "m.csv", index=False)
    for row, value in zip(rows, [0, 1.0, "0", "1", "0.0", " 1 "], strict=True):
        row["label"] = value
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, rows)))
    one, two, three = (
        triples(read_annotations(tmp_path / f"m.{suffix}"))
        for suffix in ("csv", "parquet", "jsonl")
    )
    assert one == two == three


def test_a_missing_label_is_no_class(tmp_path):
    blanks = ["", "  ", "NaN", "nan", "<NA>", "NULL", "NaT", r"\N", "\u200b"]
    table = timed(items=20).astype({"label": object}).drop(columns="time")
    table.loc[3 : 2 + len(blanks), "label"] = blanks
    found = read_annotations(written(table, tmp_path / "m.csv"))
    assert found.annotations.classes == ("0", "1")
    assert found.account.left_out == {"no_label": len(blanks)}
    assert found.account.first["no_label"] == "m.csv, line 5"


@pytest.mark.parametrize(
    "alike",
    [
        ["non-toxic", "non toxic"],
        ["toxic", "t\u043exic"],
        ["toxic", "to\u200bxic"],
        ["1", "yes"],
        ["naïve", "naive"],
    ],
)
def test_labels_that_look_alike_are_reported_and_not_merged(tmp_path, alike):
    labels = [*alike, "something else", "-1", "15", "1.5"]
    found = rated(labels * 3, tmp_path / "m.csv")
    assert len(found.annotations.classes) == len(labels)
    assert [set(found) for found in look_alikes(labels)] == [set(alike)]
    (note,) = found.notes
    assert note.startswith("Labels that may be one")
    assert note.isprintable()


def rated(values, path, **options):
    rows = [(f"c{n // 3}", f"ann{n % 3}", value) for n, value in enumerate(values)]
    table = pd.DataFrame(rows, columns=["item", "annotator", "label"])
    return read_annotations(written(table, path), **options)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3, 4, 5],
        [1.0, 1.5, 2.0, 2.5],
        [-2, -1, 0, 1, 2],
        ["10", "9.0", "8", "7 "],
    ],
)
def test_ratings_are_in_order_of_size_with_a_hint(tmp_path, values):
    found = rated(values * 6, tmp_path / "m.csv")
    assert [float(label) for label in found.annotations.classes] == sorted(map(float, values))
    assert "--toxic-from" in found.notes[-1]
    limit = sorted(map(float, values))[2]
    two = rated(values * 6, tmp_path / "m.csv", toxic_from=limit)
    low, high = two.annotations.classes
    assert low.removeprefix("under ") == high.removesuffix(" or more")
    expected = [float(value) >= limit for value in values * 6]
    assert two.annotations.label.tolist() == expected
    assert not any("--toxic-from" in note for note in two.notes)


@pytest.mark.parametrize(
    "values", [[n / 997 for n in range(100)], list(range(21)), [f"{n}.0 " for n in range(40)]]
)
def test_a_slider_is_not_a_hundred_classes(tmp_path, values):
    with pytest.raises(SourceError, match=f"{len(values)} different numbers.*--toxic-from"):
        rated(values, tmp_path / "m.csv")
    middle = float(np.median([float(value) for value in values]))
    found = rated(values, tmp_path / "m.csv", toxic_from=middle)
    assert found.annotations.label.tolist() == [float(value) >= middle for value in values]


def test_what_is_no_rating_is_left_out_with_toxic_from(tmp_path):
    found = rated([1, 5, "high", "", "inf", 3], tmp_path / "m.csv", toxic_from=3)
    assert found.account.left_out == {"unreadable_label": 2, "no_label": 1}
    assert found.annotations.label.tolist() == [0, 1, 1]


def wide(items=30, people=("ann", "bob", "cleo")):
    rng = np.random.default_rng(3)
    labels = {name: rng.choice(["ok", "toxic"], items) for name in people}
    return pd.DataFrame({"item": [f"c{n}" for n in range(items)], **labels}).astype(object)


def long_of(table, votes):
    rows = table.melt(id_vars="item", value_vars=list(votes), var_name="annotator")
    rows = rows.rename(columns={"value": "label"})
    return rows[rows["label"].fillna("").str.strip() != ""]


def with_blanks(table):
    table.iloc[::4, 1] = None
    table.iloc[1::5, 2] = "  "
    return table


WIDE = {
    "all": (wide(), "ann,bob,cleo"),
    "blank cells": (with_blanks(wide()), "ann,bob,cleo"),
    "some columns": (wide().assign(text="secret words"), "ann,cleo"),
    "numbers as names": (wide(people=("1", "2", "3")), "1,2,3"),
    "a column that is named label": (wide(people=("label", "annotator", "z")), "label,annotator,z"),
    "a row without a label": (with_blanks(wide()).assign(ann=None), "ann,bob,cleo"),
}


@pytest.mark.parametrize("kind", WIDE)
def test_a_wide_table_is_read_like_its_long_form(tmp_path, kind):
    table, votes = WIDE[kind]
    names = [name.strip() for name in votes.split(",")]
    found = read_annotations(written(table, tmp_path / "wide.csv"), votes=names)
    rows = long_of(table, names)
    same = read_annotations(written(rows, tmp_path / "long.csv"))
    assert Counter(triples(found)) == Counter(triples(same))
    blank = len(table) * len(names) - len(rows)
    assert found.account.places["blank_cell"] == blank
    assert found.account.read == len(table) * len(names) + 1


@pytest.mark.parametrize("kind", WIDE)
def test_a_wide_table_without_votes_is_explained_without_a_value(tmp_path, kind):
    table, _ = WIDE[kind]
    if kind == "a column that is named label":
        table = table.rename(columns={"label": "y"})
    with pytest.raises(SourceError, match=r"one row for each annotation.*--votes a,b,c") as error:
        read_annotations(written(table, tmp_path / "wide.csv"))
    message = str(error.value)
    assert not re.search(r"\bc\d|toxic|secret|rater 1", message)
    assert ("it has item" in message) == (kind != "numbers as names")


def test_the_command_takes_votes_and_names_of_columns(tmp_path):
    people = ("rater 1", "rater 2", "rater 3")
    path = written(wide(people=people), tmp_path / "wide.csv")
    command = ["annotations", "report", str(path), "--output", str(tmp_path / "out")]
    assert main([*command, "--votes", "rater 1, rater 2,rater 3"]) == 0
    table = timed(items=20).drop(columns="time")
    table.insert(1, "text", "some words")
    table.to_csv(path, index=False, header=False)
    assert main([*command, "--columns", "item,,annotator,label"]) == 0


def test_votes_that_are_no_columns_are_refused(tmp_path):
    path = written(wide(), tmp_path / "wide.csv")
    with pytest.raises(SourceError, match="no column 'dan'; it has item, ann, bob, cleo"):
        read_annotations(path, votes=["ann", "dan"])
    for votes in (["ann", "ann"], ["item", "ann"]):
        with pytest.raises(SourceError, match="cannot be two of"):
            read_annotations(path, votes=votes)


HEADERS = {
    "csv": ("mine.csv", ",", "item,annotator,label", False),
    "txt": ("mine.txt", ";", "item,annotator,label", False),
    "tsv": ("mine.tsv", "\t", "item, annotator, label", False),
    "unused column": ("mine.txt", ",", "item,,annotator,label", False),
    "header after all": ("mine.csv", ",", "item,annotator,label", True),
    "unused column and header": ("mine.csv", ";", "item,,annotator,label", True),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_a_file_without_names_gets_them(tmp_path, kind):
    name, delimiter, columns, has_header = HEADERS[kind]
    table = timed(items=20).drop(columns="time")
    expected = triples(read_annotations(written(table, tmp_path / "expected.csv")))
    if ",," in columns:
        table.insert(1, "text", "some words")
    path = tmp_path / name
    named = table.rename(columns=str.title)
    named.to_csv(path, index=False, header=has_header, sep=delimiter)
    found = read_annotations(path, header=[part.strip() for part in columns.split(",")])
    assert triples(found) == expected
    assert found.account.places["header"] == has_header


@pytest.mark.parametrize(
    ("first", "headers"),
    [
        ("Item ID,Worker,Answer", 1),
        ("Item ID,Worker,7", 0),  # with a number
        ("c1,ann0,unclear", 0),
        ("new,ann0,unclear", 0),  # a row of a new label and item
    ],
)
def test_a_first_row_that_shares_no_value_names_columns(tmp_path, first, headers):
    path, table = tmp_path / "mine.csv", timed(items=20).drop(columns="time")
    table.to_csv(path, index=False, header=False)
    path.write_text(f"{first}\n{path.read_text()}")
    found = read_annotations(path, header=["item", "annotator", "label"])
    assert (found.account.places["header"], len(triples(found))) == (headers, 81 - headers)
    noted = [note for note in found.notes if "mine.csv, line 1, counts as names of columns" in note]
    assert len(noted) == headers


def test_a_first_row_of_votes_that_shares_no_value_names_columns(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("Post,Worker A,Worker B\n" + "".join(f"c{n},{n % 2},1\n" for n in range(9)))
    found = read_annotations(path, header=["item", "a", "b"], votes=["a", "b"])
    assert (found.account.places["header"], found.account.places["used"]) == (2, 18)
    path.write_text("c1,ann,ok\nc2,ben,toxic\nc3,cy,no\n")
    assert len(triples(read_annotations(path, header=["item", "annotator", "label"]))) == 3


def test_a_first_row_is_never_shown(tmp_path):
    path = tmp_path / "mine.csv"
    for first in ("c1,ann1,0", "2026-03-01,ann1,toxic", "some private words,ann1,toxic"):
        path.write_text("\n".join([first, *(f"c{n},ann1,toxic" for n in range(2, 9))]))
        with pytest.raises(SourceError, match="--columns item,annotator,label") as error:
            read_annotations(path)
        shown = str(error.value).split("has no column")[1]
        assert not any(value in shown for value in first.split(","))


def test_names_are_for_files_without_them(tmp_path):
    timed(items=5).to_parquet(tmp_path / "m.parquet")
    with pytest.raises(SourceError, match="leave out those given for it"):
        read_annotations(tmp_path / "m.parquet", header=["item", "annotator", "label"])
    path = written(timed(items=5), tmp_path / "m.csv")
    with pytest.raises(
        SourceError, match=r"most of 21 records are left out.*malformed_record 21.*fewer fields"
    ):
        read_annotations(path, header=["item", "annotator", "label"])


def test_an_unclosed_quotation_mark_costs_one_row(tmp_path):
    path = tmp_path / "m.csv"
    timed(items=100).astype(str).to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    lines = path.read_text().splitlines()
    lines[7] = lines[7].removesuffix('"')
    path.write_text("\n".join(lines))
    found = read_annotations(path)
    assert found.account.left_out == {"unclosed_quote": 1}
    assert found.account.first["unclosed_quote"] == "m.csv, line 8"
    assert found.account.places["used"] == 399


#: What a cell of a row is replaced by, the place where the row ends, and the cell.
DAMAGE = [
    ("item", " ", "missing_id"),
    ("item", "x" * 300, "long_id"),
    ("annotator", "", "missing_annotator"),
    ("annotator", "\u200b", "missing_annotator"),
    ("label", "NaN", "no_label"),
    ("label", "", "no_label"),
    ("label", "caf\udce9", "undecodable_text"),
    ("item", "caf\udce9", "undecodable_text"),
    ("time", "soon", "unreadable_timestamp"),
    ("country", "caf\udce9", "undecodable_text"),
]
FIELDS = ["item", "annotator", "label", "time", "country"]
ROWS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.integers(0, 4),
        st.sampled_from(["ok", "toxic", "unclear"]),
        st.integers(0, 59),
    ),
    min_size=16,
    max_size=40,
    unique_by=lambda row: (row[0], row[1], row[3]),
).filter(lambda rows: len({row[2] for row in rows}) > 1)
HARM = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.one_of(st.sampled_from(DAMAGE), st.sampled_from(["copy", "blank", "short", "header"])),
    ),
    max_size=12,
)


def lines_of(rows, harm):
    """Return lines of a file, and how many of its rows end in each place that is no use."""
    lines, places = [",".join(FIELDS)], Counter(header=1)
    valid = [
        [f"c{i}", f"p{a}", k, f"2026-01-01T10:{t:02}:00+00:00", f"x{a}"] for i, a, k, t in rows
    ]
    for at, row in enumerate(valid):
        lines.append(",".join(row))
        for where, what in harm:
            if where != at:
                continue
            if what == "copy":
                lines.append(",".join(row).replace("T10", "T12").replace("+00:00", "+02:00"))
                places["merged"] += 1
            elif isinstance(what, str):
                added = {"blank": "", "short": "only,two", "header": ",".join(FIELDS)}[what]
                lines.append(added)
                place = {"blank": "blank_line", "short": "malformed_record"}.get(what, what)
                places[place] += 1
            else:
                column, value, place = what
                other = dict(zip(FIELDS, row, strict=True)) | {column: value}
                lines.append(",".join(other.values()))
                places[place] += 1
    return lines, places


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, harm=HARM)
def test_the_account_closes_and_no_valid_row_changes(tmp_path, rows, harm):
    clean, damaged = tmp_path / "clean.csv", tmp_path / "damaged.csv"
    lines, _ = lines_of(rows, [])
    clean.write_text("\n".join([*lines, ""]))
    lines, places = lines_of(rows, harm)
    damaged.write_bytes("\n".join([*lines, ""]).encode("utf-8", "surrogateescape"))
    one = read_annotations(clean, groups=["country"])
    two = read_annotations(damaged, groups=["country"])
    assert Counter(triples(two)) == Counter(triples(one))
    assert two.groups["country"].to_dict() == one.groups["country"].to_dict()
    account = two.account
    assert account.read == len(lines) == account.places.total()
    found = {place: number for place, number in account.places.items() if number}
    assert found == {**places, "used": len(rows)}
