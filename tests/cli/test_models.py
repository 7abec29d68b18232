"""`modwatch train` and `modwatch model`: anybody's data, a report first, aliases."""

import json
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from classifiers import classifier
from mlflow import MlflowClient
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from modwatch.cli.main import main
from modwatch.models.registry import Registry
from modwatch.models.scoring.opening import open_scorer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # importing mlflow.pyfunc warns of a type hint of MLflow
    from mlflow.sklearn import save_model

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

WORDS = ["river", "lamp", "stone", "quiet", "marble", "window", "garden", "bridge"]


@pytest.fixture
def recipe(tmp_path):
    """Return a function that makes the option of a recipe, by default one that takes seconds."""

    def option(text: str = "epochs = 2\nbatch_size = 16\n") -> list[str]:
        (tmp_path / "recipe.toml").write_text(text)
        return ["--recipe", str(tmp_path / "recipe.toml")]

    return option


@pytest.fixture
def client(new_store, tmp_path, monkeypatch):
    """A new MLflow, and an installation without comments."""
    url = new_store(tmp_path)
    monkeypatch.setenv("MODWATCH_MLFLOW_URL", url)
    monkeypatch.setenv("MODWATCH_HOME", str(tmp_path / "home"))
    return MlflowClient(url)


@pytest.fixture
def votes(tmp_path):
    """Two hundred comments with three votes each, a third of them toxic."""
    rng = np.random.default_rng(0)
    path = tmp_path / "votes.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for row in range(200):
            toxic = row % 3 == 0
            text = " ".join([*rng.choice(WORDS, 6), "fizzlewit" if toxic else "friend"])
            ballot = [int(toxic), int(toxic), int(not toxic)]
            file.write(json.dumps({"body": text, "votes": ballot, "lang": "en"}) + "\n")
    return path


def columns(path: Path) -> list[str]:
    return ["--data", str(path), "--column", "text=body", "--column", "label=votes"]


def test_anybodys_votes_make_a_champion(client, votes, recipe, tmp_path, capsys):
    assert main(["train", *columns(votes), "--column", "language=lang", *recipe()]) == 0
    printed = capsys.readouterr().out
    assert "rows             200, 67 toxic (33.50%)" in printed
    assert "contested        200 rows" in printed
    assert "languages        en 200" in printed
    took = [line.partition(" took ")[0] for line in printed.splitlines() if " took " in line]
    assert took[:4] == ["reading", "data report", "tokenising", "training"]
    assert took[-1] == "registration"
    assert printed.endswith("version 1 of toxicity is the champion\n")
    assert "fizzlewit" not in printed
    version = client.get_model_version_by_alias("toxicity", "champion")
    assert version.tags["method"] == "sngp"
    assert len(client.get_metric_history(version.run_id, "held_out_average_precision")) >= 4
    assert "data_report.json" in [
        artifact.path for artifact in client.list_artifacts(version.run_id)
    ]
    assert not [*(tmp_path / "home" / "training").iterdir()]


def test_the_report_alone_trains_nothing(client, votes, capsys):
    assert main(["train", *columns(votes), "--report-only"]) == 0
    assert "duplicates" in capsys.readouterr().out
    assert not client.search_registered_models()


def test_the_report_shows_where_every_row_ended(client, tmp_path, capsys):
    rows = ["1,Grüße,ok,no", "1,Grüße,HATE,no", ",x,ok,no", "2,y,,no", "3,z,-1,no", "4,w"]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["id,text,ann,ben", *rows]), "cp1252")
    options = ["--column", "id=id", "--votes", "ann,ben", "--encoding", "cp1252"]
    values = ("hate=toxic", "ok=other", "no=other", "-1=other")
    words = [part for value in values for part in ("--value", value)]
    assert main(["train", "--data", str(path), *options, *words, "--report-only"]) == 0
    assert capsys.readouterr().out.splitlines()[-6:] == [
        "source           7 lines and records; of these:",
        "                1  Header lines",
        "                1  Records merged with another, the first: a.csv, line 3",
        "                1  left out: malformed_record, the first: a.csv, line 7",
        "                1  left out: missing_id, the first: a.csv, line 4",
        "                3  Used records",
    ]
    assert main(["train", "--data", str(path), *options, *words[:-2], "--report-only"]) == 1
    assert "'-1' (1)" in capsys.readouterr().err


def test_aliases_by_command(client, votes, recipe, capsys):
    plain = recipe('epochs = 2\nbatch_size = 16\nmethod = "deterministic"\n')
    assert main(["train", *columns(votes), *plain]) == 0
    assert main(["train", *columns(votes), *plain, "--alias", "challenger", "--seed", "1"]) == 0
    assert str(client.get_model_version_by_alias("toxicity", "champion").version) == "1"
    assert str(client.get_model_version_by_alias("toxicity", "challenger").version) == "2"
    assert main(["model", "promote", "2"]) == 0
    assert main(["model", "promote", "previous"]) == 0
    assert capsys.readouterr().out.endswith("version 1 is the champion\n")
    assert str(client.get_model_version_by_alias("toxicity", "champion").version) == "1"
    assert str(client.get_model_version_by_alias("toxicity", "previous").version) == "2"


@pytest.mark.filterwarnings("ignore::UserWarning:mlflow")
def test_a_model_of_others_is_tried_before_it_gets_an_alias(client, tmp_path, capsys):
    client.create_registered_model("toxicity")
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    pipeline.fit(WORDS, ["ok", "bad"] * 4)
    for called, stated in (("predict", "bad"), ("predict_proba", ""), ("predict_proba", "bad")):
        folder, kind = tmp_path / f"{called}{stated}", {"serialization_format": "pickle"}
        save_model(pipeline, folder, pyfunc_predict_fn=called, pip_requirements=[], **kind)
        tags = {"modwatch.positive_class": stated} if stated else {}
        client.create_model_version("toxicity", folder.as_uri(), tags=tags)
    assert main(["model", "promote", "1"]) == 1
    assert 'pyfunc_predict_fn="predict_proba"' in capsys.readouterr().err
    assert main(["model", "promote", "2"]) == 1
    assert "set the tag modwatch.positive_class" in capsys.readouterr().err
    assert not client.get_registered_model("toxicity").aliases
    assert main(["model", "promote", "3"]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('method = "oracle"', "recipe: method must be deterministic"),
        ('encoder = "./nowhere"', "could not be loaded"),
        ("epochs = 0", "recipe: epochs must be in [1, 1000], got 0"),
        ('epochs = "two"', "recipe.toml: a text stands where a number must"),
        ("epoch = 2", "recipe.toml: no recipe has epoch"),
        ("epochs: 2", "cannot be read as TOML"),
    ],
)
def test_an_impossible_recipe_is_one_sentence(
    client, votes, recipe, text, message, capsys, monkeypatch
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["train", *columns(votes), *recipe(text)]) == 1
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_a_missing_column_is_one_sentence(client, votes, capsys):
    assert main(["train", *columns(votes), "--column", "text=words"]) == 1
    printed = capsys.readouterr().err
    assert "no column 'words'" in printed
    assert printed.count("\n") == 1


def test_a_cpu_only_machine_asked_for_cuda(client, votes, recipe, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setenv("MODWATCH_DEVICE", "cuda:0")
    assert main(["train", *columns(votes), *recipe()]) == 1
    assert "the device cuda:0 does not exist: torch sees 0 CUDA devices" in capsys.readouterr().err


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_classifier_of_others_becomes_the_champion_as_it_is(
    is_folder, client, tmp_path, monkeypatch, capsys
):
    """From a folder, or from the hub, which is asked once and only for files that run no code."""
    folder = tmp_path / "theirs"
    model = classifier(folder, id2label={0: "toxic", 1: "fine"})
    (folder / "evil.bin").write_bytes(b"")

    def snapshot(name, *, revision, local_dir, allow_patterns):
        assert (name, revision) == ("who/toxic", "c0ffee")
        shutil.copytree(folder, local_dir, dirs_exist_ok=True)
        for path in local_dir.iterdir():
            if not any(map(path.match, allow_patterns)):
                path.unlink()

    info = SimpleNamespace(model_info=lambda _: SimpleNamespace(sha="c0ffee"))
    monkeypatch.setattr("modwatch.models.registration.HfApi", lambda: info)
    monkeypatch.setattr("modwatch.models.registration.snapshot_download", snapshot)
    named = str(folder) if is_folder else "who/toxic"
    assert main(["model", "register", named, "--threshold", "0.3"]) == 0
    assert capsys.readouterr().out.endswith("version 1 of toxicity is the champion\n")
    version = client.get_model_version_by_alias("toxicity", "champion")
    assert version.tags["modwatch.source"] == (named if is_folder else "who/toxic@c0ffee")
    registry = Registry(name="toxicity", tracking_uri=client.tracking_uri)
    fetched = registry.fetch("1", tmp_path / "cache")
    assert not [*fetched.folder.rglob("evil.bin")] or is_folder
    scorer = open_scorer(fetched.folder, model_version="1", threshold=fetched.threshold)
    logits = model(input_ids=torch.tensor([[2, 3]])).logits[0]
    assert scorer.score(["you fool"]).prob[0] == pytest.approx(
        logits.softmax(0)[0].item(), abs=0.01
    )
    assert scorer.threshold == 0.3


def test_what_is_no_classifier_gets_no_version(client, tmp_path, monkeypatch, capsys):
    def unreachable(_):
        raise ConnectionError

    info = SimpleNamespace(model_info=unreachable)
    monkeypatch.setattr("modwatch.models.registration.HfApi", lambda: info)
    (tmp_path / "empty").mkdir()
    for named, words in (("who/toxic", "cannot be fetched"), (str(tmp_path / "empty"), "no model")):
        assert main(["model", "register", named]) == 1
        assert words in capsys.readouterr().err
    assert not client.search_registered_models()
