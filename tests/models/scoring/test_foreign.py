"""Models that Modwatch did not train: Hugging Face classifiers, pyfuncs, and what is neither."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from classifiers import VOCABULARY, classifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from transformers import BertForSequenceClassification

from modwatch.common.errors import ModelError
from modwatch.models.scoring.classes import positive_class
from modwatch.models.scoring.foreign import HuggingFaceScorer, PyfuncScorer
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.scoring.opening import open_scorer
from modwatch.models.scoring.scorer import Scorer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # importing mlflow.pyfunc warns of a type hint of MLflow
    import mlflow.pyfunc
    import mlflow.sklearn

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:mlflow")

TEXTS = ["you fool", "a kind word", "", "fool " * 400]


def logits(model: BertForSequenceClassification, text: str) -> torch.Tensor:
    ids = [VOCABULARY.get(word, 1) for word in text.split()][:64] or [1]
    with torch.inference_mode():
        return model(input_ids=torch.tensor([ids])).logits[0]


@pytest.mark.parametrize(
    ("config", "prob"),
    [
        ({"num_labels": 1}, lambda logit: torch.sigmoid(logit)[0]),
        ({"id2label": {0: "toxic", 1: "fine"}}, lambda logit: torch.softmax(logit, 0)[0]),
        ({"id2label": {0: "non-hate", 1: "hate"}}, lambda logit: torch.softmax(logit, 0)[1]),
        ({"id2label": {0: "HATE", 1: "NOT_HATE"}}, lambda logit: torch.softmax(logit, 0)[0]),
        (
            {
                "id2label": {0: "obscene", 1: "toxic", 2: "insult"},
                "problem_type": "multi_label_classification",
            },
            lambda logit: torch.sigmoid(logit)[1],
        ),
    ],
)
def test_a_classifier_gives_the_probability_of_its_toxic_class(config, prob, tmp_path):
    model = classifier(tmp_path, **config)
    scorer = open_scorer(tmp_path, model_version="4", threshold=0.3, precision="fp32")
    assert isinstance(scorer, HuggingFaceScorer)
    as_scorer: Scorer = scorer
    assert (as_scorer.model_version, as_scorer.threshold) == ("4", 0.3)
    found = scorer.score(TEXTS)
    assert found.prob == pytest.approx(
        [prob(logits(model, text)).item() for text in TEXTS], abs=1e-5
    )
    assert not found.further
    assert found.uncertainty == pytest.approx(found.prob * (1 - found.prob))


@pytest.mark.parametrize(
    "names",
    [{0: "LABEL_0", 1: "LABEL_1"}, {0: "hate", 1: "insult", 2: "fine"}],
)
def test_a_classifier_whose_names_do_not_tell_needs_the_tag(names, tmp_path):
    model = classifier(tmp_path, id2label=names)
    with pytest.raises(ModelError, match=r"which class of version 1 .* modwatch\.positive_class"):
        open_scorer(tmp_path, model_version="1")
    with pytest.raises(ModelError, match="none or several are 'rude'"):
        open_scorer(tmp_path, model_version="1", stated_class="rude")
    found = open_scorer(tmp_path, model_version="1", stated_class=names[1], precision="fp32")
    expected = torch.softmax(logits(model, TEXTS[0]), 0)[1].item()
    assert found.score(TEXTS[:1]).prob == pytest.approx([expected], abs=1e-5)


def test_a_class_order_that_changes_between_versions_changes_nothing(tmp_path):
    model = classifier(tmp_path / "1", id2label={0: "toxic", 1: "fine"})
    classifier(tmp_path / "2", id2label={0: "fine", 1: "toxic"})
    state = {name: tensor.flip(0) for name, tensor in model.classifier.state_dict().items()}
    model.classifier.load_state_dict(state)
    model.config.id2label = {0: "fine", 1: "toxic"}
    model.save_pretrained(tmp_path / "2")
    for stated in (None, "toxic"):
        one, two = (
            open_scorer(
                tmp_path / version, model_version=version, stated_class=stated, precision="fp32"
            )
            .score(TEXTS)
            .prob
            for version in ("1", "2")
        )
        assert one == pytest.approx(two, abs=1e-6)
        assert abs(one[0] - 0.5) > 1e-3


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Toxic", "non-toxic"], 0),
        (["not_toxic", "toxic"], 1),
        (["toxic", "nontoxic"], 0),
        (["NonToxic", "Toxic"], 1),
        (["nothate", "hate"], 1),
        (["hate", "no-hate"], 0),
        (["Hate Speech", "Not Hate Speech"], 0),
        (["offensive", "harmless"], 0),
        (["hate-free", "hateful"], 1),
        (["toxicity", "severe_toxicity", "obscene", "insult"], 0),
        (["insult", "whatever"], 0),
        ([0, 1], 1),
        ([False, True], 1),
        ([1, 0], None),
        (["0", "1"], None),
        (["LABEL_0", "LABEL_1"], None),
        (["toxic_0", "toxic_1"], None),
        (["less toxic", "more toxic"], None),
        (["non-toxic", "not hateful"], None),
        (["hate", "offensive", "normal"], None),
        (["counter hate", "neutral"], None),
        (["toxic", "Toxic"], None),
        (["positive", "negative"], None),
    ],
)
def test_the_positive_class_is_named_or_unmistakable(names, expected):
    if expected is None:
        with pytest.raises(ModelError, match="its names do not tell"):
            positive_class(names, None, model_version="1")
    else:
        assert positive_class(names, None, model_version="1") == expected
    assert positive_class(names, f"{names[1]} ", model_version="1") == 1


@pytest.mark.parametrize("close", [0.01, 0.0])
def test_auto_is_the_precision_of_the_device_if_the_scores_stay(tmp_path, monkeypatch, close):
    classifier(tmp_path, id2label={0: "fine", 1: "toxic"})
    monkeypatch.setattr("modwatch.models.scoring.foreign._CLOSE", close)
    for fast in (False, True):
        monkeypatch.setattr("modwatch.models.scoring.foreign.has_bf16", lambda _, fast=fast: fast)
        found = {
            given: open_scorer(tmp_path, model_version="1", precision=given)  # type: ignore[arg-type]
            for given in ("auto", "fp32", "bf16")
        }
        chosen = {given: scorer.precision for given, scorer in found.items()}  # type: ignore[attr-defined]
        auto = "bf16" if fast and close else "fp32"
        assert chosen == {"auto": auto, "fp32": "fp32", "bf16": "bf16"}
        assert np.array_equal(found["auto"].score(TEXTS).prob, found[auto].score(TEXTS).prob)


def test_a_classifier_without_weights_is_refused(tmp_path):
    classifier(tmp_path, num_labels=1)
    (tmp_path / "model.safetensors").write_bytes(b"half")
    with pytest.raises(ModelError, match="not a Hugging Face classifier"):
        open_scorer(tmp_path, model_version="1")


class Array(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    def predict(self, context: Any, model_input: list[str], params: Any = None) -> Any:
        return np.array([0.9 if "fool" in text else 0.1 for text in model_input])


class Frame(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> Any:
        toxic = [0.9 if "fool" in text else 0.1 for text in model_input["text"]]
        return pd.DataFrame({"other": 5, "prob": toxic})


class Broken(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    def predict(self, context: Any, model_input: list[str], params: Any = None) -> Any:
        raise RuntimeError(f"private: {model_input}")


class Wild(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    def predict(self, context: Any, model_input: list[str], params: Any = None) -> Any:
        return np.full(len(model_input), 7.0)


class Short(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    def predict(self, context: Any, model_input: list[str], params: Any = None) -> Any:
        return np.zeros(1)


class Labels(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    def predict(self, context: Any, model_input: list[str], params: Any = None) -> Any:
        return np.array([int("you" in text.lower()) for text in model_input])


class Late(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """Its labels show only in texts that it finds toxic."""

    def predict(self, context: Any, model_input: list[str], params: Any = None) -> Any:
        return np.array([float("fool" in text) for text in model_input])


class Unnamed(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    def predict(self, context: Any, model_input: list[str], params: Any = None) -> Any:
        return np.full((len(model_input), 2), [0.4, 0.6])


class Columns(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """Two columns, which have their names in the model."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def predict(self, context: Any, model_input: list[str], params: Any = None) -> Any:
        toxic = [0.8 if "fool" in text else 0.3 for text in model_input]
        return pd.DataFrame(dict(zip(self.names, (toxic, "text"), strict=True)))


def pyfunc(model: Any, folder: Path, stated: str | None = None) -> PyfuncScorer:
    mlflow.pyfunc.save_model(folder, python_model=model, pip_requirements=[])
    scorer = open_scorer(folder, model_version="2", stated_class=stated)
    assert isinstance(scorer, PyfuncScorer)
    assert scorer.threshold == 0.5
    return scorer


def test_a_pyfunc_returns_an_array(tmp_path):
    found = pyfunc(Array(), tmp_path / "model").score(TEXTS)
    assert found.prob == pytest.approx([0.9, 0.1, 0.1, 0.9])
    assert not found.further
    assert len(pyfunc(Array(), tmp_path / "again").score([]).prob) == 0


def test_a_pyfunc_takes_and_returns_a_frame(tmp_path):
    found = pyfunc(Frame(), tmp_path / "model").score(TEXTS)
    assert found.prob == pytest.approx([0.9, 0.1, 0.1, 0.9])


def test_a_pyfunc_gets_texts_whole_and_without_invisible_characters(tmp_path):
    long = "fine " * 20_000
    found = pyfunc(Array(), tmp_path / "model").score([f"{long}f\u200bo\xadol", f"{long}fine"])
    assert found.prob[0] > 0.5 > found.prob[1]
    assert not found.cut.any()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Broken(), "failed on a list of texts"),
        (Wild(), r"outside \[0, 1\]"),
        (Short(), "one probability for each text"),
        (Unnamed(), "a column for each class, with its name"),
        (Labels(), r'pyfunc_predict_fn="predict_proba"'),
        (Late(), "returns labels"),
        (Columns("score", "label"), "which class of version 2"),
        (Columns("rude", "other"), "which class of version 2"),
    ],
)
def test_a_pyfunc_that_does_not_score_is_named_without_a_text(model, message, tmp_path):
    with pytest.raises(ModelError, match=message) as caught:
        pyfunc(model, tmp_path / "model").score(TEXTS)
    assert "fool" not in str(caught.value)


def test_the_columns_of_a_frame_are_classes(tmp_path):
    expected = pytest.approx([0.8, 0.3, 0.3, 0.8])
    assert pyfunc(Columns("Toxic", "non-toxic"), tmp_path / "a").score(TEXTS).prob == expected
    assert pyfunc(Columns("rude", "prob"), tmp_path / "b", "rude").score(TEXTS).prob == expected


def sklearn_pyfunc(
    folder: Path, classes: tuple[Any, Any], called: str = "predict_proba", **given: Any
) -> Scorer:
    """Log a pipeline that learned the second of the classes from `fool`."""
    fine, toxic = classes
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    pipeline.fit([*TEXTS[:2], *TEXTS[3:], "word"], [toxic, fine, toxic, fine])
    options = {"pip_requirements": [], "pyfunc_predict_fn": called}
    mlflow.sklearn.save_model(pipeline, folder, serialization_format="pickle", **options)
    return open_scorer(folder, model_version="2", **given)


@pytest.mark.parametrize(
    "classes", [(0, 1), ("non-toxic", "Toxic"), ("unproblematic", "toxic"), ("clean", "toxic")]
)
def test_the_probabilities_of_scikit_learn_are_read_by_the_names_of_classes(tmp_path, classes):
    prob = sklearn_pyfunc(tmp_path / "model", classes).score(TEXTS).prob
    assert prob[0] > 0.55
    assert prob[1] < 0.45


def test_scikit_learn_with_labels_or_classes_that_do_not_tell_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r'returns labels.*pyfunc_predict_fn="predict_proba"'):
        sklearn_pyfunc(tmp_path / "a", (0, 1), "predict")
    with pytest.raises(ModelError, match=r"It has bad, ok, and its names do not tell; set the tag"):
        sklearn_pyfunc(tmp_path / "b", ("ok", "bad"))
    found = sklearn_pyfunc(tmp_path / "c", ("ok", "bad"), stated_class="bad")
    assert found.score(TEXTS[:1]).prob > 0.55


def test_a_pyfunc_that_cannot_be_loaded_is_named(tmp_path):
    mlflow.pyfunc.save_model(tmp_path / "model", python_model=Array(), pip_requirements=[])
    (tmp_path / "model" / "python_model.pkl").write_bytes(b"half")
    with pytest.raises(ModelError, match="could not be loaded as an MLflow pyfunc"):
        open_scorer(tmp_path / "model", model_version="2")


def test_what_is_no_model_is_named(tmp_path):
    (tmp_path / "weights.bin").write_bytes(b"?")
    with pytest.raises(ModelError, match="version 9 is no model that can be scored"):
        open_scorer(tmp_path, model_version="9")


def test_our_own_model_keeps_its_threshold(scoring_artifact):
    scorer = open_scorer(scoring_artifact, model_version="1", threshold=0.99)
    assert isinstance(scorer, LocalScorer)
    assert scorer.threshold != 0.99
