"""One person wants to be several, and several people want to be others."""

from dataclasses import replace

import pytest
from audit_forger import finders, forge, problems, remarks
from small_audits import REQUEST, begin, label_everything, plan_audit

from modwatch.audits.evidence import Event
from modwatch.audits.identities import is_person
from modwatch.audits.publication import level_of_files
from modwatch.cli.main import main
from modwatch.common.errors import AuditError
from modwatch.common.text import folded
from modwatch.review.people.accounts import create_moderator
from review.labelling import label_all

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

SAME = ["eva", "EVA", " Eva ", "\uff45va", "eva\u3000"]


def test_the_planner_approves(after):
    audit = after("plan").audit("small")
    for name in SAME:
        with pytest.raises(AuditError, match="planned it and cannot approve it: that takes anoth"):
            audit.approve(actor=name)
    for name in ("", " ", "modwatch", "MODWATCH"):
        with pytest.raises(AuditError, match="is no person"):
            audit.approve(actor=name)
        assert not is_person(name)


@pytest.mark.parametrize(
    ("name", "did"),
    [
        ("Eva", "planned"),
        ("EVE", "approved"),
        ("Ann ", "labelled for"),
        ("\uff21nn", "labelled for"),
    ],
)
def test_planner_approver_or_labeller_signs(after, name, did):
    with pytest.raises(AuditError, match=f"{did} it and cannot sign it off"):
        after("estimate").audit("small").sign_off(actor=name)


def test_no_one_plans_in_the_name_of_the_machine(small, capsys):
    """Who could, would approve in their own."""
    arguments = ["audit", "plan", "a", "2026-01-05", "2026-01-06", "--by", "Modwatch"]
    assert main(arguments) == 1
    assert "is not the name of a person" in capsys.readouterr().err


def test_the_approver_is_served_nothing_to_label(small):
    person = create_moderator(small.database, "EVE", "moderator")
    begin(small)
    assert label_all(small.database, person, lambda _: 0) == []
    label_everything(small)
    assert small.audit("small").seal() == 120


def test_an_approver_who_labelled_all_the_same_is_found(after):
    """The account was made after the draw."""
    small = after("draw")
    eve = create_moderator(small.database, "Eve", "moderator")
    label_all(small.database, eve, lambda id_: int(int(id_[1:]) > 150 and int(id_[1:]) % 3 > 0))
    label_everything(small)
    with pytest.raises(AuditError, match="'eve' labelled for it and cannot approve it"):
        small.audit("small").seal()


@pytest.mark.parametrize(
    ("action", "name", "says"),
    [
        ("approved", "EVA", "the step approved does not count: 'EVA' planned it and cannot"),
        ("approved", "ann", "the step approved does not count: 'ann' labelled for it and cannot"),
        ("signed_off", "eva", "the step signed off does not count: 'eva' planned it and cannot"),
        ("signed_off", "Ben", "the step signed off does not count: 'Ben' labelled for it and"),
        ("signed_off", "modwatch", "the step signed off does not count: 'modwatch' is no person"),
    ],
)
def test_names_that_may_not_be_are_found_in_the_files(published, action, name, says):
    def renamed(event: Event) -> Event:
        return replace(event, actor=name) if event.action == action else event

    forge(published, event=renamed)
    [problem] = level_of_files(published.audit_store.read("small")).problems
    assert problem.startswith(says)


def test_one_person_says_so_on_plan_result_and_report(small):
    plan_audit(small, replace(REQUEST, four_eyes=False), actor="eva")
    small.audit("small").approve(actor="eva")
    small.audit("small").draw()
    label_everything(small)
    small.audit("small").seal()
    assert small.audit("small").estimate()["four_eyes"] is False
    with pytest.raises(AuditError, match="'ann' labelled for it and cannot sign it off"):
        small.audit("small").sign_off(actor="ann")
    small.audit("small").sign_off(actor="eva")
    small.audit("small").publish()
    assert finders(small) == set()
    assert any("does not require four eyes" in message for message in remarks(small, "files"))
    report = small.audit_store.read("small")["report.html"].decode()
    assert "planner, approver and signer may be one person" in report

    # Claimed afterwards, the plan is another, and so are the seed and the sample.
    plan = replace(small.audit("small").plan, four_eyes=True)
    forge(small, {"plan.json": plan.to_json().encode()}, cut=3)
    assert any("another random number than the plan" in item for item in problems(small, "files"))


def test_names_are_compared_as_people_read_them():
    assert len({*map(folded, SAME)}) == 1
    assert folded("ann") != folded("anna")
    assert folded("Straße") == folded("STRASSE")
