"""The label that counts of each drawn comment."""

from dataclasses import replace
from datetime import timedelta

import pytest
from audit_making import FIRST, NOW
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import AuditError
from modwatch.statistics.audit.draw import DrawnComment
from modwatch.statistics.audit.labels import (
    AuditLabel,
    Key,
    changed,
    final_labels,
    refuse_conflicts,
)

DRAWN = [
    DrawnComment(day=FIRST, comment_id=name, stratum=0, score=0.1, key=number)
    for number, name in enumerate(("a", "b", "c"))
]


def audit_label(
    comment_id: str, labeller: str, label: int, action: str = "label", day: int = 0
) -> AuditLabel:
    return AuditLabel(
        day=FIRST + timedelta(days=day), comment_id=comment_id, labeller=labeller, action=action,
        label=label, decided_at=NOW.isoformat(), decision="00",
    )  # fmt: skip


def final(*labels: AuditLabel) -> dict[str, int]:
    return {comment_id: label for (_, comment_id), label in final_labels(DRAWN, labels).items()}


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        (
            [audit_label("x", "ann", 1)],
            "comment 'x' of 2026-01-05 by 'ann' refers to a comment that was not",
        ),
        (
            [audit_label("a", "ann", 1, day=1)],
            "of 2026-01-06 by 'ann' refers to a comment that was not drawn",
        ),
        ([audit_label("a", "ann", 2)], "is neither 0 nor 1"),
        ([audit_label("a", "ann", 1, "skip")], "has the action 'skip'"),
        (
            [audit_label("a", "ann", 1), audit_label("a", "ann", 1)],
            "is the second by the same person",
        ),
        (
            [
                audit_label("a", "ann", 1),
                audit_label("a", "bob", 0),
                audit_label("a", "ann", 1, "adjudicate"),
            ],
            "by 'ann' is the second by the same person",
        ),
        (
            [audit_label("a", name, 1, "adjudicate") for name in ("lea", "leo")],
            "is adjudicated twice",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(labels, why):
    for given_ in (labels, labels[::-1], [audit_label("b", "ann", 0), *labels]):
        with pytest.raises(AuditError, match=f"^the label of .*{why}"):
            final(*given_)


def test_people_may_not_label_what_they_moderated():
    key: Key = (FIRST, "a")
    labels = [audit_label("a", "ann", 1), audit_label("b", "bob", 0)]
    refuse_conflicts(labels, {})
    refuse_conflicts(labels, {key: {"bob"}, (FIRST + timedelta(1), "a"): {"ann"}})
    refuse_conflicts([], {key: {"ann"}})
    for action in ("label", "adjudicate"):
        with pytest.raises(AuditError, match="1 label is by people who decided"):
            refuse_conflicts([replace(labels[0], action=action)], {key: {"ann", "eve"}})


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from(["p", "q", "r"]), st.integers(0, 1),
            st.sampled_from(["label", "adjudicate"]),
        ),
        max_size=9, unique_by=lambda item: item[:2],
    ),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_the_order_of_the_labels_does_not_matter(rows, random):
    labels = [audit_label(*row) for row in rows]
    settlements = [comment for comment, _, _, action in rows if action == "adjudicate"]
    if len(settlements) > len(set(settlements)):
        with pytest.raises(AuditError, match="adjudicated twice"):
            final(*labels)
        return
    expected = {}
    for name in "abc":
        mine = [row for row in rows if row[0] == name]
        settled = {row[2] for row in mine if row[3] == "adjudicate"}
        excess = sum(1 if row[2] else -1 for row in mine)
        if settled:
            expected[name] = settled.pop()
        elif excess:
            expected[name] = int(excess > 0)
    random.shuffle(labels)  # type: ignore[attr-defined]
    assert final(*labels) == expected


SEALED = [audit_label("a", "ann", 1), audit_label("a", "bob", 1), audit_label("b", "ann", 0)]


@pytest.mark.parametrize(
    ("now", "names"),
    [
        (SEALED, set()),
        (SEALED[::-1], set()),
        ([*SEALED, audit_label("c", "ann", 1)], set()),  # of the next stage
        (SEALED[:2], {"b"}),
        (SEALED[1:], {"a"}),
        ([], {"a", "b"}),
        ([*SEALED, audit_label("b", "bob", 0)], {"b"}),
        ([*SEALED[:2], audit_label("b", "ann", 1)], {"b"}),
        ([*SEALED[:2], audit_label("b", "ann", 0, "adjudicate")], {"b"}),
        ([*SEALED[:2], replace(SEALED[2], decision="11")], {"b"}),
    ],
)
def test_labels_that_changed_since_they_were_sealed(now, names):
    assert changed(SEALED, now) == {(FIRST, name) for name in names}
    assert changed([], now) == set()
