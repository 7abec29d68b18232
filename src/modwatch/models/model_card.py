"""The model card: what the model is, how it was trained, what it is good for."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modwatch.models.training import TrainedModel

_NAMES = {
    "n": "Held-out comments",
    "auroc": "AUROC",
    "average_precision": "Average precision",
    "brier": "Brier score",
    "ece": "Expected calibration error",
    "calibration_auprc": "Calibration AUPRC",
}


def model_card(model: "TrainedModel") -> str:
    """Return the card in Markdown, with the metadata of the Hugging Face hub."""
    recipe, facts = model.recipe, model.facts
    expected = recipe.expected_prevalence or facts.toxic / facts.examples
    tags = "tags:\n- toxicity\n- uncertainty\n- modwatch\n"
    rows = [
        f"| {label} | {_cell(facts.validation, name)} |"
        for name, label in _NAMES.items()
        if name in facts.validation
    ]
    return f"""---
library_name: transformers
{tags}---

# Toxicity model, {recipe.method.replace("_", " ")}

The probability that a comment is toxic, with the model's uncertainty. Trained with Modwatch.

- **Encoder**: {recipe.encoder or "trained from scratch"}; `AutoModel.from_pretrained` loads the
  trained encoder, `modwatch.models.artifact.load` the whole model
- **Uncertainty**: {recipe.method}, {len(model.members)} network(s); loss: {recipe.loss}
- **Training data**: {facts.examples:,} comments, {facts.toxic:,} of them toxic; seed {facts.seed}
- **Calibration**: {model.calibration.method}, for a prevalence of {expected:.4g}
- **Threshold**: comments above {model.threshold:.4g} are flagged

## Validation

On held-out comments of the training data, at their prevalence. Where there are two values, the
first is before calibration; the second is cross-validated.

| Metric | Value |
|---|---|
{chr(10).join(rows)}

## Use and limits

The model decides which comments people review; it is not meant to act alone. It reads at most
{recipe.max_length} subwords of a comment. Texts unlike the training data (other languages, topics,
times) get less reliable scores: watch the live estimates, and audit.
"""


def _cell(validation: dict[str, float], name: str) -> str:
    value = validation[name]
    if name == "n":
        return f"{value:,.0f}"
    before = validation.get(f"{name}_before_calibration")
    return f"{value:.4f}" if before is None else f"{before:.4f}, {value:.4f}"
