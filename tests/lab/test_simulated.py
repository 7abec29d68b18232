from collections.abc import Callable
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from modwatch.common.connections import listen
from modwatch.common.errors import AccessDeniedError, QueueError
from modwatch.review.console.app import server
from modwatch.review.log import verification
from modwatch.review.log.labels import confirming_labels, current_labels
from modwatch.review.people import access_tokens, accounts
from modwatch.review.queue import intake, metrics
from modwatch.review.tables import decision
from modwatch_lab.simulated import Ratings, SimulatedModerator, work
from review.labelling import a_later_day

Fill = Callable[[int], None]


@pytest.fixture
def base_url(engine):
    with listen("127.0.0.1", 0) as listener:
        running = server(engine)
        thread = Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        running.should_exit = True
        thread.join(timeout=30)


def simulated(
    engine: Engine, name: str, role: str = "moderator", **fields: object
) -> SimulatedModerator:
    person = accounts.create_moderator(engine, name, role)
    rates = {"false_positive_rate": 0.0, "false_negative_rate": 0.0, "seed": person.id}
    return SimulatedModerator(
        token=access_tokens.issue_token(engine, person.id),
        **(rates | fields),  # type: ignore[arg-type]
    )


def truth(n: int) -> dict[str, tuple[str, int]]:
    return {f"invented text of c{i}": (f"c{i}", i % 2) for i in range(n)}


def test_error_rates_are_those_asked_for():
    person = SimulatedModerator(
        token="", false_positive_rate=0.05, false_negative_rate=0.3, seed=3, skip_rate=0.1
    )
    n = 20_000
    for true, rate in ((0, 0.05), (1, 0.3)):
        labels = [person.label(f"c{i}", true) for i in range(n)]
        skips = labels.count(None)
        errors = labels.count(1 - true) / (n - skips)
        assert abs(skips / n - 0.1) < 4 * (0.1 * 0.9 / n) ** 0.5
        assert abs(errors - rate) < 4 * (rate * (1 - rate) / (n - skips)) ** 0.5


def test_errors_belong_to_person_and_comment():
    def labels(seed: int) -> list[int | None]:
        person = SimulatedModerator(
            token="", false_positive_rate=0.5, false_negative_rate=0.5, seed=seed
        )
        return [person.label(f"c{i}", 0) for i in range(100)]

    assert labels(1) == labels(1)
    assert labels(1) != labels(2)


def test_a_team_empties_the_queue(engine, base_url, fill, day):
    fill(60)
    team = [simulated(engine, name, skip_rate=0.2) for name in ("a", "b", "c")]
    report = work(base_url, team, truth(60))
    left = metrics.counts(engine).waiting  # what all three skipped
    assert report.decisions == 60 - left
    assert report.conflicts == 0
    assert report.skips > 0
    for batch in current_labels(engine, day):
        for row in batch.to_pylist():
            assert row["label"] == int(row["comment_id"][1:]) % 2
    assert verification.verify_log(engine).intact


def test_what_is_escalated_with_a_reason_a_lead_settles(engine, base_url, fill, day):
    fill(60)
    codes = ("threat.person", "hate.slur")
    team = [simulated(engine, name, escalate_rate=0.3, codes=codes) for name in ("a", "b")]
    report = work(base_url, team, truth(60))
    state = metrics.counts(engine)
    assert (state.waiting, state.decided, state.escalated) == (
        0, report.decisions, report.escalations,
    )  # fmt: skip
    assert 0 < report.escalations == 60 - report.decisions
    lead = simulated(engine, "lead", role="lead", codes=codes)
    settled = work(base_url, [lead], truth(60), limit=report.escalations - 1, escalated=True)
    assert settled.decisions == report.escalations - 1
    assert metrics.counts(engine).escalated == 1
    assert work(base_url, [lead], truth(60)).decisions == 0  # nothing waits for anybody
    assert work(base_url, [lead], truth(60), escalated=True).decisions == 1
    (labels,) = current_labels(engine, day)
    assert dict(zip(*(labels.column(name).to_pylist() for name in ("comment_id", "label")),
                    strict=True)) == dict(truth(60).values())  # fmt: skip
    with engine.connect() as connection:
        log = connection.execute(select(decision)).all()
    assert all(row.reason for row in log if row.action == "escalate")
    assert {row.policy_code for row in log if row.label == 1} == set(codes)
    assert {row.policy_code for row in log if row.label == 0} == {None}
    assert verification.verify_log(engine).intact


def test_a_team_that_errs_labels_every_round(engine, base_url, new_item, day):
    """A round opens with the labels before it: people ask until nothing is left for anybody."""
    rounds = ({}, *({"kind": "confirmation", "round": number} for number in (2, 3)))
    items = [new_item(f"c{i}", i + 1, **more) for i in range(60) for more in rounds]
    intake.enqueue(engine, items, day)
    a_later_day(engine)
    team = [
        simulated(engine, name, false_positive_rate=0.3, false_negative_rate=0.3, seed=seed)
        for seed, name in enumerate("abc")
    ]
    report = work(base_url, team, truth(60))
    given = [row for part in confirming_labels(engine, day) for row in part.to_pylist()]
    second = {row["comment_id"]: row for row in given if row["round"] == 2}
    third = {row["comment_id"]: row for row in given if row["round"] == 3}
    assert len(second) == 60
    differ = {name for name, row in second.items() if row["label"] != row["first_label"]}
    assert third.keys() == differ
    assert 60 * 0.42 - 4 * 3.9 < len(differ) < 60 * 0.42 + 4 * 3.9  # 2 · 0.3 · 0.7
    assert report.decisions == 120 + len(differ)
    state = metrics.counts(engine)
    assert (state.waiting, state.blocked) == (0, 60 - len(differ))


def test_work_is_bounded(engine, base_url, fill):
    fill(10)
    team = [simulated(engine, name) for name in ("a", "b")]
    assert work(base_url, team, truth(10), limit=4).decisions == 4
    assert metrics.counts(engine).waiting == 6
    assert work(base_url, team, truth(10), limit=0).decisions == 0
    assert work(base_url, [], {}).decisions == 0


def test_a_comment_without_truth_is_named(engine, base_url, fill):
    fill(1)
    with pytest.raises(QueueError, match="item 1 is unknown"):
        work(base_url, [simulated(engine, "a")], {})


def test_a_refused_token_is_an_error(engine, base_url, fill):
    person = SimulatedModerator(token="wrong", false_positive_rate=0, false_negative_rate=0, seed=0)
    assert "wrong" not in repr(person)
    with pytest.raises(AccessDeniedError, match="issue a new one"):
        work(base_url, [person], {})


@pytest.mark.parametrize("mount", ["", "/modwatch"])
def test_a_console_that_is_away_is_named(monkeypatch, mount):
    monkeypatch.setattr("modwatch_lab.simulated._TRIES", 2)
    person = SimulatedModerator(token="t", false_positive_rate=0, false_negative_rate=0, seed=0)
    message = (
        f"^http://127.0.0.1:1{mount}/api/v1/leases failed with ConnectError; check that the console"
    )
    with pytest.raises(QueueError, match=message):
        work(f"http://127.0.0.1:1{mount}", [person], {})


@given(ratings=st.lists(st.integers(0, 1), min_size=1, max_size=12), seed=st.integers(0, 50))
def test_the_first_people_give_every_rating_once_in_any_order_of_work(ratings, seed):
    source = Ratings(by_comment={"c": ratings}, seed=seed)
    people = list(range(len(ratings)))
    forwards = {person: source.rating("c", person) for person in people}
    backwards = {person: source.rating("c", person) for person in reversed(people)}
    assert forwards == backwards
    assert sorted(forwards.values()) == sorted(ratings)
    assert source.rating("c", len(ratings) + 3) in ratings


@pytest.mark.parametrize("person", [0, 2, 7])
def test_everybody_gives_anybodys_rating_with_the_same_chance(person):
    names = [f"c{n}" for n in range(4_000)]
    source = Ratings(by_comment=dict.fromkeys(names, (1, 0, 0, 0)))
    share = sum(source.rating(name, person) for name in names) / len(names)
    assert share == pytest.approx(0.25, abs=4 * 0.0069)  # four standard errors


def test_a_moderator_gives_ratings_whatever_the_truth_and_errs_elsewhere():
    person = SimulatedModerator(
        token="",
        false_positive_rate=1.0,
        false_negative_rate=1.0,
        seed=0,
        ratings=Ratings(by_comment={"rated": [1]}),
    )
    assert [person.label("rated", truth) for truth in (0, 1)] == [1, 1]
    assert [person.label("other", truth) for truth in (0, 1)] == [1, 0]
