"""What an audit takes from the lake and the log: chances of being drawn, labels that change."""

from collections import Counter
from dataclasses import replace

import pytest
from small_audits import ADAPTIVE, REQUEST, begin, correct_some, label_everything, seal
from sqlalchemy import select

from modwatch.audit import files
from modwatch.audit.plan import AuditPlan
from modwatch.audits import auditing, verification
from modwatch.errors import AuditError
from modwatch.resources import Resources
from modwatch.review.tables import review_item

ONE = "the labels of 1 comment were changed in the log of decisions after they were sealed"
ANEW = "; cancel the audit, and plan it anew"


def test_comments_are_queued_with_the_chance_that_all_stages_so_far_gave_them(
    small: Resources,
) -> None:
    seal(small, ADAPTIVE)
    auditing.draw_stage(small, "small")
    folder = auditing.store(small).read("small")
    strata = AuditPlan.from_json(folder[files.PLAN].decode()).strata
    stages = [files.read_sample(folder[files.sample_file(stage)]) for stage in (1, 2)]
    expected = {}
    for drawn in stages:
        sizes = Counter(each.stratum for each in drawn)
        for each in drawn:
            chance = sizes[each.stratum] / strata[each.stratum].population
            expected.setdefault((each.day, each.comment_id), chance)
    columns = (review_item.c.dt, review_item.c.comment_id, review_item.c.inclusion_probability)
    with small.database.connect() as connection:
        found = {(day, name): chance for day, name, chance in connection.execute(select(*columns))}
    assert found == pytest.approx(expected)
    first = len(stages[0])
    assert len(found) == len(stages[1]) == 160 > first
    by_the_first_alone = {
        (each.day, each.comment_id): strata[each.stratum].labels / strata[each.stratum].population
        for each in stages[1]
    }
    differ = [key for key, chance in found.items() if chance != by_the_first_alone[key]]
    assert len(differ) == len(found) - first


def test_a_label_corrected_between_the_stages_is_refused_before_the_second_is_drawn(
    small: Resources,
) -> None:
    seal(small, ADAPTIVE)
    correct_some(small)
    with pytest.raises(AuditError, match=f"^audit 'small': {ONE}{ANEW}$"):
        auditing.draw_stage(small, "small")


def test_a_label_of_the_first_stage_corrected_later_is_refused_and_there_is_a_way_on(
    small: Resources,
) -> None:
    seal(small, ADAPTIVE)
    auditing.draw_stage(small, "small")
    correct_some(small, 2)
    label_everything(small)
    for stop in (False, True):
        with pytest.raises(AuditError, match=r"the labels of 2 comments were changed.*anew$"):
            auditing.seal_labels(small, "small", stop=stop)
    auditing.cancel(small, "small", actor="eva", note="two slips")
    assert verification.check(small, "small") == [ONE.replace("1 comment", "2 comments")]
    begin(small, replace(REQUEST, audit="anew"))
    assert auditing.progress(small, "anew").left == 120


def test_what_was_corrected_before_it_was_sealed_is_the_label(small: Resources) -> None:
    begin(small)
    label_everything(small)
    correct_some(small, 3)
    assert auditing.seal_labels(small, "small") == 120
    auditing.estimate(small, "small")
    auditing.sign_off(small, "small", actor="eva")
    assert verification.check(small, "small") == []
    labels = files.read_labels(auditing.store(small).read("small")[files.labels_file(1)])
    assert sum(each.action == "adjudicate" for each in labels) == 3


def test_a_result_whose_labels_changed_is_not_signed(small: Resources) -> None:
    seal(small)
    correct_some(small)
    auditing.estimate(small, "small")
    with pytest.raises(AuditError, match=f"^audit 'small': {ONE}{ANEW}$"):
        auditing.sign_off(small, "small", actor="eva")
    assert verification.check(small, "small") == [ONE]


def test_a_label_that_changes_after_sign_off_keeps_the_report_back(small: Resources) -> None:
    seal(small)
    auditing.estimate(small, "small")
    auditing.sign_off(small, "small", actor="eva")
    correct_some(small)
    with pytest.raises(AuditError, match=f"^audit 'small': {ONE}{ANEW}$"):
        auditing.publish(small, "small")
    auditing.cancel(small, "small", actor="eva")
    assert files.REPORT not in auditing.store(small).read("small")


def test_a_label_that_changes_after_publication_is_told(small: Resources) -> None:
    seal(small)
    auditing.estimate(small, "small")
    auditing.sign_off(small, "small", actor="eva")
    auditing.publish(small, "small")
    correct_some(small)
    auditing.publish(small, "small")  # by a task that is run again
    assert verification.check(small, "small") == [ONE]
