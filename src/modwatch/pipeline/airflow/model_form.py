"""The form of the DAG `train_model`: fields, help texts and limits."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param

_DATA, _RECIPE = "Data", "Recipe"

#: The fields; empty ones take the default of the recipe.
FORM: dict[str, Param] = {
    "method": Param(
        "sngp",
        type="string",
        enum=["deterministic", "mc_dropout", "ensemble", "sngp", "sngp_ensemble"],
        title="Uncertainty method",
        description="sngp costs no more than deterministic; mc_dropout and ensembles cost a "
        "multiple of it, in training or in scoring.",
    ),
    "encoder": Param(
        None,
        type=["null", "string"],
        maxLength=1000,
        title="Encoder",
        description="Folder or name on the hub of a pre-trained Hugging Face encoder. Default: a "
        "small model, trained from scratch in seconds.",
    ),
    "expected_prevalence": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        exclusiveMaximum=1,
        title="Expected prevalence",
        description="Share of toxic comments in the stream. Default: that of the training data.",
    ),
    "seed": Param(0, type="integer", minimum=0, title="Seed"),
    "data": Param(
        [],
        type="array",
        items={"type": "string"},
        title="Files",
        description="CSV, TSV, JSON lines or Parquet files of labelled comments, one a line. "
        "Default: MODWATCH_TRAINING_DATA. For a database use `modwatch train`.",
        section=_DATA,
    ),
    "text_column": Param("text", type="string", title="Text column", section=_DATA),
    "label_column": Param(
        "label",
        type="string",
        title="Label column",
        description="0, 1, the share of annotators who said toxic, or a list of votes.",
        section=_DATA,
    ),
    "id_column": Param(
        None,
        type=["null", "string"],
        title="Id column",
        description="Rows with the same id are votes on one comment. Default: each row is one.",
        section=_DATA,
    ),
    "toxic_values": Param(
        [],
        type="array",
        items={"type": "string"},
        title="Toxic values",
        description="Labels that mean toxic, if labels are words, one a line.",
        section=_DATA,
    ),
    "loss": Param(
        "cross_entropy",
        type="string",
        enum=["cross_entropy", "focal"],
        title="Loss",
        section=_RECIPE,
    ),
    "negatives_per_positive": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        title="Other comments per toxic one",
        description="At most so many in training, drawn at random. Default: all.",
        section=_RECIPE,
    ),
    "epochs": Param(
        None, type=["null", "integer"], minimum=1, maximum=1000, title="Epochs", section=_RECIPE
    ),
    "learning_rate": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        maximum=1,
        title="Learning rate",
        section=_RECIPE,
    ),
    "max_examples": Param(
        None,
        type=["null", "integer"],
        minimum=2,
        title="Most comments",
        description="A random part of more. Default: all; the small model takes 60,000.",
        section=_RECIPE,
    ),
}

_OF_RECIPE = (
    *("method", "encoder", "expected_prevalence", "loss", "negatives_per_positive"),
    *("epochs", "learning_rate", "max_examples"),
)


def recipe_fields(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `models.recipe.Recipe` that the form sets.

    >>> recipe_fields({"method": "sngp", "encoder": None, "seed": 1})
    {'method': 'sngp'}
    """
    return {name: form[name] for name in _OF_RECIPE if form.get(name) not in (None, "")}
