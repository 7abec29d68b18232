"""Tables of evidence: what was written is read, and nothing else is."""

import csv
import datetime
import io
from dataclasses import replace

import pytest
from audit_making import FIRST, NOW
from hypothesis import given
from hypothesis import strategies as st

from modwatch.audits import files
from modwatch.common.errors import AuditError
from modwatch.statistics.audit.draw import DrawnComment
from modwatch.statistics.audit.labels import AuditLabel

#: Everything that means something to CSV, to the cell of the traits, to a spreadsheet or to UTF-8.
HOSTILE = st.sampled_from(
    ["", ",", '"', "\n", "\r", "\r\n", "a,b", "%", "%2c.", "%.", ";", "=", ".", "'", "=1+1", "+1",
     "-1", "@x", "\t=1", "\ud800", "\ud83d\ude00", "😀", "\0", "\ufeff", "\x1c", "\u2028", " ",
     "a "]
)  # fmt: skip
TEXTS = HOSTILE | st.text(st.characters(), max_size=6) | st.lists(HOSTILE, max_size=4).map("".join)
DAYS = st.dates()
DRAWN = st.builds(
    DrawnComment,
    day=DAYS,
    comment_id=TEXTS,
    stratum=st.integers(0, 30),
    score=st.floats(0, 1),
    key=st.integers(0, 2**64 - 1),
    traits=st.dictionaries(TEXTS, st.lists(TEXTS, max_size=3).map(tuple), max_size=3),
)
LABELS = st.builds(
    AuditLabel, day=DAYS, comment_id=TEXTS, labeller=TEXTS, action=TEXTS,
    label=st.integers(0, 1), decided_at=TEXTS, decision=TEXTS,
)  # fmt: skip
POPULATIONS = st.dictionaries(
    st.tuples(TEXTS, TEXTS, st.integers(0, 30)), st.integers(1, 10**9), max_size=5
)

A_COMMENT = DrawnComment(
    day=FIRST, comment_id="c1", stratum=2, score=0.25, key=17,
    traits={"language": ("de",), "groups": ("a,b", "")},
)  # fmt: skip
A_LABEL = AuditLabel(
    day=FIRST, comment_id="c1", labeller="ann", action="label", label=1,
    decided_at=NOW.isoformat(), decision="ab",
)  # fmt: skip


@given(st.lists(DRAWN, max_size=4))
def test_a_sample_is_read_as_it_was_written(drawn):
    content = files.write_sample(drawn)
    assert files.read_sample(content) == tuple(drawn)
    assert files.write_sample(files.read_sample(content)) == content


@given(POPULATIONS)
def test_a_population_is_read_as_it_was_written(population):
    assert files.read_population(files.write_population(population)) == population


@given(st.lists(LABELS, max_size=4), st.randoms(use_true_random=False))
def test_labels_are_read_as_they_were_written_in_one_order(labels, random):
    content = files.write_labels(labels)
    random.shuffle(labels)  # type: ignore[attr-defined]
    assert files.write_labels(labels) == content
    assert sorted(files.read_labels(content), key=repr) == sorted(labels, key=repr)


@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_no_cell_begins_as_a_formula_does(ids):
    content = files.write_sample([replace(A_COMMENT, comment_id=id) for id in ids])
    rows = list(csv.reader(io.StringIO(content.decode(errors="surrogatepass"), newline="")))
    assert len(rows) == len(ids) + 1  # also for other readers of CSV
    for row in rows:
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)


def test_the_cells_are_what_a_person_expects():
    assert files.write_sample([A_COMMENT]).decode() == (
        "day,comment_id,stratum,score,key,traits\r\n"
        '2026-01-05,c1,2,0.25,17,"groups=a%2c.b,%.;language=de"\r\n'
    )
    assert files.write_population({("language", "de", 0): 5}).decode() == (
        "column,value,stratum,comments\r\nlanguage,de,0,5\r\n"
    )
    assert files.write_labels([A_LABEL]).decode() == (
        "day,comment_id,labeller,action,label,decided_at,decision\r\n"
        "2026-01-05,c1,ann,label,1,2026-02-01T00:00:00+00:00,ab\r\n"
    )


def test_an_empty_value_is_another_thing_than_none_and_any_date_is_read():
    drawn = (
        replace(A_COMMENT, traits={}, day=datetime.date.min),
        replace(A_COMMENT, traits={"a": (), "b": ("",), "c": ("", ""), "": ("x",)}),
        replace(A_COMMENT, traits={"": ()}, day=datetime.date.max),
    )
    assert files.read_sample(files.write_sample(drawn)) == drawn


READERS = {
    "sample": (
        files.read_sample,
        files.write_sample([A_COMMENT, replace(A_COMMENT, comment_id="c2")]),
    ),
    "population": (
        files.read_population,
        files.write_population({("c", "v", 0): 3, ("c", "w", 0): 4}),
    ),
    "labels": (files.read_labels, files.write_labels([A_LABEL, replace(A_LABEL, labeller="bob")])),
}


@pytest.mark.parametrize("name", READERS)
def test_other_columns_are_refused(name):
    read, right = READERS[name]
    renamed = right.replace(b"comment", b"c0mment", 1)
    for wrong in (b"", b"\r\n", b"a,b\r\n", b"day\r\n", b"\xef\xbb\xbfday,", renamed):
        with pytest.raises(AuditError, match=f"^The {name} file must have the columns"):
            read(wrong)


@pytest.mark.parametrize("name", READERS)
def test_a_row_that_cannot_be_read_is_named_and_not_quoted(name):
    read, right = READERS[name]
    second = right.split(b"\r\n")[2]
    cells = second.split(b",")
    for wrong in (
        b"secret",
        second + b",secret",
        b",".join(cells[1:]),
        b"",
        b'"secret',
        b'"secret"x,' + second,
        b"x" * 140_000 + b"," + second,
    ):
        with pytest.raises(AuditError) as result:
            read(right.replace(second, wrong))
        assert str(result.value) == f"Row 2 of the {name} file cannot be read."
    with pytest.raises(AuditError, match=f"The {name} file is not UTF-8"):
        read(right + b"\xff\xfe")


@pytest.mark.parametrize(
    ("name", "cell", "wrong"),
    [
        ("sample", "2026-01-05", "secret"),
        ("sample", "2026-01-05", "2026-02-30"),
        ("sample", ",2,", ",secret,"),
        ("sample", "0.25", "secret"),
        ("sample", "17", "9" * 5000),
        ("sample", "groups=", "groups"),
        ("sample", "%2c.", "%ffffffff."),
        ("sample", "%2c.", "%110000."),
        ("population", ",3", ",secret"),
        ("labels", ",1,", ",secret,"),
        ("labels", "2026-01-05", "5.1.2026"),
    ],
)
def test_a_cell_that_cannot_be_read_is_refused(name, cell, wrong):
    read, right = READERS[name]
    with pytest.raises(AuditError) as result:
        read(right.replace(cell.encode(), wrong.encode(), 1))
    assert str(result.value) == f"Row 1 of the {name} file cannot be read."


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("sample", lambda text: text.replace("\r\n", "\n")),
        ("sample", lambda text: text.rstrip()),
        ("sample", lambda text: text.replace("c1", '"c1"')),
        ("sample", lambda text: text.replace("c1", "'c1")),
        ("sample", lambda text: text.replace("2026-01-05", "20260105")),
        ("sample", lambda text: text.replace(",17,", ",+17,")),
        ("sample", lambda text: text.replace(",17,", ",\u0661\u0667,")),
        ("sample", lambda text: text.replace("0.25", "0.250")),
        ("sample", lambda text: text.replace("language=de", "language=%64.e")),
        ("sample", lambda text: text.replace("language=de", "language=de;")),
        ("sample", lambda text: text.replace("language=de", "language=de;language=de")),
        ("sample", lambda text: text.replace(";language=de", ";a=b")),
        ("population", lambda text: text + "c,v,0,3\r\n"),
        ("population", lambda text: text.replace("c,w,0,4", "c,v,0,4")),
        ("population", lambda text: text.replace("c,v,0,3", "d,v,0,3")),
        ("labels", lambda text: text.replace("ann", "carl")),
        ("labels", lambda text: text.replace(",1,", ",01,")),
    ],
)
def test_another_form_is_refused(name, change):
    """One content has one form: nobody hides something in spaces, signs or order."""
    read, right = READERS[name]
    changed = change(right.decode())
    assert changed != right.decode()
    with pytest.raises(AuditError, match=f"^The {name} file is not in canonical form"):
        read(changed.encode())


@given(st.sampled_from(sorted(READERS)), st.data())
def test_bytes_at_random_are_refused_in_words(name, data):
    read, right = READERS[name]
    place = data.draw(st.integers(0, len(right)))
    cut = data.draw(st.integers(0, 3))
    changed = right[:place] + data.draw(st.binary(max_size=4)) + right[place + cut :]
    try:
        read(changed)
    except AuditError:
        return
    again = {"sample": files.write_sample, "labels": files.write_labels}
    writer = again.get(name, files.write_population)
    assert writer(read(changed)) == changed  # type: ignore[arg-type]
