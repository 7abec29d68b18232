"""Models that Modwatch did not train: Hugging Face classifiers, pyfuncs, and what is neither."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from modwatch.common.errors import ModelError
from modwatch.models.scoring.foreign import HuggingFaceScorer, PyfuncScorer
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.scoring.opening import open_scorer
from modwatch.models.scoring.scorer import Scorer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # importing mlflow.pyfunc warns of a type hint of MLflow
    import mlflow.pyfunc

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:mlflow")

TEXTS = ["you fool", "a kind word", "", "fool " * 400]
VOCABULARY = {"[PAD]": 0, "[UNK]": 1, "you": 2, "fool": 3, "a": 4, "kind": 5, "word": 6}


def classifier(folder: Path, **config: Any) -> BertForSequenceClassification:
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=7, intermediate_size=32, max_position_embeddings=64, **sizes, **config
        )
    ).eval()
    model.save_pretrained(folder)
    return model


def logits(model: BertForSequenceClassification, text: str) -> torch.Tensor:
    ids = [VOCABULARY.get(word, 1) for word in text.split()][:64] or [1]
    with torch.inference_mode():
        return model(input_ids=torch.tensor([ids])).logits[0]


@pytest.mark.parametrize(
    ("config", "prob"),
    [
        ({"num_labels": 1}, lambda logit: torch.sigmoid(logit)[0]),
        ({"id2label": {0: "toxic", 1: "fine"}}, lambda logit: torch.softmax(logit, 0)[0]),
        ({"id2label": {0: "LABEL_0", 1: "LABEL_1"}}, lambda logit: torch.softmax(logit, 0)[1]),
        ({"id2label": {0: "non-hate", 1: "hate"}}, lambda logit: torch.softmax(logit, 0)[1]),
        (
            {
                "id2label": {0: "obscene", 1: "toxic", 2: "insult"},
                "problem_type": "multi_label_classification",
            },
            lambda logit: torch.sigmoid(logit)[1],
        ),
    ],
)
def test_a_classifier_gives_the_probability_of_its_toxic_class(
    config: dict[str, Any], prob: Callable[[torch.Tensor], torch.Tensor], tmp_path: Path
) -> None:
    model = classifier(tmp_path, **config)
    scorer = open_scorer(tmp_path, model_version="4", threshold=0.3)
    assert isinstance(scorer, HuggingFaceScorer)
    as_scorer: Scorer = scorer
    assert (as_scorer.model_version, as_scorer.threshold) == ("4", 0.3)
    found = scorer.score(TEXTS)
    assert found.prob == pytest.approx(
        [prob(logits(model, text)).item() for text in TEXTS], abs=1e-5
    )
    assert found.model_variance.max() == found.mutual_information.max() == 0
    assert found.uncertainty == pytest.approx(found.prob * (1 - found.prob))


@pytest.mark.parametrize("names", [{0: "a", 1: "b"}, {0: "hate", 1: "insult", 2: "fine"}])
def test_a_classifier_without_one_toxic_class_is_refused(
    names: dict[int, str], tmp_path: Path
) -> None:
    classifier(tmp_path, id2label=names)
    with pytest.raises(ModelError, match=r"which class .* is toxicity"):
        open_scorer(tmp_path, model_version="1")


def test_a_classifier_without_weights_is_refused(tmp_path: Path) -> None:
    classifier(tmp_path, num_labels=1)
    (tmp_path / "model.safetensors").write_bytes(b"half")
    with pytest.raises(ModelError, match="not a Hugging Face classifier"):
        open_scorer(tmp_path, model_version="1")


class Array(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    def predict(self, context: Any, model_input: list[str], params: Any = None) -> Any:
        return np.array([float("fool" in text) for text in model_input])


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


def pyfunc(model: Any, folder: Path) -> PyfuncScorer:
    mlflow.pyfunc.save_model(folder, python_model=model, pip_requirements=[])
    scorer = open_scorer(folder, model_version="2")
    assert isinstance(scorer, PyfuncScorer)
    assert scorer.threshold == 0.5
    return scorer


def test_a_pyfunc_returns_an_array(tmp_path: Path) -> None:
    found = pyfunc(Array(), tmp_path / "model").score(TEXTS)
    assert found.prob.tolist() == [1, 0, 0, 1]
    assert found.model_variance.max() == 0
    assert len(pyfunc(Array(), tmp_path / "again").score([]).prob) == 0


def test_a_pyfunc_takes_and_returns_a_frame(tmp_path: Path) -> None:
    found = pyfunc(Frame(), tmp_path / "model").score(TEXTS)
    assert found.prob == pytest.approx([0.9, 0.1, 0.1, 0.9])


def test_a_pyfunc_gets_texts_whole_and_without_invisible_characters(tmp_path: Path) -> None:
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
    ],
)
def test_a_pyfunc_that_does_not_score_is_named_without_a_text(
    model: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        pyfunc(model, tmp_path / "model").score(TEXTS)
    assert "fool" not in str(caught.value)


def test_a_pyfunc_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    mlflow.pyfunc.save_model(tmp_path / "model", python_model=Array(), pip_requirements=[])
    (tmp_path / "model" / "python_model.pkl").write_bytes(b"half")
    with pytest.raises(ModelError, match="could not be loaded as an MLflow pyfunc"):
        open_scorer(tmp_path / "model", model_version="2")


def test_what_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"?")
    with pytest.raises(ModelError, match="version 9 is no model that can be scored"):
        open_scorer(tmp_path, model_version="9")


def test_our_own_model_keeps_its_threshold(scoring_artifact: Path) -> None:
    scorer = open_scorer(scoring_artifact, model_version="1", threshold=0.99)
    assert isinstance(scorer, LocalScorer)
    assert scorer.threshold != 0.99
