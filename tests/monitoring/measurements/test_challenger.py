"""The challenger in shadow: scored, never routed, compared on the labels that both share."""

import numpy as np
import pyarrow as pa
import pytest
from mlflow import MlflowClient

from installation import (
    FROM_THE_QUEUE,
    MONDAY,
    TUESDAY,
    assert_same,
    picture_of,
    review,
)
from modwatch.common.errors import ModelError
from modwatch.data.lake.schemas import SCORES
from modwatch.installation.resources import open_resources
from modwatch.pipeline import daily
from modwatch.pipeline.model import set_alias
from modwatch.statistics.live.paired import METRICS

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def second_version(url):
    """Register the champion's model again; return the version."""
    client = MlflowClient(url, registry_uri=url)
    first = client.get_model_version_by_alias("toxicity", "champion")
    made = client.create_model_version(
        "toxicity", source=first.source, run_id=first.run_id, tags=first.tags
    )
    return str(made.version)


def shadow_scores(at, day, change, *, version="9", threshold=0.5):
    """Store scores of a challenger: the champion's, changed."""
    table = at.lake.table("scores", day, role="champion").to_pandas()
    prob = change(table["prob"].to_numpy(np.float64)).astype(np.float32)
    table = table.assign(
        role="challenger", model_version=version, prob=prob, uncertainty=prob * (1 - prob),
        flagged=prob > threshold, threshold=threshold,
    )  # fmt: skip
    batches = pa.Table.from_pandas(table, schema=SCORES, preserve_index=False).to_batches()
    at.lake.replace("scores", day, batches, role="challenger")


def blurred(prob):
    return np.clip(0.6 * prob + 0.4 * np.random.default_rng(0).random(prob.size), 0, 1)


def compared(home, day=MONDAY):
    with open_resources(home.settings) as resources:
        return resources.lake.table("challenger", day).to_pandas().set_index("metric")


def test_a_challenger_scores_and_changes_nothing_else(install_routed):
    home = install_routed()
    before = picture_of(home)
    with open_resources(home.settings) as resources:
        set_alias(resources, second_version(resources.settings.mlflow_url), "challenger")
        comments = resources.lake.count("comments", MONDAY)
    assert home.run("score_challenger") == [comments]
    with open_resources(home.settings) as resources:
        rows = resources.lake.table("scores", MONDAY, role="challenger").to_pandas()
        assert set(rows["model_version"]) == {"2"}
        scored = resources.lake.table("scores", MONDAY, role="champion").to_pandas()
        both = scored.merge(rows, on="comment_id", suffixes=("", "_shadow"))
        assert len(both) == len(scored)
        assert np.allclose(both["prob"], both["prob_shadow"], atol=1e-6)
        resources.lake.replace("scores", MONDAY, [], role="challenger")
    assert_same(before, picture_of(home))


def test_without_a_challenger_and_where_it_is_the_champion_nothing_is_scored(install_routed):
    home = install_routed()
    assert home.run("score_challenger") == [0]
    with open_resources(home.settings) as resources:
        shadow_scores(resources, MONDAY, blurred)
        set_alias(resources, "1", "challenger")
    assert home.run("score_challenger") == [0]
    with open_resources(home.settings) as resources:
        assert not resources.lake.count("scores", MONDAY, role="challenger")


def test_a_challenger_without_probabilities_is_refused_and_the_day_stays(
    install_routed, monkeypatch
):
    home = install_routed()
    with open_resources(home.settings) as resources:
        set_alias(resources, second_version(resources.settings.mlflow_url), "challenger")
        scorer = resources.scorer("2")
        real = scorer.score

        def broken(texts):
            found = real(texts)
            found.prob[0] = np.nan
            return found

        monkeypatch.setattr(scorer, "score", broken)
        monkeypatch.setattr(type(resources), "scorer", lambda *_: scorer)
        with pytest.raises(ModelError, match=r"version 2 returns values outside \[0, 1\]"):
            daily.score_challenger(resources, MONDAY)
        assert not resources.lake.count("scores", MONDAY, role="challenger")
        assert resources.lake.count("routed", MONDAY)


def test_the_comparison_is_made_once_and_published(install_routed, monkeypatch):
    home = install_routed()
    review(home)
    with open_resources(home.settings) as resources:
        shadow_scores(resources, MONDAY, blurred)
    assert home.run("collect_labels", "measure", "compare_challenger")[-1] == 1
    rows = compared(home)
    assert set(METRICS) < set(rows.index)
    assert (rows["challenger_version"] == "9").all()
    assert rows.loc["same_decision", "value"] < 1
    assert rows.loc["accuracy", "status"] == "ok"
    with open_resources(home.settings) as resources:
        replaced = []
        real = resources.lake.replace
        monkeypatch.setattr(
            type(resources.lake), "replace", lambda *a, **k: replaced.append(a) or real(*a[1:], **k)
        )
        daily.compare_challenger(resources, MONDAY)
        assert not replaced
        monkeypatch.undo()
    home.run(*FROM_THE_QUEUE[4:])
    with open_resources(home.settings) as resources:
        client = MlflowClient(resources.settings.mlflow_url)
        [run] = client.search_runs(
            [client.get_experiment_by_name("modwatch").experiment_id], "tags.kind = 'day'"
        )
    text = run.data.tags["mlflow.note.content"]
    assert "Challenger 9 in shadow (1 day)" in text
    assert "challenger less champion: Accuracy " in text
    files = [artifact.path for artifact in client.list_artifacts(run.info.run_id, "figures")]
    assert "figures/challenger.png" in files
    shadow = home.run("compare_challenger", "publish")
    assert shadow == [1, 0]


def test_days_of_another_challenger_or_other_comments_are_left_out(install_routed):
    home = install_routed(days=2)
    review(home)
    with open_resources(home.settings) as resources:
        shadow_scores(resources, MONDAY, blurred, version="8")
        shadow_scores(resources, TUESDAY, blurred, version="9")
    steps = ("collect_labels", "measure", "compare_challenger")
    assert home.run(*steps, day=TUESDAY)[-1] == 1
    assert (compared(home, TUESDAY)["days"] == 1).all()
    with open_resources(home.settings) as resources:
        shadow_scores(resources, MONDAY, blurred, version="9")
        daily.compare_challenger(resources, TUESDAY)
        assert (resources.lake.table("challenger", TUESDAY)["days"].to_numpy() == 2).all()
        table = resources.lake.table("scores", TUESDAY, role="challenger")
        fewer = table.slice(1).to_batches()
        resources.lake.replace("scores", TUESDAY, fewer, role="challenger")
        assert daily.compare_challenger(resources, TUESDAY) == 1
        resources.lake.replace("scores", MONDAY, [], role="challenger")
        assert daily.compare_challenger(resources, TUESDAY) == 0
        assert not resources.lake.count("challenger", TUESDAY)
