"""The tasks of train_model: one version a run, a gate, and what a person decides."""

import datetime
import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from airflow.sdk.exceptions import ParamValidationError, TaskAwaitingInput
from lake_days import batch, put_comments
from mlflow import MlflowClient

from modwatch.common.errors import ModelError, SettingsError, SourceError
from modwatch.data.lake.schemas import LABELS, ROUTED
from modwatch.installation.resources import Resources, open_resources
from modwatch.models.evaluation import Evaluation
from modwatch.pipeline import model
from modwatch.pipeline.airflow import models
from modwatch.pipeline.airflow.models import FORM, PROMOTE, REJECT, SHADOW, Promotion
from modwatch_lab.community import Community
from pipeline.airflow.answers import answer, context

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

COMMUNITY = Community(seed=7)
FORM_VALUES = {name: param.value for name, param in FORM.items()}
RUN = SimpleNamespace(run_id="manual__1")


def written(path: Path, texts: Any, labels: Any, groups: Any = None) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for row, (text, label) in enumerate(zip(texts, labels, strict=True)):
            values = {"text": text, "label": int(label)}
            values |= {} if groups is None else {"groups": groups[row]}
            file.write(json.dumps(values) + "\n")
    return path


@pytest.fixture
def home(install, tmp_path, monkeypatch):
    """An installation with files of labelled comments, which the environment names."""
    known = COMMUNITY.training_comments(3_000)
    groups = [["one"] if row % 2 else ["two", "three"] for row in range(1_500)]
    training = written(tmp_path / "training.jsonl", known.texts[:1500], known.labels[:1500])
    tested = written(tmp_path / "tested.jsonl", known.texts[1500:], known.labels[1500:], groups)
    made = install(training_data=(str(training),), evaluation_data=str(tested))
    for name, value in made.env.items():
        text = json.dumps([str(training)]) if name == "MODWATCH_TRAINING_DATA" else value
        monkeypatch.setenv(name, text)
    return made


def registered(resources: Resources, rows: list[dict[str, Any]], champion: str | None = "1") -> str:
    """Register a version with an evaluation; return it."""
    client = MlflowClient(resources.settings.mlflow_url)
    first = client.get_model_version("toxicity", "1")
    made = client.create_model_version("toxicity", source=first.source)
    evaluation = Evaluation(
        version=str(made.version), champion=champion, comments=100, toxic=10, digest="d",
        strategy="uncertainty", review_fraction=0.1, rows=rows,
    )  # fmt: skip
    resources.registry.log_evaluation(
        str(made.version), asdict(evaluation), passed=evaluation.passed
    )
    return str(made.version)


def row(verdict: str = "not worse") -> dict[str, Any]:
    values = {"champion": 0.8, "challenger": 0.81, "difference": 0.01, "low": -0.005, "high": 0.02}
    return {"metric": "average_precision", **values, "verdict": verdict}


def test_a_run_makes_one_version_and_says_what_it_does(home, caplog):
    caplog.set_level("INFO", logger="modwatch.pipeline.airflow.models")
    form = {**FORM_VALUES, "recipe": "max_examples = 400\nepochs = 1"}
    version = models.train.function(params=form, dag_run=RUN)
    assert version == models.train.function(params=form, dag_run=RUN)
    logged = [record.getMessage() for record in caplog.records]
    assert any("rows" in line for line in logged)
    assert any(line.startswith("training took ") for line in logged)
    assert not any(text[:30] in line for text in COMMUNITY.training_comments(50).texts
                   for line in logged)  # fmt: skip
    assert models.evaluate.function(version) in ("passed", "failed")
    with open_resources(home.settings) as resources:
        made = Evaluation(**resources.registry.read_evaluation(version))
        names = {item["metric"] for item in made.rows}
    assert made.champion == "1"
    assert made.comments == 1_500
    assert {"average_precision", "calibration_auprc", "oc_auroc", "false_positive_rate_gap"} < names
    assert "| Average precision " in made.describe()


def test_comments_of_the_evaluation_are_left_out_of_training(home):
    with open_resources(home.settings) as resources:
        frozen = resources.settings.evaluation_data
        whole = model.corpus(resources, {**FORM_VALUES, "data": [str(frozen)]})
        assert len(whole.texts) == 0
        assert whole.account.left_out["in_the_evaluation_data"] == 1_500


def test_the_form_names_words_votes_and_the_encoding(home, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("text,ann,ben\nGrüße,hate,ok\nfine,ok,\n", "cp1252")
    form = {"data": [str(path)], "votes": ["ann", "ben"], "encoding": "cp1252"}
    form |= {"value": ["hate=toxic", "ok=other"]}
    with open_resources(home.settings) as resources:
        found = model.corpus(resources, {**FORM_VALUES, **form})
    assert (found.texts, found.labels.tolist()) == (("Grüße", "fine"), [0.5, 0])


def test_evaluation_rows_that_are_left_out_are_counted(home, caplog):
    with open_resources(home.settings) as resources:
        with Path(str(resources.settings.evaluation_data)).open("a", encoding="utf-8") as file:
            file.write('{"text": "nobody rated this", "label": null}\n')
        model.without_evaluation(resources, model.corpus(resources, FORM_VALUES))
    assert "EVALUATION_DATA could not be used: no_label 1 (the first: " in caplog.text
    assert "nobody" not in caplog.text


def test_without_files_there_is_a_sentence(install, home, monkeypatch):
    for name in ("TRAINING", "EVALUATION"):
        monkeypatch.delenv(f"MODWATCH_{name}_DATA")
    with open_resources(install("bare").settings) as resources:
        with pytest.raises(SettingsError, match="name files"):
            model.corpus(resources, FORM_VALUES)
        with pytest.raises(SettingsError, match="MODWATCH_EVALUATION_DATA is not set"):
            model.evaluate(resources, "1")


def test_the_champion_next_to_itself_and_the_first_model_pass(home):
    with open_resources(home.settings) as resources:
        made = model.evaluate(resources, "1")
        assert made.champion is None
        assert made.passed
        assert "There is no champion to compare with" in made.describe()


def test_a_worse_version_stops_at_the_gate(home):
    with open_resources(home.settings) as resources:
        worse, fine = (
            registered(resources, [row("worse")]),
            registered(resources, [row(), row("unclear")]),
        )
        source = (
            MlflowClient(resources.settings.mlflow_url).get_model_version("toxicity", "1").source
        )
        new = MlflowClient(resources.settings.mlflow_url).create_model_version(
            "toxicity", source=source
        )
        assert resources.registry.version_tags(worse)["modwatch.evaluation"] == "failed"
    with pytest.raises(ModelError, match="is worse than champion 1 in average_precision"):
        models.check.function(worse)
    assert models.check.function(fine) == "passed"
    with pytest.raises(ModelError, match="was not evaluated"):
        models.check.function(str(new.version))


@pytest.mark.parametrize(
    ("option", "now", "shadow"),
    [(PROMOTE, "2", None), (SHADOW, "1", "2"), (REJECT, "1", None)],
)
def test_what_a_person_decides_happens_and_is_kept(home, asked, option, now, shadow):
    with open_resources(home.settings) as resources:
        version = registered(resources, [row()])
    task = Promotion(task_id="approve", version=version)
    with pytest.raises(TaskAwaitingInput):
        task.execute(context(task))
    [question] = asked
    assert question["subject"] == f"Promote version {version} of toxicity"
    assert question["options"] == [PROMOTE, SHADOW, REJECT]
    assert "| Average precision | 0.8000 " in question["body"]
    task = Promotion(task_id="approve", version=version)
    decision = task.execute_complete(context(), answer(option))
    assert task.execute_complete(context(), answer(option)) == decision  # woken twice
    with open_resources(home.settings) as resources:
        assert resources.registry.champion_version() == now
        assert resources.registry.challenger_version() == shadow
        tags = resources.registry.version_tags(version)
        assert tags["modwatch.decision"] == decision
        assert (tags["modwatch.decided_by"], tags["modwatch.note"]) == ("eve", "as agreed")
        if now == version:
            assert model.set_alias(resources, "previous", "champion") == "1"
            assert resources.registry.champion_version() == "1"


def test_a_comparison_with_a_champion_of_the_past_promotes_nothing(home):
    with open_resources(home.settings) as resources:
        stale, other = registered(resources, [row()]), registered(resources, [row()])
        model.set_alias(resources, other, "champion")
        with pytest.raises(ModelError, match="the champion is version 3 now; clear `evaluate`"):
            model.decide(resources, stale, "champion", actor="eve")
        model.decide(resources, stale, "challenger", actor="eve")
        assert resources.registry.champion_version() == other


def test_an_answer_that_the_question_does_not_have_is_refused(home):
    task = Promotion(task_id="approve", version="1")
    with pytest.raises(ParamValidationError, match="no field 'alias'"):
        task.execute_complete(context(), answer(PROMOTE, params_input={"alias": "x"}))


def test_evaluation_data_of_one_class_is_refused(install, tmp_path):
    path = written(tmp_path / "one.jsonl", ["a b", "c d"], np.zeros(2))
    with (
        open_resources(install("other", evaluation_data=str(path)).settings) as resources,
        pytest.raises(ModelError, match="needs toxic comments and others"),
    ):
        model.evaluate(resources, "1")


def test_what_moderators_labelled_is_training_data(home):
    day = datetime.date(2026, 1, 5)
    with open_resources(home.settings) as resources:
        lake = resources.lake
        with pytest.raises(SourceError, match="labelled no comment yet"):
            model.corpus(resources, {**FORM_VALUES, "data": ["reviewed"]})
        put_comments(lake, day, 40, text=[f"an invented text {n}" for n in range(40)])
        ids = [f"c{n}" for n in range(30)]
        chance = np.where(np.arange(30) < 10, 1.0, 0.1)
        routed = batch(ROUTED, 30, dt=day, comment_id=ids, reason="uncertainty", stratum=0, rank=1,
            inclusion_probability=chance, review_score=0.2, model_version="1")  # fmt: skip
        lake.replace("routed", day, [routed])
        label = np.arange(20) < 10  # 10 of 30 have no label
        labels = batch(LABELS, 20, dt=day, comment_id=ids[:20], label=label.astype(np.int8),
            moderator="m1", decided_at=datetime.datetime.now(datetime.UTC))  # fmt: skip
        lake.replace("labels", day, [labels])
        corpus = model.corpus(resources, {**FORM_VALUES, "data": ["reviewed"]})
    assert corpus.texts == tuple(f"an invented text {n}" for n in range(20))
    assert corpus.labels.sum() == 10
    assert corpus.prevalence == pytest.approx(10 / (10 + 10 / 0.1))
    assert not corpus.invented
