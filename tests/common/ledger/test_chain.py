"""Attacks on a chain: each is named, whether the chain is followed in memory or read as lines."""

import json

import pytest

from modwatch.common.errors import LedgerError
from modwatch.common.ledger.chain import (
    CLOCKS,
    GENESIS,
    Entry,
    Head,
    Verification,
    Witness,
    commitment,
    entry_hash,
    new_salt,
    opens,
    read_lines,
    witness_in,
    witness_of,
    written_line,
)

Item = tuple[int, bytes, bytes, str]


def chain_of(*contents: str) -> list[Item]:
    """Return position, previous hash, hash and content of each entry."""
    made: list[Item] = []
    last = GENESIS
    for position, content in enumerate(contents, 1):
        hashed = entry_hash(last, f"[{position}, {content!r}]")
        made.append((position, last, hashed, content))
        last = hashed
    return made


def verified(
    chain: list[Item], witness: Witness | None = None, *, partial: bool = False
) -> Verification:
    verification = Verification(witness, partial=partial)
    for position, previous, hashed, content in chain:
        expected = entry_hash(previous, f"[{position}, {content!r}]")
        verification.follow(Entry(1, position, previous, hashed, f"entry {position}"), expected)
    verification.finish()
    return verification


SOUND = chain_of("a", "b", "c", "d")
WITNESS = Witness(verified(SOUND).heads)


def edited(chain: list[Item]) -> list[Item]:
    return [*chain[:1], (*chain[1][:3], "x"), *chain[2:]]


def resealed(chain: list[Item]) -> list[Item]:
    """An entry that was edited and hashed anew: the next one does not follow it."""
    position, previous, _, _ = chain[1]
    return [*chain[:1], (position, previous, entry_hash(previous, "[2, 'x']"), "x"), *chain[2:]]


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (edited, "entry 2 was changed: its hash does not match its content"),
        (resealed, "entry 3 does not follow the entry before it"),
        (lambda chain: [*chain[:1], *chain[2:]], "entries are missing before entry 3"),
        (lambda chain: [*chain, chain[1]], "entry 2 is out of order"),
        (lambda chain: [chain[0], chain[2], chain[1], chain[3]], "entry 2 is out of order"),
        (lambda _: chain_of("a", "b", "x", "d"), ""),
        (lambda chain: chain[:3], ""),
        (lambda _: [], ""),
    ],
)
def test_an_attack_is_found(attack, words):
    assert verified(SOUND, WITNESS).problems == []
    forged = attack(SOUND)
    problems = verified(forged).problems
    assert any(problem.startswith(words) for problem in problems) if words else problems == []
    assert verified(forged, WITNESS).problems  # what a chain cannot tell by itself, the witness can


def test_gaps_are_allowed_in_a_part_of_a_chain():
    part = [SOUND[1], SOUND[3]]
    assert verified(part, partial=True).problems == []
    assert verified(part).problems
    assert verified(edited(SOUND)[1:], partial=True).problems
    assert verified(part[::-1], partial=True).problems


def test_recorded_heads_are_compared():
    verification = verified(SOUND)
    verification.compare({1: Head(3, SOUND[2][2])})
    verification.compare({1: WITNESS.heads[1], 2: Head(1, GENESIS)})
    assert verification.problems == [
        "the chain ends at position 4, but its recorded end is 3",
        "the chain ends at position 0, but its recorded end is 1",
    ]


def test_chains_do_not_mix():
    verification = Verification()
    for chain in (1, 2):
        for position, previous, hashed, _ in SOUND:
            verification.follow(Entry(chain, position, previous, hashed, "entry"), hashed)
    assert verification.problems == []
    assert verification.heads[1] == verification.heads[2]


def test_a_witness_survives_as_text():
    for at in (None, 0.0, 1767225600.123456):
        witness = WITNESS._replace(at=at)
        assert witness_in(witness_of(*witness)) == witness
    assert witness_in(None) == Witness({})


HEAD = '{"at": null, "heads": '


@pytest.mark.parametrize(
    "line",
    ["", "x", "[]", "{}", "null", "[" * 100_000, '{"heads": []}', '{"at": 1, "heads": []}',
     '{"at": "yesterday", "heads": []}', f"{HEAD}1}}", f"{HEAD}[[1]]}}", f'{HEAD}[[1, 2, "zz"]]}}',
     f'{HEAD}[[true, 2, ""]]}}', f"{HEAD}[[1, 2, 3]]}}", f'{HEAD}[[1, {2**63}, ""]]}}',
     f'{HEAD}[[1, {"9" * 5000}, ""]]}}', witness_of(WITNESS.heads)[:-3]],
)  # fmt: skip
def test_a_line_that_is_no_witness_is_refused(line):
    with pytest.raises(LedgerError, match="the witness is not valid"):
        witness_in(line)


def timed(*times: float | None, witness: Witness | None = None, now: float = 1e6) -> list[str]:
    verification = Verification(witness, now=now)
    for (position, previous, hashed, _), at in zip(SOUND, times, strict=False):
        entry = Entry(1, position, previous, hashed, f"entry {position}", at)
        verification.follow(entry, hashed)
    return verification.problems


def test_times_rise_along_a_chain_but_for_the_tolerance_of_clocks():
    assert timed(10.0, 10.0, 5000.0, 5000.0 - CLOCKS) == []
    (problem,) = timed(10.0, 5000.0, 10.0, 6000.0)
    assert problem == "entry 3 is dated before the entry, or the witness, before it"
    # Small steps do not add up, and a time that is not the ledger's is not compared.
    assert len(timed(1000.0, 800.0, 600.0, 400.0)) == 2
    assert timed(5000.0, None, 10.0)[0].startswith("entry 3 is dated before")


@pytest.mark.parametrize("absurd", [float("inf"), 1e12])
def test_a_time_in_the_future_is_found_and_does_not_blame_what_follows(absurd):
    (problem,) = timed(10.0, absurd, 20.0)
    assert problem == "entry 2 is dated after the time of its verification"
    assert timed(10.0, -absurd, 20.0) != []


def test_times_lie_within_the_witnesses_around_them():
    heads = {1: Head(2, SOUND[1][2])}
    assert timed(10.0, 20.0, 5000.0, witness=Witness(heads, 5000.0)) == []
    after, before = (
        timed(10.0, 4000.0, 20.0, witness=Witness(heads, 2000.0)),
        timed(10.0, 20.0, 30.0, witness=Witness(heads, 5000.0)),
    )
    assert after[0] == "entry 2 is dated after the time of the witness that covers it"
    assert before == ["entry 3 is dated before the entry, or the witness, before it"]
    (problem,) = timed(10.0, witness=Witness({}, 2e6))[:1]
    assert problem.startswith("the witness is dated in the future")


def test_many_problems_of_one_kind_do_not_hide_those_of_others():
    verification = Verification()
    for chain in (1, 2):
        for position in range(1, 1001):
            entry = Entry(chain, position, GENESIS, GENESIS, f"{chain}/{position}")
            verification.follow(entry, b"")
    verification.report("another one", "of its kind")
    assert verification.found == 2001
    assert "another one" in verification.problems
    assert sum(problem.startswith("2/") for problem in verification.problems) == 20
    assert verification.problems[-1] == "1,960 more problems of these kinds"
    invented = Verification()
    for chain in range(2_000):
        invented.follow(Entry(chain, 1, GENESIS, GENESIS, f"{chain}/1"), b"")
    assert (invented.found, len(invented.problems)) == (2_000, 1_000 + 20 + 1)


def test_a_commitment_binds_a_text_and_hides_it():
    salt = new_salt()
    committed = commitment(salt, "an insult")
    assert opens(committed, salt, "an insult")
    assert not opens(committed, salt, "a compliment")
    assert not opens(committed, new_salt(), "an insult")
    assert not opens(committed, None, None)  # erased, which is for the caller to judge
    assert not opens(None, salt, "an insult")
    assert commitment(new_salt(), "an insult") != committed


def lines_of(*kinds: str) -> list[str]:
    made, previous = [], GENESIS.hex()
    for position, kind in enumerate(kinds, 1):
        made.append(written_line({"position": position, "previous": previous, "kind": kind}))
        previous = json.loads(made[-1])["hash"]
    return made


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (lambda lines: [lines[0].replace("plan", "draw"), lines[1]], "line 1 of it was changed"),
        (lambda lines: lines[1:], "entries are missing before line 1 of it"),
        (lambda lines: [lines[0], lines[0]], "line 2 of it is out of order"),
        (lambda lines: [lines[0], lines_of("x", "draw")[1]], "line 2 of it does not follow"),
        (lambda lines: [lines[0].replace(",", ", ")], "line 1 of it is not in canonical form"),
        (lambda lines: [lines[0][:-1]], "line 1 of it is not in canonical form"),
        (lambda lines: [lines[0], "x"], "line 2 of it is not an entry"),
        (lambda lines: [lines[0].replace(":1", ":true")], "line 1 of it is not an entry"),
    ],
)
def test_an_attack_on_lines_is_found(attack, words):
    lines = lines_of("plan", "draw")
    assert [fields["kind"] for fields in read_lines("".join(lines), "it", dict)] == ["plan", "draw"]
    with pytest.raises(LedgerError, match=f"^{words}"):
        read_lines("".join(attack(lines)), "it", dict)
