"""A planner, an approver or a forger wants another sample."""

import datetime
import json
from dataclasses import replace

import pytest
from audit_forger import finders, forge, problems, remarks, remove_folder
from audit_path import FORM
from databases import unguarded
from small_audits import REQUEST, label_everything, plan_audit
from sqlalchemy import text

from installation import MONDAY, TUESDAY
from modwatch.audits import files, register, sources
from modwatch.audits.evidence import Event, first_of, following, written
from modwatch.audits.publication import level_of_files
from modwatch.audits.seeds import LOG, NUMBER, PUBLIC_VALUE, made_seed, seed_of
from modwatch.cli.main import main
from modwatch.common.errors import AuditError
from modwatch.data.lake.files import Folder
from modwatch.installation.resources import Resources
from modwatch.pipeline import audit as path
from modwatch.review.events import record_event
from modwatch.statistics.audit.draw import draw
from modwatch.statistics.audit.plan import AuditPlan

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def sizes(plan: AuditPlan) -> list[int]:
    return [item.labels for item in plan.strata]


def test_the_planner_knows_no_sample_of_any_plan(after):
    """The attack was: make two hundred plans, draw by each, and keep the best."""
    small = after("plan")
    plan = small.audit("small").plan
    assert "seed" not in json.loads(plan.to_json())
    with pytest.raises(AuditError, match="has no seed before its plan is approved"):
        draw(plan, sources.population(small.lake, plan), sizes(plan), "")
    with pytest.raises(AuditError, match="has no seed before its plan is approved"):
        seed_of(plan, small.audit_store.chain("small"))


def test_a_seed_given_by_hand_is_refused(small, capsys):
    with pytest.raises(AuditError, match="the seed of a draw cannot be chosen"):
        path.plan(small, {**FORM, "seed": "s"}, actor="eva")
    with pytest.raises(SystemExit):
        main(["audit", "plan", "a", str(MONDAY), str(TUESDAY), "--by", "eva", "--seed", "s"])
    assert "No such option '--seed'" in capsys.readouterr().err
    assert small.audit_store.names() == []


def test_the_approver_cannot_try_again(small):
    """Killed before the step was recorded, as someone else, or after the folder was removed."""
    plan = plan_audit(small, REQUEST, actor="eva")
    facts = register.approval_facts(small.database, plan)
    with small.database.begin() as connection:  # a decision that the approver makes meanwhile
        connection.execute(
            text("INSERT INTO moderator (pseudonym, role) VALUES ('zoe', 'moderator')")
        )
        connection.execute(text("INSERT INTO decision_chain SELECT id, 1, '\\x00' FROM moderator"))
    for _ in range(2):
        assert plan_audit(small, REQUEST, actor="eva") == plan
        small.audit("small").approve(actor="eve")
        approved = first_of(small.audit_store.chain("small"), "approved")
        assert approved is not None
        assert approved.facts == facts
        remove_folder(small, "small")


def test_a_malformed_approval_stops_none(small):
    plan = plan_audit(small, REQUEST, actor="eva")
    with small.database.begin() as connection:
        record_event(connection, "audit_approval", actor_id=None, plan=plan.digest)
    small.audit("small").approve(actor="eve")
    assert problems(small, "register") == []


def test_a_forger_tries_random_numbers(after):
    """The strongest one: the whole audit of another number, by the same scores and labels."""
    small = after("draw")
    plan = small.audit("small").plan

    def other(event: Event) -> Event:
        if event.action != "approved":
            return event
        return replace(event, facts={**event.facts, NUMBER: 64 * "1"})

    seed = made_seed(plan, {**small.audit_store.chain("small")[1].facts, NUMBER: 64 * "1"})
    drawn = draw(plan, sources.population(small.lake, plan), sizes(plan), seed)
    changes = {
        files.sample_file(1): files.write_sample(drawn.comments),
        files.population_file(1): files.write_population(drawn.population),
    }
    assert changes[files.sample_file(1)] != small.audit_store.read("small")[files.sample_file(1)]
    forge(small, changes, event=other)
    assert problems(small, "files") == problems(small, "lake") == []
    assert any("the approval fixes another seed than the database did" in message
               for message in problems(small, "register"))  # fmt: skip
    assert "not in the sample" in problems(small, "decision log")[0]


def test_an_approval_without_what_fixes_the_seed_draws_nothing(after):
    small = after("draw")
    chain = small.audit_store.chain("small")
    for fact in (LOG, NUMBER):
        kept = {name: item for name, item in chain[1].facts.items() if name != fact}
        forge(small, event=lambda event, kept=kept: replace(
            event, facts=kept if event.action == "approved" else event.facts))  # fmt: skip
        [problem] = level_of_files(small.audit_store.read("small")).problems
        assert problem.endswith("the approval does not fix the seed of the draw")


def test_a_plan_cannot_bring_its_own_seed(after):
    """The plan has no field for it, and the draw does not follow from another seed."""
    small = after("draw")
    plan = small.audit("small").plan
    fields = json.loads(plan.to_json()) | {"seed": "the best of two hundred"}
    with pytest.raises(AuditError, match="not an audit plan"):
        AuditPlan.from_json(json.dumps(fields, sort_keys=True, separators=(",", ":")))
    drawn = draw(plan, sources.population(small.lake, plan), sizes(plan), "the best of two hundred")
    chosen = {
        files.sample_file(1): files.write_sample(drawn.comments),
        files.population_file(1): files.write_population(drawn.population),
    }
    forge(small, chosen)
    assert "another random number than the plan gives it" in problems(small, "files")[0]


def test_a_discarded_audit_shows(after):
    """Carried out up to a result that does not please, removed, and planned anew by its name."""
    small = after("estimate")
    discarded = small.audit_store.chain("small")
    remove_folder(small, "small")
    with unguarded(small.database) as connection:
        connection.execute(text("UPDATE review_item SET audit = 'gone'"))
    plan_audit(small, replace(REQUEST, deadline_days=15), actor="eva")
    [problem] = problems(small, "register")
    assert problem.startswith(f"the database has {len(discarded)} steps of an audit of this name")
    assert "1 of them plans" in problem


@pytest.mark.parametrize("discarded", ["cancelled", "removed"])
def test_several_audits_of_a_period_are_named(small, discarded):
    plan_audit(small, REQUEST, actor="eva")
    if discarded == "cancelled":
        small.audit("small").cancel(actor="eva")
    else:
        remove_folder(small, "small")
    part = {"first": TUESDAY} if discarded == "cancelled" else {"last": MONDAY}
    plan_audit(small, replace(REQUEST, audit="anew", **part), actor="eva")
    [remark, *folders] = remarks(small, "register", "anew")
    assert remark.startswith(f"audit 'small' is of {MONDAY} to {TUESDAY}, too: planned at ")
    assert [found.partition(":")[0] for found in folders] == (
        ["the folder of audit 'small' was removed"] if discarded == "removed" else []
    )
    assert f"last step {'cancelled' if discarded == 'cancelled' else 'planned'}" in remark
    assert finders(small, "anew") == set()


def test_an_audit_is_stated_to_be_of_another_period(small):
    """Its plan has fewer days than the one that was entered, so that it would not be named."""
    plan = plan_audit(small, REQUEST, actor="eva")
    [entry] = register.read(small.database)
    period = {"first": "2020-01-01", "last": "2020-01-01"}
    chain = small.audit_store.chain("small")
    for other in (entry._replace(**period), entry._replace(audit="another")):
        assert "1 of 1 steps" in next(register.step_problems([other], chain, plan))
    assert [*register.step_problems([entry], chain, plan)] == []


@pytest.mark.parametrize("year", [2025, 2026])
def test_an_audit_that_is_not_in_the_register(small, year):
    """Its folder was written by hand; that it claims to be older than the register is no excuse."""
    plan = replace(plan_audit(small, REQUEST, actor="eva"), audit="older")
    kept = Folder(root=small.audit_store.root, holds="evidence")
    content = {files.PLAN: plan.to_json().encode()}
    at = datetime.datetime(year, 1, 1, tzinfo=datetime.UTC)
    planned = following([], audit="older", action="planned", actor="eva", at=at, files=content)
    content[files.CHAIN] = written([planned]).encode()
    for name, item in content.items():
        kept.write(f"older/{name}", item)
    [problem] = problems(small, "register", "older")
    assert "1 of 1 steps of the audit are not in the database" in problem


def test_an_audit_of_another_period_is_not_named(small):
    plan_audit(small, replace(REQUEST, last=MONDAY), actor="eva")
    plan_audit(small, replace(REQUEST, audit="next", first=TUESDAY), actor="eva")
    assert remarks(small, "register", "next") == []


def test_the_chain_of_another_audit_was_changed(small):
    plan_audit(small, REQUEST, actor="eva")
    plan_audit(small, replace(REQUEST, audit="anew"), actor="eva")
    Folder(root=small.audit_store.root, holds="evidence").write("small/chain.jsonl", b"none")
    [problem] = problems(small, "register", "anew")
    assert problem.startswith("the steps of audit 'small' cannot be compared: line 1 of the chain")


def test_a_public_value_of_the_future_is_part_of_the_seed(small):
    plan_audit(small, replace(REQUEST, public_value="a lottery of next week"), actor="eva")
    small.audit("small").approve(actor="eve")
    with pytest.raises(AuditError, match="needs the public value 'a lottery of next week'"):
        small.audit("small").draw()
    small.audit("small").draw(public_value="3 14 15 92")
    label_everything(small)
    small.audit("small").seal()
    assert finders(small) == set()
    assert "compare '3 14 15 92' with the published 'a lottery" in remarks(small, "files")[-1]

    def other(event: Event) -> Event:
        facts = {name: "6 5 35 89" if name == PUBLIC_VALUE else item
                 for name, item in event.facts.items()}  # fmt: skip
        return replace(event, facts=facts)

    forge(small, event=other)
    assert "another random number than the plan gives it" in " ".join(problems(small, "files"))


def test_a_public_value_that_no_plan_names_is_refused(after):
    small = after("approve")
    with pytest.raises(AuditError, match="the draw takes no public value"):
        small.audit("small").draw(public_value="3 14 15 92")


def test_the_log_is_cut_after_the_approval(after):
    """The decisions that the seed depends on must stay where they were."""
    small = after("label")
    with unguarded(small.database) as connection:
        connection.execute(text("UPDATE review_item SET audit = 'first'"))
    later = replace(REQUEST, audit="later")
    plan_audit(small, later, actor="eva")
    small.audit("later").approve(actor="eve")
    assert finders(small, "later") == set()
    with unguarded(small.database) as connection:
        connection.execute(text("DELETE FROM decision WHERE id IN (SELECT max(id) FROM decision "
                                "GROUP BY moderator_id)"))  # fmt: skip
    assert "it was cut or rewritten" in problems(small, "register", "later")[0]


def with_other(resources: Resources, column: str, words: str) -> None:
    """Let every comment of Monday have other words in a column."""
    rows = resources.lake.table("comments", MONDAY)
    number = rows.schema.get_field_index(column)
    other = rows.set_column(number, rows.schema.field(number), [[words] * rows.num_rows])
    resources.lake.replace("comments", MONDAY, other.to_batches())


def test_every_text_of_a_day_is_replaced(after):
    small = after("seal")
    with_other(small, "text", "something nicer")
    assert problems(small, "files") == []
    [problem] = problems(small, "lake")
    assert problem.startswith(f"{MONDAY}: texts differ from the plan")
    assert "shown with other words than the lake has" in problems(small, "decision log")[0]


def test_the_answered_text_is_replaced_in_lake_and_queue(after):
    small = after("seal")
    with_other(small, "parent_text", "a context that excuses all")
    with small.database.begin() as connection:
        connection.execute(
            text("UPDATE review_item SET parent_text = 'a context that excuses all' WHERE dt = :d"),
            {"d": MONDAY},
        )
    assert problems(small, "decision log") == []
    assert problems(small, "lake")[0].startswith(f"{MONDAY}: texts differ from the plan")
