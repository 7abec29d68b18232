"""A day whose scores and decisions the source brings: no model, and everything else as ever."""

import datetime
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from estimates import read_estimates
from feed import MARK, good, quarantined, refused, write_json
from mlflow import MlflowClient

from installation import (
    FROM_THE_QUEUE,
    MONDAY,
    TO_THE_QUEUE,
    TUESDAY,
    Installation,
    assert_same,
    files_with,
    picture_of,
    review,
)
from modwatch.common.errors import DayRejectedError, NoChampionError, SettingsError
from modwatch.data.lake.day_scores import day_scores
from modwatch.installation.resources import open_resources
from modwatch.pipeline import daily

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

SIZE = 600
COLUMNS = {"prob": "score", "model_version": "engine", "flagged": "action"}
Home = Callable[..., Installation]


def toxic(number: int) -> int:
    return int(number % 20 == 0)


def scored(number: int, day: datetime.date = MONDAY, **fields: object) -> dict[str, object]:
    """Return a comment with a score of its own; decisions are those of a rule engine.

    One comment in twenty is toxic, with a score of 0.6 or more; others have one below 0.4. Of the
    toxic ones every other decision contradicts prob > 0.5, and of the others every tenth or so.
    """
    prob = round(0.6 + 0.39 * number / SIZE if toxic(number) else 0.4 * number / SIZE, 6)
    flagged = (prob > 0.5) ^ (number % 10 == 3) ^ (number % 40 == 20)
    own = {"score": prob, "engine": "rules-7", "action": bool(flagged), "label": toxic(number)}
    return {**good(number, day), **own, **fields}


@pytest.fixture
def home(install, incoming, unmanned):
    """Return a function that makes an installation without any model; its source brings scores."""

    def make(rows: list[dict[str, object]] | None = None, **changes: object) -> Installation:
        write_json(incoming / f"{MONDAY}.jsonl", rows or map(scored, range(SIZE)))
        source = {
            "kind": "files",
            "path": str(incoming / "{dt}.jsonl"),
            "columns": COLUMNS,
            "own_scores": True,
            **changes,
        }
        url = unmanned.copy(incoming.parent / "mlflow")
        return install(source=source, mlflow_url=url, window_days=3)

    return make


def truth() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return score, decision and label (SIZE,) of Monday."""
    rows = pd.DataFrame([scored(number) for number in range(SIZE)])
    return rows["score"].to_numpy(), rows["action"].to_numpy(bool), rows["label"].to_numpy()


def test_a_day_from_the_source_to_mlflow(home):
    installed = home()
    landed, good_rows, scored_rows, published, queued, shadow = installed.run(*TO_THE_QUEUE)
    assert landed == good_rows == scored_rows == published == SIZE
    assert queued == math.floor(0.1 * SIZE)
    assert shadow == 0
    prob, flagged, _ = truth()
    with open_resources(installed.settings) as resources:
        scores = resources.lake.table("scores", MONDAY).to_pandas().set_index("comment_id")
        routed = resources.lake.table("routed", MONDAY).to_pandas()
        design = resources.lake.table("routing_design", MONDAY).to_pandas().set_index("stratum")
    scores = scores.loc[[f"{MONDAY}/{number}" for number in range(SIZE)]]
    assert scores.index.is_unique
    assert np.allclose(scores["prob"], prob)
    assert (scores["flagged"].to_numpy() == flagged).all()
    assert set(scores["model_version"]) == {"rules-7"}
    assert scores["threshold"].isna().all()
    assert np.allclose(scores["uncertainty"], prob * (1 - prob))
    assert not scores[["model_variance", "mutual_information"]].any(axis=None)
    # The top are the decisions that contradict the scores most; strata outside it are divided by
    # the decisions as they are.
    top = routed[routed["stratum"] == 0]
    wrong = np.where(scores["flagged"], 1 - scores["prob"], scores["prob"])
    assert top["review_score"].to_numpy() == pytest.approx(np.sort(wrong)[::-1][: len(top)])
    sides = design["flagged"].dropna()
    assert set(sides[sides.index > 1]) == {True, False}
    for row in routed[routed["stratum"].isin(sides.index)].itertuples():
        assert scores.loc[row.comment_id, "flagged"] == sides[row.stratum]
    review(installed)
    installed.run(*FROM_THE_QUEUE)
    client = MlflowClient(installed.settings.mlflow_url)
    experiment = client.get_experiment_by_name("modwatch")
    (run,) = client.search_runs([experiment.experiment_id], f"attributes.run_name = '{MONDAY}'")
    text = run.data.tags["mlflow.note.content"]
    assert f"{int(flagged.sum()):,} flagged" in text
    assert "Model rules-7 (deterministic: uncertainty p(1−p)); " in text


def test_where_all_is_reviewed_the_figures_are_those_of_the_decisions(home):
    """α = 1 and no confirmations: every label is known, and every figure follows by hand."""
    installed = home().but(
        review_fraction=1.0,
        slice_share=0.0,
        confirmation_share=0.0,
        strategy="predictive_variance",
    )
    installed.run(*TO_THE_QUEUE)
    review(installed)
    installed.run("collect_labels", "measure", "compare_groups", "detect_drift")
    prob, flagged, label = truth()
    # Of the 30 toxic comments 15 are flagged: a number in forty takes the decision back. Of the 570
    # others the rule engine flags 60.
    assert (flagged & (label == 1)).sum() == 15
    assert (flagged & (label == 0)).sum() == 60
    by_hand = {
        "accuracy": 1 - (15 + 60) / SIZE,
        "precision_flagged": 15 / 75,
        "recall_flagged": 15 / 30,
        "prevalence": 30 / SIZE,
        "auroc": 1.0,  # every toxic comment has a higher score than every other
    }
    with open_resources(installed.settings) as resources:
        table = read_estimates(resources.lake, MONDAY)
        drift = resources.lake.table("drift", MONDAY).to_pandas().set_index("metric")
        groups = resources.lake.table("comment_groups", MONDAY).to_pandas()
        assert daily.compare_groups(resources, MONDAY) == len(set(groups["group"]))
    found = table[table["strategy"].isna()].set_index("metric")
    errors = table.set_index(["metric", "strategy", "alpha"])
    for metric, value in by_hand.items():
        low, high = found.loc[metric, ["low", "high"]]
        assert low - 0.005 <= value <= high + 0.005, metric
        assert found.loc[metric, "value"] == pytest.approx(value, abs=0.02), metric
    # Reviewed at 10 %: the 60 decisions that are most likely wrong, or whose scores are nearest to
    # one half; their wrong decisions count, whatever prob.
    wrong = flagged != (label == 1)
    orders = {"uncertainty": np.where(flagged, 1 - prob, prob)}
    orders["predictive_variance"] = prob * (1 - prob)
    for strategy, score in orders.items():
        reviewed = np.argsort(-score, kind="stable")[:60]
        caught = errors.loc[("review_efficiency", strategy, 0.1)]
        assert caught["value"] == pytest.approx(wrong[reviewed].mean(), abs=0.03)
    assert drift.loc["flagged_share", "value"] == pytest.approx(75 / SIZE)


def test_defects_are_named_counted_and_kept(home, caplog):
    rows = [scored(number) for number in range(SIZE)]
    defects = {
        3: {"score": None},
        4: {"score": "NaN"},
        5: {"score": 1.01},
        6: {"score": f"a remark, {MARK}"},
        7: {"action": None},
        8: {"action": "perhaps"},
        9: {"engine": f"{MARK} and blanks"},
    }
    for number, change in defects.items():
        rows[number] |= change
    installed = home(rows)
    installed.run(*TO_THE_QUEUE)
    assert quarantined(installed) == sorted(
        [
            *("missing_probability", "missing_probability", "probability_out_of_range"),
            *("unreadable_probability", "missing_flag", "unreadable_flag"),
            "malformed_model_version",
        ]
    )
    assert MARK not in caplog.text
    checks = Path(installed.settings.checks_root)
    assert files_with(MARK, [checks]) == []


def test_a_day_of_two_versions_is_rejected(home):
    change, rule = {"engine": "rules-8"}, "several_model_versions"
    rows = [scored(number, **(change if number % 2 else {})) for number in range(SIZE)]
    installed = home(rows)
    installed.run("ingest")
    before = picture_of(installed)
    refused(lambda: installed.run("check_comments"), DayRejectedError, rule)
    before.pop("checks")
    after = picture_of(installed)
    after.pop("checks")
    assert_same(before, after)


def test_an_empty_day_needs_no_model_either(home, incoming):
    installed = home()
    (incoming / f"{TUESDAY}.jsonl").write_text("")
    assert installed.run(*TO_THE_QUEUE[:4], day=TUESDAY) == [0, 0, 0, 0]


def test_the_scores_of_a_source_that_is_not_stated_to_bring_them_are_not_taken(home):
    installed = home(own_scores=False, columns={})
    installed.run("ingest", "check_comments")
    with pytest.raises(NoChampionError):
        installed.run("score")


def test_a_day_stays_what_it_was_ingested_as(home):
    """The source is changed after the day was ingested: what came with it still counts."""
    installed = home()
    installed.run("ingest")
    source = {**installed.values["source"], "own_scores": False, "columns": {}}
    changed = installed.but(source=source)
    changed.run(*TO_THE_QUEUE[1:])
    with open_resources(changed.settings) as resources:
        assert day_scores(resources.lake, MONDAY).model_version == "rules-7"


def decided(number: int) -> dict[str, object]:
    """Return a scored comment with what the platform did, in words of its own."""
    words = ["Weg", "bleibt", "", "weg", "versteckt", "unklar"]
    takers = ["Filter", "KI", None, "Mensch", "KI", None]
    return scored(number, was=words[number % 6], wer=takers[number % 6])


def test_a_decision_of_the_platform_stands_in_place_of_a_flag(home):
    """Not where a person took it, or where no meaning of its word is known."""
    columns = {**COLUMNS, "decision": "was", "decided_by": "wer"}
    values = ["weg=removed", "bleibt=kept", "versteckt=limited", "KI=model", "Mensch=person"]
    installed = home(map(decided, range(SIZE)), columns=columns, values=values)
    installed.run(*TO_THE_QUEUE)
    with open_resources(installed.settings) as resources:
        scores = day_scores(resources.lake, MONDAY)
        rows = resources.lake.table("comments", MONDAY).to_pylist()
        page = resources.checks.load("comments", MONDAY)
    ids = [f"{MONDAY}/{number}" for number in range(SIZE)]
    kinds = {row["comment_id"]: (row["decision"], row["decided_by"]) for row in rows}
    assert [kinds[id_] for id_ in ids[:6]] == [
        ("removed", "rule"),
        ("kept", "model"),
        ("none", None),
        ("removed", "person"),
        ("limited", "model"),
        (None, None),
    ]
    flags = truth()[1].tolist()
    expected = [[True, False, False, flags[n], True, flags[n]][n % 6] for n in range(SIZE)]
    found = dict(zip(scores.comment_id.to_pylist(), scores.flagged.tolist(), strict=True))
    assert [found[id_] for id_ in ids] == expected
    assert scores.threshold is None
    assert page.left_out == {"decision: unreadable_decision": SIZE // 6}
    assert page.status == "warned"


def test_a_column_without_any_decision_does_not_say_that_all_was_kept(home):
    installed = home([scored(number, decision=None) for number in range(SIZE)])
    installed.run("ingest", "check_comments", "score", "check_scores")
    with open_resources(installed.settings) as resources:
        assert day_scores(resources.lake, MONDAY).flagged.sum() == truth()[1].sum() > 0


def test_a_strategy_whose_column_the_source_does_not_bring_is_refused(home):
    installed = home().but(strategy="model_variance")
    installed.run(*TO_THE_QUEUE[: TO_THE_QUEUE.index("route")])
    message = (
        "MODWATCH_STRATEGY=model_variance needs the column model_variance, which version rules"
    )
    with pytest.raises(SettingsError, match=message):
        installed.run("route")
