"""What an audit takes from the lake and the log: chances of being drawn, labels that change."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from small_audits import ADAPTIVE, REQUEST, begin, correct_some, label_everything, seal
from sqlalchemy import select

from modwatch.audits import files
from modwatch.common.errors import AuditError
from modwatch.installation.resources import Resources
from modwatch.review.tables import review_item
from modwatch.statistics.audit.plan import AuditPlan

After = Callable[[str], Resources]

ONE = "the labels of 1 comment were changed in the decision log after they were sealed"
ANEW = "; cancel the audit and plan another"


def test_comments_are_queued_with_the_chance_that_all_stages_so_far_gave_them(small):
    seal(small, ADAPTIVE)
    small.audit("small").draw()
    folder = small.audit_store.read("small")
    strata = AuditPlan.from_json(folder[files.PLAN].decode()).strata
    stages = [files.read_sample(folder[files.sample_file(stage)]) for stage in (1, 2)]
    expected = {}
    for drawn in stages:
        sizes = Counter(comment.stratum for comment in drawn)
        for comment in drawn:
            chance = sizes[comment.stratum] / strata[comment.stratum].population
            expected.setdefault((comment.day, comment.comment_id), chance)
    columns = (review_item.c.dt, review_item.c.comment_id, review_item.c.inclusion_probability)
    with small.database.connect() as connection:
        found = {(day, name): chance for day, name, chance in connection.execute(select(*columns))}
    assert found == pytest.approx(expected)
    first = len(stages[0])
    assert len(found) == len(stages[1]) == 160 > first
    by_the_first_alone = {
        (item.day, item.comment_id): strata[item.stratum].labels / strata[item.stratum].population
        for item in stages[1]
    }
    differ = [key for key, chance in found.items() if chance != by_the_first_alone[key]]
    assert len(differ) == len(found) - first


def test_a_label_corrected_between_the_stages_is_refused_before_the_second_is_drawn(small):
    seal(small, ADAPTIVE)
    correct_some(small)
    with pytest.raises(AuditError, match=f"^audit 'small': {ONE}{ANEW}$"):
        small.audit("small").draw()


def test_a_label_of_the_first_stage_corrected_later_is_refused_and_there_is_a_way_on(small):
    seal(small, ADAPTIVE)
    small.audit("small").draw()
    correct_some(small, 2)
    label_everything(small)
    for stop in (False, True):
        with pytest.raises(AuditError, match=r"the labels of 2 comments were changed.*another$"):
            small.audit("small").seal(stop=stop)
    small.audit("small").cancel(actor="eva", note="two slips")
    assert small.audit("small").verify() == [ONE.replace("1 comment", "2 comments")]
    begin(small, replace(REQUEST, audit="anew"))
    assert small.audit("anew").progress().left == 120


def test_what_was_corrected_before_it_was_sealed_is_the_label(after):
    small = after("label")
    correct_some(small, 3)
    assert small.audit("small").seal() == 120
    small.audit("small").estimate()
    small.audit("small").sign_off(actor="fay")
    assert small.audit("small").verify() == []
    labels = files.read_labels(small.audit_store.read("small")[files.labels_file(1)])
    assert sum(label.action == "correct" for label in labels) == 3


def test_labels_that_change_after_they_were_sealed_stop_the_next_step(after):
    """They are not signed, nor published; after publication they are reported."""
    small = after("seal")
    correct_some(small)
    small.audit("small").estimate()
    with pytest.raises(AuditError, match=f"^audit 'small': {ONE}{ANEW}$"):
        small.audit("small").sign_off(actor="fay")
    assert small.audit("small").verify() == [ONE]

    small = after("sign_off")
    correct_some(small)
    with pytest.raises(AuditError, match=f"^audit 'small': {ONE}{ANEW}$"):
        small.audit("small").publish()
    small.audit("small").cancel(actor="eva")
    assert files.REPORT not in small.audit_store.read("small")


def test_a_label_that_changes_after_publication_is_reported(published):
    correct_some(published)
    published.audit("small").publish()  # by a task that is run again
    assert published.audit("small").verify() == [ONE]
