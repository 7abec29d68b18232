"""Agreement from the log: which judgements count, and that intervals hold what is true."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from databases import execute, tamper
from moderator_groups import count_as_chosen
from sqlalchemy import Engine

from modwatch.common.errors import QueueError
from modwatch.review.people import accounts, changes
from modwatch.review.quality_control.agreement import (
    AgreementReport,
    agreement_by_group,
    agreement_report,
)
from modwatch.review.quality_control.gold import GoldComment, add_gold, retire_gold
from modwatch.review.quality_control.queueing import queue_quality_control
from modwatch.review.queue import intake, leases
from modwatch.review.queue.deciding import correct, undo
from modwatch.review.queue.items import NewItem
from review.labelling import label, label_all, routed_like_gold

Make = Callable[..., NewItem]

#: What a person makes of a comment of this id.
Judge = Callable[[str], int]

TODAY = datetime.now(UTC).date()


def truth(comment_id: str) -> int:
    """Return what everybody should say: every third comment is toxic."""
    return int(int("".join(filter(str.isdigit, comment_id)) or 0) % 3 == 0)


def erring(rate: float, seed: int) -> Judge:
    """Return someone who errs at `rate`, each time anew."""
    rng = np.random.default_rng(seed)
    return lambda comment_id: truth(comment_id) ^ int(rng.random() < rate)


def report(engine: Engine, first: date = TODAY, **more: object) -> AgreementReport:
    """Return the report up to tomorrow: a test may run at midnight."""
    return agreement_report(engine, first, TODAY + timedelta(1), **more)  # type: ignore[arg-type]


def check(engine: Engine, day: date = TODAY, *, retest: float = 0.0, gold: float = 0.0) -> None:
    routed_like_gold(engine, day)
    queue_quality_control(engine, day, retest_share=retest, gold_share=gold, salt="s", least_days=0)


def panel(n: int) -> list[GoldComment]:
    return [
        GoldComment(comment_id=f"g{k}", text=f"invented {k}", label=truth(f"g{k}"), source="panel")
        for k in range(n)
    ]


@pytest.fixture
def stream(engine, new_item):
    days: Iterator[date] = (date(2025, 1, 1) + timedelta(k) for k in range(1000))

    def put(n: int, *kinds: str, **fields: object) -> None:
        day = next(days)
        items = [
            new_item(f"c{day:%m%d}{k:04}", k + 1, kind=kind, **fields)
            for k in range(n)
            for kind in kinds or ("review",)
        ]
        intake.enqueue(engine, items, day)

    return put


def test_nothing_compared_is_insufficient_throughout(engine):
    found = report(engine)
    figures = (
        found.confirmations, found.confirmations_kappa, found.several_labels_alpha,
        found.gold_accuracy, found.retest_consistency, found.retest_disagreement,
    )  # fmt: skip
    assert {(figure.status, figure.value, figure.n) for figure in figures} == {
        ("insufficient", None, 0)
    }
    assert found.gold_by_person == found.retests_by_person == ()
    with pytest.raises(QueueError, match="swap the days"):
        agreement_report(engine, TODAY, TODAY - timedelta(1))


def test_first_labels_and_confirmations_are_compared(engine, ann, ben, stream):
    stream(20, "review", "confirmation")
    stream(3)  # without a confirmation
    label_all(engine, ann, truth)
    wrong = iter([True] * 5 + [False] * 15)
    label_all(engine, ben, lambda comment_id: truth(comment_id) ^ next(wrong))
    found = report(engine, minimum=20)
    assert (found.confirmations.value, found.confirmations.n) == (0.75, 20)
    assert 0 < found.confirmations_kappa.value < 0.75
    assert found.several_labels_alpha.n == 0
    before = agreement_report(engine, TODAY - timedelta(9), TODAY - timedelta(2))
    assert before.confirmations.n == 0
    assert report(engine, queues=["general"]).confirmations.n == 20
    assert report(engine, queues=["another"]).confirmations.n == 0


def test_a_rarely_confirmed_label_stands_for_those_that_were_not_confirmed(
    engine, ann, ben, stream
):
    """Each clean label stands for ten, each toxic one for one; they disagree on the toxic ones."""
    chances = {"confirmation_probability_0": 0.1, "confirmation_probability_1": 1.0}
    stream(30, "review", "confirmation", **chances)
    label_all(engine, ann, truth)
    label_all(engine, ben, lambda _: 0)
    found = report(engine, minimum=20).confirmations
    assert (found.value, found.n) == (pytest.approx(20 * 10 / (20 * 10 + 10)), 30)


def test_what_was_undone_does_not_count_and_what_was_corrected_counts_as_first_stated(
    engine, ann, ben, stream
):
    stream(3, "review", "confirmation")
    first, second, _ = label_all(engine, ann, lambda _: 1)
    lease = undo(engine, moderator_id=ann.id, decision_id=first.id, idempotency_key="undo")
    label(engine, ann, lease, 0)
    correct(
        engine, moderator_id=ann.id, item_id=second.item_id, label=0, version=2,
        idempotency_key="corrected", reason="slip",
    )  # fmt: skip
    label_all(engine, ben, lambda _: 1)
    found = report(engine, minimum=1).confirmations
    # The one said anew differs; the corrected one was the same at first.
    assert (found.value, found.n) == (pytest.approx(2 / 3), 3)


def test_several_labels_of_an_item_and_no_adjudication(engine, ann, ben, stream):
    lea = accounts.create_moderator(engine, "lea", "lead")
    stream(20, labels_wanted=2)
    stream(3)  # of one label
    label_all(engine, ann, truth)
    wrong = iter([True] * 2 + [False] * 21)
    label_all(engine, ben, lambda comment_id: truth(comment_id) ^ next(wrong))
    before = report(engine, minimum=20).several_labels_alpha
    assert before.n == 20
    assert 0.6 < before.value < 0.9
    while (lease := leases.lease_escalated(engine, lea.id)) is not None:
        label(engine, lea, lease)
    assert report(engine, minimum=20).several_labels_alpha == before


def test_gold_that_is_retired_or_answered_anew_counts_no_more(engine, ann, stream):
    stream(10)
    label_all(engine, ann, truth)
    add_gold(engine, panel(10))
    check(engine, gold=1.0)
    done = label_all(engine, ann, lambda comment_id: 0)
    assert len(done) == 10
    found = report(engine, minimum=1)
    assert (found.gold_accuracy.value, found.gold_accuracy.n) == (0.6, 10)
    retire_gold(engine, ["g0", "g3", "g6", "g9"])
    assert report(engine, minimum=1).gold_accuracy.value == 1
    # Another answer of today judges nobody of yesterday; the same one brings the answer back.
    add_gold(engine, [GoldComment(comment_id="g0", text="i", label=0, source="new panel")])
    assert report(engine, minimum=1).gold_accuracy.n == 6
    add_gold(engine, panel(4)[3:])
    assert report(engine, minimum=1).gold_accuracy.n == 7


def test_a_persons_figures_are_kept_back_below_the_minimum(engine, ann, ben, stream):
    add_gold(engine, panel(60))
    for person, n in ((ann, 30), (ben, 10)):
        stream(n)
        label_all(engine, person, truth)
    check(engine, gold=1.0)
    for person in (ann, ben):
        label_all(engine, person, truth)
    a, b = report(engine).gold_by_person
    assert (a.pseudonym, a.agreement.value, a.agreement.n) == ("ann", 1, 30)
    assert (b.pseudonym, b.agreement.value) == ("ben", None)
    assert b.agreement.reason == "10 pairs of labels; 30 are needed"
    assert report(engine).gold_accuracy.n == 40


def test_retests_compare_a_person_with_themselves(engine, ann, ben, stream):
    stream(15, stratum=0)
    label_all(engine, ann, truth)
    stream(5, stratum=2, inclusion_probability=0.1)
    label_all(engine, ben, lambda _: 1)
    check(engine, retest=1.0)
    assert len(label_all(engine, ann, lambda comment_id: 1 - truth(comment_id))) == 15
    assert len(label_all(engine, ben, lambda _: 1)) == 5
    found = report(engine, minimum=5)
    assert [(item.pseudonym, item.agreement.value) for item in found.retests_by_person] == [
        ("ann", 0),
        ("ben", 1),
    ]
    assert (found.retest_consistency.value, found.retest_disagreement.value) == (0.25, 0.75)


def test_groups_are_shown_from_a_size_on(engine, stream, ann):
    add_gold(engine, panel(60))
    staff = [accounts.create_moderator(engine, f"person {k}", "moderator") for k in range(13)]
    for k, person in enumerate(staff):
        # Six in the first; four and two in small ones; one says nothing.
        group = "north" if k < 6 else "south" if k < 10 else "east" if k < 12 else None
        changes.describe_group(engine, person.id, group)
        stream(8)
        label_all(engine, person, truth)
    changes.describe_group(engine, ann.id, "south")  # never answered, so does not count
    count_as_chosen(engine)
    check(engine, gold=1.0)
    for k, person in enumerate(staff):
        label_all(engine, person, truth if k < 6 else lambda comment_id: 1 - truth(comment_id))
    period = (TODAY, TODAY + timedelta(1))
    (north,) = agreement_by_group(engine, *period, least_people=5)
    assert (north.group, north.people, north.gold_accuracy.value) == ("north", 5, 1)
    assert north.gold_accuracy.n == 45  # of 48
    assert north.retest_consistency.reason == "too few people contributed"
    assert agreement_by_group(engine, *period, least_people=7) == []
    with pytest.raises(QueueError, match="at least 5"):
        agreement_by_group(engine, *period, least_people=4)
    changes.describe_group(engine, staff[12].id, "north")
    # not the group that they chose
    execute(engine, "UPDATE moderator_group SET counted_as = 'south'")
    (south,) = agreement_by_group(engine, *period, least_people=5)
    assert (south.group, south.people) == ("south", 10)
    # Everybody less the shown group would be the four of the south.
    changes.describe_group(engine, staff[12].id, None)
    for person in staff[10:]:
        changes.describe_group(engine, person.id, "north")
    count_as_chosen(engine)
    assert agreement_by_group(engine, *period, least_people=5) == []


def test_agreement_and_error_cover_what_is_true(engine, ann, ben, stream):
    """Two people who err at 10 %: κ, α, r and the error rate behind them, and what gold says."""
    error, toxic, n = 0.1, 1 / 3, 40
    judges = {ann.id: erring(error, 11), ben.id: erring(error, 12)}
    stream(n, "review", "confirmation")
    stream(n, labels_wanted=2)
    for person in (ann, ben):
        label_all(engine, person, judges[person.id])
    add_gold(engine, panel(100))
    for k in range(2):
        check(engine, TODAY + timedelta(k), retest=1.0, gold=1.0)
        for person in (ann, ben):
            label_all(engine, person, judges[person.id])
    found = report(engine)
    r, result = 2 * error * (1 - error), toxic * (1 - error) + (1 - toxic) * error
    kappa = 1 - r / (2 * result * (1 - result))
    true = {
        "confirmations": 1 - r, "confirmations_kappa": kappa, "several_labels_alpha": kappa,
        "retest_consistency": 1 - r, "retest_disagreement": r, "gold_accuracy": 1 - error,
    }  # fmt: skip
    for name, value in true.items():
        figure = getattr(found, name)
        assert figure.low <= value <= figure.high, name
        assert figure.n >= n
    for person in found.gold_by_person:
        assert person.agreement.low <= 1 - error <= person.agreement.high


def test_the_log_is_read_by_its_days(engine, ann, stream):
    stream(5)
    label_all(engine, ann, truth)
    add_gold(engine, panel(5))
    check(engine, gold=1.0)
    label_all(engine, ann, truth)
    # nothing but a test may
    tamper(engine, "UPDATE decision SET decided_at = '2026-03-05 23:59:59.999999+00'")
    tamper(engine, "UPDATE gold_comment SET added_at = '2026-01-01'")
    fifth = date(2026, 3, 5)
    for first, last, n in (
        (fifth, fifth, 5),
        (fifth + timedelta(1), fifth + timedelta(2), 0),
        (fifth - timedelta(2), fifth - timedelta(1), 0),
    ):
        assert agreement_report(engine, first, last).gold_accuracy.n == n
