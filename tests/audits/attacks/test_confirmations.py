"""Confirmations left out, or given where someone liked; the attacker makes all else fit."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from audit_forger import finders, forge, problems, remarks
from audit_path import FORM, STEPS
from databases import empty
from kept_audits import keep
from small_audits import (
    label_everything,
    make_small_home,
    same_audit_draws,
    small_installation,
)

from modwatch.audits import files
from modwatch.audits.evidence import STOPPED, Event
from modwatch.installation.resources import Resources, open_resources
from modwatch.pipeline import audit as path
from modwatch.review.people.accounts import create_moderator
from modwatch.statistics.audit.labels import AuditLabel, Key, in_order, key_of
from review.labelling import label_all, label_next

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.fixture(scope="module")
def confirmed(migrated_queue_url, queue_owner, tmp_path_factory):
    """A published audit with many confirmations, a few of which overturn the first label."""
    empty(queue_owner)
    folder = tmp_path_factory.mktemp("confirmed")
    home = make_small_home(folder / "home", migrated_queue_url)
    with same_audit_draws(), open_resources(home.settings) as small:
        path.plan(small, {**FORM, "confirmed_share": 0.6}, actor="eva")
        for name in ("approve", "draw"):
            STEPS[name](small)
        cem = create_moderator(small.database, "cem", "moderator")
        for _ in range(25):
            label_next(small.database, cem, 1)
        label_everything(small)
        label_all(small.database, cem, lambda _: 0)  # the third labels
        for name in ("seal", "estimate", "sign_off", "publish"):
            STEPS[name](small)
        return keep(small, queue_owner, folder / "kept")


@pytest.fixture
def published(confirmed, queue_url, queue_owner, tmp_path, same_draws):
    with confirmed.opened(queue_owner, small_installation(tmp_path, queue_url)) as resources:
        yield resources


def sealed(resources: Resources) -> dict[Key, list[AuditLabel]]:
    return in_order(files.read_labels(resources.audit_store.read("small")[files.labels_file(1)]))


def forged(
    resources: Resources, labels: Iterable[AuditLabel], outcome: str = "decided"
) -> dict[str, bytes]:
    """Return the files with these labels, and outcomes that fit."""
    kept = list(labels)
    number = {key: len(item) for key, item in in_order(kept).items()}
    folder = resources.audit_store.read("small")
    result = [
        item
        if item.labels == number.get(key_of(item), 0)
        else replace(item, outcome=outcome, labels=number.get(key_of(item), 0))
        for item in files.read_outcomes(folder[files.outcomes_file(1)])
    ]
    return {
        files.labels_file(1): files.write_labels(kept),
        files.outcomes_file(1): files.write_outcomes(result),
    }


def only_the_first(resources: Resources) -> tuple[list[AuditLabel], int]:
    """Return the labels without the confirmations that overturned the first one."""
    kept, gone = [], 0
    for item in sealed(resources).values():
        overturned = len(item) > 1 and item[0].label != item[1].label
        gone += overturned
        kept += item[:1] if overturned else item
    assert gone
    return kept, gone


def test_what_was_published_is_valid(published):
    assert published.audit("small").verify() == []
    assert any(len(item) > 1 for item in sealed(published).values())


def test_only_the_favourable_label_is_kept(published):
    kept, gone = only_the_first(published)
    forge(published, forged(published, kept))
    [found] = problems(published, "files")
    assert found.startswith(f"labels-1.csv lacks further labels of {gone} decided comment")
    assert found.endswith("confirmations were left out")


def test_only_the_favourable_label_is_kept_and_the_labelling_stated_to_be_stopped(published):
    """Then the files are consistent, and the log has the labels."""
    kept, gone = only_the_first(published)

    def stop(event: Event) -> Event:
        return replace(event, facts={STOPPED: "yes"}) if event.action == "labelled" else event

    forge(published, forged(published, kept, "withdrawn"), event=stop)
    assert problems(published, "files") == []
    assert any(f"{gone} comments lack a further label" in message
               for message in remarks(published, "files"))  # fmt: skip
    assert "decision log" in finders(published)


def test_a_label_is_confirmed_that_the_plan_does_not_confirm(published):
    one = next(item[0] for item in sealed(published).values() if len(item) == 1)
    every = [label for item in sealed(published).values() for label in item]
    another = replace(one, labeller="dan", label=1 - one.label)
    third = replace(one, labeller="eli", label=1 - one.label)
    forge(published, forged(published, [*every, another, third]))
    [found] = problems(published, "files")
    assert found.endswith("according to the plan: the confirmations were chosen")


def test_another_rule_is_another_plan(published):
    plan = published.audit("small").plan
    rules = {side: replace(rule, positive=0.0) for side, rule in (plan.confirmations or {}).items()}
    other = replace(plan, confirmations=rules)
    forge(published, {files.PLAN: other.to_json().encode()}, redo=False)
    assert problems(published, "files")
