"""The step that compares a day with its references, on a lake and a queue of its own."""

import datetime
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from deltalake import DeltaTable
from estimates import put_estimates
from lake_days import put_comments, put_profile, put_scores
from sqlalchemy import text

from installation import MONDAY, table_rows
from modwatch.data.lake.day_scores import ORIGIN, model_origin
from modwatch.data.validation.profiles import profile_rows
from modwatch.installation.resources import Resources, open_resources
from modwatch.models.reference import INVENTED, from_json, held_out_profile, to_json
from modwatch.monitoring.incidents.actions import accept
from modwatch.monitoring.incidents.messages.alert import Alert
from modwatch.monitoring.incidents.store import IncidentChange, IncidentRecord, locked, save_changes
from modwatch.monitoring.measurements import references
from modwatch.monitoring.measurements.references import model_reference
from modwatch.pipeline import daily
from modwatch.review.queue.intake import enqueue
from modwatch.review.queue.items import NewItem
from modwatch.settings import Settings
from modwatch_lab.community import Community

DAYS = [MONDAY + datetime.timedelta(days=number) for number in range(6)]
TODAY = DAYS[-1]


@pytest.fixture
def resources(tmp_path, queue_url, monkeypatch):
    shorter = partial(references.ReferencePlan, trailing_days=3, fixed_days=2)
    monkeypatch.setattr(references, "ReferencePlan", shorter)
    settings = Settings(home=tmp_path, database_url=queue_url, review_fraction=0.1)
    with open_resources(settings) as wiring:
        yield wiring


def put_day(
    resources: Resources,
    day: datetime.date,
    *,
    mean: float = 0.1,
    size: int = 500,
    version: str = "3",
) -> None:
    rng = np.random.default_rng(day.toordinal())
    put_comments(resources.lake, day, size, language="de", platform="forum")
    prob = rng.beta(6 * mean / (1 - mean), 6, size).astype(np.float32)
    put_scores(resources.lake, day, prob, version=version)
    put_profile(resources.lake, day)


def put_item(resources: Resources, day: datetime.date) -> None:
    item = NewItem(
        comment_id="c0",
        text="an invented text",
        reason="uncertainty",
        stratum=0,
        inclusion_probability=1.0,
        rank=1,
        review_score=0.2,
        prob=0.3,
        uncertainty=0.21,
        model_version="3",
    )
    enqueue(resources.database, [item], day)


def drift_commits(resources: Resources) -> int:
    """Return how often the table was written."""
    return DeltaTable(f"{resources.settings.lake_root}/drift").version()


def drift(resources: Resources, day: datetime.date = TODAY) -> pd.DataFrame:
    """Run the step; return its rows by metric, feature and reference."""
    count = daily.detect_drift(resources, day)
    rows = resources.lake.table("drift", day).to_pandas()
    assert len(rows) == count
    insufficient = rows["status"] == "insufficient"
    assert (rows["value"].isna() == insufficient).all()
    assert (rows.loc[insufficient, "reason"] != "").all()
    numbers = rows.loc[~insufficient, "value"]
    assert all(math.isfinite(value) for value in numbers)
    names = rows["metric"] + " " + rows["feature"] + " " + rows["reference"].fillna("")
    assert names.is_unique
    return rows.set_index(names.str.strip())


def test_a_usual_day(resources):
    for day in DAYS:
        put_day(resources, day)
    put_item(resources, TODAY)
    rows = drift(resources)
    assert rows.loc["psi prob fixed", "reference_n"] == 1_000
    assert rows.loc["psi prob trailing", "reference_n"] == 1_500
    assert (rows.loc[["psi prob fixed", "psi prob trailing"], "value"] < 0.05).all()
    assert rows.loc["volume_ratio comments trailing", "value"] == 1
    assert rows.loc["queue_waiting queue", "value"] == 1
    assert rows.loc["missing_share author_id", "value"] == 1
    assert rows.loc["cbpe_accuracy prob", "status"] == "ok"
    changed = rows[rows["reference"].notna()].drop("volume_ratio comments trailing")
    outside = (changed["low"] > 0) | (changed["high"] < 0)
    assert outside.sum() <= 2  # of intervals of 95 %


def test_a_day_of_more_toxic_comments(resources):
    for day in DAYS[:-1]:
        put_day(resources, day)
    put_day(resources, TODAY, mean=0.2, size=1_000)
    rows = drift(resources)
    for reference in ("fixed", "trailing"):
        assert rows.loc[f"psi prob {reference}", "low"] > 0
    assert rows.loc["volume_ratio comments trailing", "value"] == 2


def put_reference(resources: Resources, mean: float) -> None:
    """Keep held-out comments as a model scores them, of a demonstration."""
    rng = np.random.default_rng(1)
    prob = rng.beta(6 * mean / (1 - mean), 6, 2_000)
    made = held_out_profile(prob, np.ones(2_000), lengths=np.full(2_000, 60), threshold=0.5)
    brought = from_json(to_json(made) | {ORIGIN: INVENTED}, model_version="3")
    assert brought is not None
    rows = profile_rows(TODAY, brought, held_out=True)
    resources.lake.replace("profiles", TODAY, [rows], held_out=True)


@pytest.mark.parametrize(("mean", "status"), [(0.1, "ok"), (0.9, "insufficient")])
def test_where_scores_contradict_their_calibration_no_performance_is_expected(
    resources, mean, status
):
    put_reference(resources, 0.1)
    put_day(resources, TODAY, mean=mean)
    rows = drift(resources)
    assert set(rows.loc[rows.index.str.startswith("cbpe_accuracy"), "status"]) == {status}
    if status != "ok":
        assert "hardly resemble" in rows.loc["cbpe_oc_accuracy prob", "reason"]


def test_a_window_with_labels_has_no_performance_that_its_scores_promise(resources):
    put_day(resources, TODAY)
    put_estimates(resources.lake, TODAY, {"metric": "ece", "value": 0.02}, window=True)
    assert not drift(resources).index.str.startswith("cbpe_").any()


def test_the_origin_of_a_demonstration_model_is_known(resources):
    assert model_origin(resources.lake, TODAY) == ""
    put_reference(resources, 0.1)
    assert model_origin(resources.lake, TODAY) == INVENTED
    profile = model_reference(resources.lake, TODAY)
    assert profile is not None
    assert profile.scored == 2_000


def test_twice_leaves_the_same(resources):
    for day in DAYS:
        put_day(resources, day)
    put_item(resources, TODAY)
    drift(resources)
    before = [table_rows(resources.lake, table) for table in ("profiles", "drift")]
    drift(resources)
    assert [table_rows(resources.lake, table) for table in ("profiles", "drift")] == before


def test_later_days_do_not_change_an_earlier_one(resources):
    for day in DAYS[:4]:
        put_day(resources, day)
    drift(resources, DAYS[3])
    before = table_rows(resources.lake, "drift")
    for day in DAYS[4:]:
        put_day(resources, day, mean=0.3)
    drift(resources, DAYS[3])
    assert table_rows(resources.lake, "drift") == before


@pytest.mark.parametrize("days", [[], DAYS[:-1]], ids=["new installation", "usual days before"])
def test_an_empty_day(resources, days):
    for day in days:
        put_day(resources, day)
    rows = drift(resources)
    result = (
        {"queue_waiting queue", "volume_ratio comments trailing"}
        if days
        else {"queue_waiting queue"}
    )
    assert set(rows.index[rows["status"] == "ok"]) == result
    assert (rows.loc[list(result), "value"] == 0).all()


def test_a_rejected_day_has_no_volume(resources):
    """Its rows landed as usual, and validation kept none of them."""
    for day in DAYS[:-1]:
        put_day(resources, day)
    resources.lake.replace("landed", TODAY, Community(comments_per_day=40).read(TODAY))
    landed = resources.lake.count("landed", TODAY)
    rows = drift(resources)
    volume = rows.loc["volume_ratio comments trailing"]
    assert (volume["status"], volume["n"]) == ("insufficient", landed)
    assert volume["reason"] == (
        f"not published: {landed} rows landed, and they have not passed data validation"
    )
    assert set(rows.index[rows["status"] == "ok"]) == {"queue_waiting queue"}


def test_the_first_day_has_no_reference(resources):
    put_day(resources, MONDAY)
    rows = drift(resources, MONDAY)
    compared = rows[rows["reference"].notna()]
    assert set(compared["status"]) == {"insufficient"}
    assert rows.loc["flagged_share flagged", "status"] == "ok"


def test_a_new_model_shows(resources):
    for day in DAYS[:-1]:
        put_day(resources, day)
    put_day(resources, TODAY, version="4")
    rows = drift(resources)
    assert "another model version" in rows.loc["psi prob trailing", "reason"]
    assert rows.loc["jensen_shannon language trailing", "status"] == "ok"


def test_a_day_scored_again_gets_a_new_profile(resources):
    for day in DAYS:
        put_day(resources, day)
    drift(resources)
    put_day(resources, TODAY, mean=0.3)
    assert drift(resources).loc["psi prob trailing", "low"] > 0


def test_a_level_that_someone_accepted_is_the_reference(resources):
    for day in DAYS:
        put_day(resources, day, mean=0.1 if day < DAYS[3] else 0.3)
    assert drift(resources).loc["psi prob fixed", "value"] > 1
    record = IncidentRecord(
        name="scores",
        severity="warning",
        since=DAYS[3],
        opened=DAYS[3],
        notified_on=DAYS[3],
        headline="",
        first_headline="",
        text="",
    )
    alert = Alert(key="scores", title="", text="", facts={"event": "opened"})
    with locked(resources.database, "incident") as connection:
        save_changes(connection, (), "incident", [IncidentChange(alert=alert, record=record)])
    given = {"person": "ann", "note": "a new topic", "measured": DAYS[:-1]}
    accept(resources.database, (), "scores", **given)
    rows = drift(resources)
    assert rows.loc["psi prob trailing", "reference_n"] == 1_000
    assert rows.loc["psi prob trailing", "value"] < 0.1


def test_the_queue_of_the_window_is_watched_without_the_rest(resources):
    put_day(resources, MONDAY)
    drift(resources, MONDAY)
    before, commits = (
        table_rows(resources.lake, "drift", (MONDAY, MONDAY)),
        drift_commits(resources),
    )
    daily.detect_drift(resources, TODAY)
    assert drift_commits(resources) == commits + 1, "what is as it was is not written again"
    put_item(resources, MONDAY)
    daily.detect_drift(resources, TODAY)
    after = table_rows(resources.lake, "drift", (MONDAY, MONDAY))
    assert all("queue" in row for row in set(before) ^ set(after))
    waiting = resources.lake.table("drift", MONDAY).to_pandas().set_index("metric")["value"]
    assert waiting["queue_waiting"] == 1


def test_no_text_gets_into_the_tables(resources):
    put_day(resources, TODAY)
    drift(resources)
    rows = table_rows(resources.lake, "profiles") + table_rows(resources.lake, "drift")
    assert not [row for row in rows if "invented" in row]
    with resources.database.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM review_item")) == 0
