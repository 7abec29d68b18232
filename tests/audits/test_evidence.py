"""The hash chain of an audit: which step may follow which, and that nobody rewrites a line."""

import contextlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from audit_making import NOW
from hypothesis import given
from hypothesis import strategies as st

from modwatch.audits.evidence import (
    FOLLOWS,
    START,
    Event,
    file_digest,
    file_problems,
    following,
    moment,
    note_problems,
    noted,
    read,
    sealed_files,
    written,
    written_notes,
)
from modwatch.common.errors import AuditError
from modwatch.common.ledger.chain import written_line

ADAPTIVE = ["planned", "approved", "drawn", "labelled", "drawn", "labelled", "estimated",
            "signed_off", "published"]  # fmt: skip
ACTIONS = [follow for follow in FOLLOWS if follow is not None]
#: A way to each step.
WAYS = {action: ADAPTIVE[: ADAPTIVE.index(action) + 1] for action in ACTIONS if action in ADAPTIVE}
WAYS["cancelled"] = ["planned", "cancelled"]

#: Steps after which each step is possible, as the message names them.
NEEDS = {
    "planned": "",
    "approved": ": only planned audits can be",
    "drawn": ": only approved or labelled audits can be",
    "labelled": ": only drawn audits can be",
    "estimated": ": only labelled audits can be",
    "signed_off": ": only estimated audits can be",
    "published": ": only signed off audits can be",
    "cancelled": ": only planned or approved or drawn or labelled or estimated or signed off "
    "audits can be",
}


def chain_of(actions: list[str], audit: str = "a") -> list[Event]:
    chain: list[Event] = []
    for number, action in enumerate(actions):
        chain.append(
            following(
                chain, audit=audit, action=action, actor="eva", note="ü",
                at=NOW + timedelta(hours=number), files={f"{action}-{number}": b"content"},
            )
        )  # fmt: skip
    return chain


def rehashed(chain: list[Event]) -> str:
    """Return the chain as a forger writes it, who makes every hash anew."""
    forged: list[Event] = []
    for number, event in enumerate(chain, 1):
        previous = forged[-1].digest if forged else START
        forged.append(replace(event, position=number, previous=previous))
    return written(forged)


@pytest.mark.parametrize("last", ACTIONS)
def test_a_step_follows_only_what_it_may(last):
    chain = chain_of(WAYS[last])
    for action in ACTIONS:
        if action in FOLLOWS[last]:
            made = chain_of([*WAYS[last], action])
            assert (made[-1].position, made[-1].previous) == (len(chain) + 1, made[-2].digest)
            continue
        last_, action_ = last.replace("_", " "), action.replace("_", " ")
        message = f"^audit 'a' cannot be {action_} after it was {last_}{NEEDS[action]}$"
        with pytest.raises(AuditError, match=message):
            chain_of([*WAYS[last], action])
        with pytest.raises(AuditError, match=message):  # nor in a chain that someone made
            read(rehashed([*chain, replace(chain[-1], action=action)]))


def test_every_audit_begins_with_its_plan():
    for action in (*ACTIONS[1:], "stolen"):
        with pytest.raises(AuditError, match=r"^audit 'a' has no plan; plan it first$"):
            chain_of([action])
        with pytest.raises(AuditError, match="has no plan"):
            read(rehashed([replace(chain_of(["planned"])[0], action=action)]))


def test_the_orders_that_there_are():
    """A plan is approved before anything is drawn, labels sealed before a result, and so on."""
    assert FOLLOWS["approved"] == ("drawn", "cancelled")
    for before, after in pairwise(ADAPTIVE):
        assert after in FOLLOWS[before]
    assert all("cancelled" in FOLLOWS[item] for item in ADAPTIVE[:-1])
    assert FOLLOWS["cancelled"] == FOLLOWS["published"] == ()
    assert FOLLOWS.keys() - {None} == NEEDS.keys()


@given(st.integers(1, len(ADAPTIVE)), st.text(st.characters(exclude_categories=["Cs"])))
def test_a_chain_is_read_as_it_was_written(length, note):
    chain = chain_of(ADAPTIVE[:length])
    chain[-1] = noted(chain[-1], note)
    text = written(chain)
    assert read(text, written_notes(chain)) == chain
    assert [*note_problems(chain)] == []
    assert text.isascii()
    assert len(text.splitlines()) == length


def test_an_event_cannot_be_of_another_audit():
    chain = chain_of(ADAPTIVE[:2])
    with pytest.raises(AuditError, match="audit 'b': the chain belongs to audit 'a'"):
        following(chain, audit="b", action="drawn", actor="eva", at=NOW + timedelta(days=1))
    for changes, words in (
        ({"audit": "b"}, "line 2 of the chain belongs to another audit"),
        ({"position": 5}, "entries are missing before line 2 of the chain"),
        ({"position": 1}, "line 2 of the chain is out of order"),
    ):
        forged = [chain[0], replace(chain[1], **changes)]  # type: ignore[arg-type]
        with pytest.raises(AuditError, match=f"^{words}"):
            read(written(forged))


def test_time_does_not_run_backwards():
    chain = chain_of(ADAPTIVE[:2])
    at = NOW + timedelta(minutes=59)
    with pytest.raises(AuditError, match="correct the clock"):
        following(chain, audit="a", action="drawn", actor="eva", at=at)
    forged = [*chain, replace(chain_of(ADAPTIVE[:3])[2], at=at.isoformat())]
    with pytest.raises(AuditError, match=r"^line 3 of the chain has an earlier time"):
        read(rehashed(forged))
    same = following(chain, audit="a", action="drawn", actor="eva", at=NOW + timedelta(hours=1))
    made = [*chain, same]
    assert read(written(made), written_notes(made))[-1] == same


def test_times_are_in_utc():
    at = datetime(2026, 1, 5, 12, tzinfo=timezone(timedelta(hours=5)))
    event = following([], audit="a", action="planned", actor="eva", at=at)
    assert event.at == "2026-01-05T07:00:00+00:00"
    for other in ("2026-01-05T12:00:00+05:00", "2026-01-05T07:00:00Z", "20260105T070000+00:00"):
        with pytest.raises(AuditError, match=r"^the time on line 1 of the chain is not in UTC"):
            read(written([replace(event, at=other)]))
    for other in ("", "noon", "2026-01-05", "2026-01-05T07:00:00", "0001-01-01T00:00:00+14:00"):
        with pytest.raises(AuditError, match="A time is not in ISO 8601"):
            read(written([replace(event, at=other)]))
    assert moment("2026-01-05T12:00:00+05:00") == at
    assert moment("2026-01-05T07:00:00Z").tzinfo is UTC


def lines_of(chain: list[Event]) -> list[str]:
    return written(chain).splitlines(keepends=True)


@pytest.mark.parametrize("position", [1, 4, len(ADAPTIVE) - 2])
def test_a_line_that_is_changed_left_out_or_moved_is_found(position):
    lines = lines_of(chain_of(ADAPTIVE))
    before, line, after = lines[:position], lines[position], lines[position + 1 :]
    for old, new in (("eva", "eve"), ("2026-02-", "2026-03-"), ('"a"', '"b"')):
        with pytest.raises(AuditError, match=f"^line {position + 1} of the chain was changed"):
            read("".join([*before, line.replace(old, new), *after]))
    for forged in (
        [*before, *after],
        [*before, line, line, *after],
        [*before[:-1], line, before[-1], *after],
    ):
        with pytest.raises(AuditError, match=DISORDER):
            read("".join(forged))
    assert written(read("".join(before))) == "".join(before)


DISORDER = (
    r"^(entries are missing before )?line [0-9]+ of the chain( is out of order|: the chain was at)"
)


def test_a_line_of_another_chain_does_not_follow():
    one, other = lines_of(chain_of(ADAPTIVE)), lines_of(chain_of(ADAPTIVE, audit="b"))
    with pytest.raises(
        AuditError, match=r"^line 3 of the chain does not follow the entry before it"
    ):
        read("".join([*one[:2], *other[2:]]))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace('","at"', '", "at"', 1),
        lambda text: text.replace('{"action":"planned",', '{"action":"x","action":"planned",'),
        lambda text: text.replace("eva", "ev\\u0061"),
        lambda text: text.replace('"position":1', '"position":1 '),
        lambda text: text.replace("}\n", "} \n"),
    ],
)
def test_one_chain_has_one_form(change):
    text = written(chain_of(ADAPTIVE[:2]))
    assert change(text) != text
    with pytest.raises(AuditError, match="is not in canonical form: it was edited, reformatted"):
        read(change(text))


def test_a_cut_line_is_no_event():
    text = written(chain_of(ADAPTIVE[:2]))
    start = text.index("\n") + 1
    for cut in (start + 1, (start + len(text)) // 2, len(text) - 2):
        with pytest.raises(AuditError, match=r"^line 2 of the chain is not an entry"):
            read(text[:cut])


HOSTILE = [None, True, 3, 1.5, "x", "\ud800", [], [[]], {}, {"a": 1}, {"a": {}}, 10**400,
           float("nan"), float("inf"), -1]  # fmt: skip


@pytest.mark.parametrize("name", ["action", "actor", "at", "audit", "facts", "files", "hash",
                                  "note", "note_commitment", "position", "previous",
                                  "more"])  # fmt: skip
def test_hostile_types_are_refused_wherever_they_stand(name):
    line = json.loads(written(chain_of(["planned"])))
    for value in HOSTILE:
        if name in line and json.dumps(line[name]) == json.dumps(value):
            continue
        fields: dict[str, Any] = line | {name: value}
        text = json.dumps(fields, sort_keys=True, separators=(",", ":")) + "\n"
        with pytest.raises(AuditError, match=r"line 1 of the chain|A time is not"):
            read(text)
        fields.pop("hash")
        with contextlib.suppress(AuditError, TypeError, ValueError):
            text = written_line(fields)
            # A value of the right type is a forger's own event.
            assert written(read(text)) == text


def test_garbage_is_no_event():
    for text in ("\n", "x", "[]", "3", "null", "{}", '{"hash":1}', "[" * 100_000, "\ud800", "\0"):
        with pytest.raises(AuditError, match=r"^line 1 of the chain is not an entry"):
            read(text)


@given(st.text() | st.recursive(st.none() | st.floats(), st.lists).map(json.dumps))
def test_anything_else_is_refused_in_words(text):
    if not text:
        assert read(text) == []
        return
    with pytest.raises(AuditError):
        read(text)


def test_files_are_compared_with_what_was_sealed():
    chain = chain_of(ADAPTIVE[:2])
    there = {"planned-0": b"content", "approved-1": b"content"}
    assert sealed_files(chain) == dict.fromkeys(there, file_digest(b"content"))
    assert file_problems(chain, there) == []
    assert file_problems(chain, {"planned-0": b"other"}) == [
        "planned-0 was changed after it was sealed",
        "approved-1 is missing",
    ]
    again = following(chain, audit="a", action="drawn", actor="eva", at=NOW + timedelta(days=1),
                      files={"planned-0": b"other"})  # fmt: skip
    assert file_problems([*chain, again], there | {"planned-0": b"other"}) == [
        "planned-0 was sealed more than once"
    ]


def test_a_note_is_bound_and_can_be_erased():
    chain = chain_of(ADAPTIVE[:2])
    text, notes = written(chain), written_notes(chain)
    assert "ü" not in json.loads(text.splitlines()[0]).values()
    assert file_problems(read(text, notes), {}) == file_problems(chain, {})
    erased = json.loads(notes)
    del erased["2"]
    left = read(text, json.dumps(erased).encode())  # the chain verifies
    assert [event.note for event in left] == ["ü", ""]
    assert [*note_problems(left)] == ["the note of the step approved is missing"]


def test_a_changed_or_added_note_is_found():
    chain = chain_of(ADAPTIVE[:2])
    for change in ({"note": "another"}, {"note_salt": "00"}, {"note_salt": "x"}):
        notes = json.loads(written_notes(chain))
        notes["2"] |= change
        (problem,) = note_problems(read(written(chain), json.dumps(notes).encode()))
        assert problem == (
            "the note of the step approved was changed: it is not the one that the step commits to"
        )
    event = following([], audit="a", action="planned", actor="eva", at=NOW)
    notes = json.dumps({"1": {"note": "agreed by all", "note_salt": "00"}}).encode()
    (problem,) = note_problems(read(written([event]), notes))
    assert "was changed" in problem


def test_equal_notes_have_different_commitments():
    one, other = chain_of(ADAPTIVE[:2])
    assert one.note == other.note
    assert one.note_commitment != other.note_commitment


def test_notes_that_cannot_be_read_are_missing():
    text = written(chain_of(ADAPTIVE[:1]))
    for notes in (b"", b"x", b"\xff", b"[]", b'{"1": 3}', b"[" * 100_000):
        assert [*note_problems(read(text, notes))] == ["the note of the step planned is missing"]
