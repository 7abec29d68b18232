"""The hyperparameters of a training run, stored with the model."""

import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from modwatch.common.errors import ModelError
from modwatch.models.scoring.scorer import PLAIN, SPREADS

Method = Literal["deterministic", "mc_dropout", "ensemble", "sngp", "sngp_ensemble"]
Loss = Literal["cross_entropy", "focal"]
Pooling = Literal["mean", "max"]

#: Most subwords of a comment that a model reads; longer comments are cut.
MOST_SUBWORDS = 16_384

METHODS: tuple[Method, ...] = get_args(Method)
LOSSES: tuple[Loss, ...] = get_args(Loss)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Hyperparameters; with corpus and seed they determine the model.

    The defaults fine-tune a pre-trained encoder. `offline_recipe` trains a small one from scratch.

    >>> Recipe(epochs=2).method
    'sngp'
    >>> Recipe(pooling="median")
    Traceback (most recent call last):
        ...
    modwatch.common.errors.ModelError: recipe: pooling must be mean or max, got 'median'
    """

    #: Pre-trained Hugging Face encoder: a folder, or a name on the hub. None trains tokenizer and
    #: encoder from scratch.
    encoder: str | None = None

    #: Uncertainty method (Kivlichan et al. 2021, section 5).
    method: Method = "sngp"
    #: Members of an ensemble, each trained from its own seed (M; the paper has 10).
    members: int = 5
    #: Passes of Monte Carlo dropout (S).
    passes: int = 10

    loss: Loss = "cross_entropy"
    #: γ of the focal loss; at 0 it is cross-entropy.
    focal_gamma: float = 2.0
    #: Weight of a toxic comment in the loss; calibration corrects for it.
    positive_weight: float = 1.0
    #: Most other comments per toxic one in training, drawn at random (Wei et al. 2024, section 5:
    #: 1); None trains on all.
    negatives_per_positive: float | None = None

    #: Tokenizer and encoder from scratch (ignored with `encoder`): BERT with this many layers; 0 is
    #: a bag of pooled subword embeddings.
    vocab_size: int = 8_000
    layers: int = 0
    hidden_size: int = 128
    attention_heads: int = 2

    #: Dropout of the head, and of an encoder from scratch.
    dropout: float = 0.1
    #: Dropout within a pre-trained encoder; None: its own. At 0 a step takes a sixth less.
    encoder_dropout: float | None = None
    pooling: Pooling = "mean"
    #: Random Fourier features of the SNGP head.
    random_features: int = 1024
    #: Whether the SNGP head is linear in its hidden layer, too: its kernel is then the sum of the
    #: Gaussian and a linear one. With random features alone, as in the paper, it learns slowly.
    linear_kernel: bool = True
    #: Ridge of the Laplace precision.
    ridge: float = 1e-3
    #: Largest spectral norm of the dense layer before the head.
    norm_bound: float = 0.95
    #: λ of the mean-field logit μ/√(1+λσ²); π/8 is the textbook value, Kivlichan et al. use 0.1.
    mean_field_factor: float = 0.39269908169872414

    #: Maximum length in subwords. Of longer comments, training reads the beginning, and scoring
    #: passages of half this length.
    max_length: int = 128
    epochs: int = 1
    #: Most comments of a batch, and most subwords with padding (the token budget).
    batch_size: int = 32
    batch_tokens: int = 4_096
    #: Batches whose gradients are added up before a step.
    accumulation: int = 1
    learning_rate: float = 1e-4
    #: Factor on the learning rate of the head, which is new (Howard & Ruder 2018 train later layers
    #: faster). At 1 an SNGP head hardly learns in an epoch (`benchmarks/fine_tuning.py`).
    head_rate: float = 10.0
    weight_decay: float = 0.01
    #: Share of the steps in which the learning rate increases; then it decreases to 0.
    warm_up: float = 0.06
    #: The average precision of the held-out comments is taken this often an epoch; the weights with
    #: the highest are kept, and training stops after `patience` times without a higher one.
    evaluations: int = 4
    patience: int = 4

    #: Longer comments are left out: a network that reads the beginning of one may not see what made
    #: it toxic.
    max_characters: int | None = None
    #: Maximum number of comments (a random sample of a larger corpus) and of steps.
    max_examples: int | None = None
    max_steps: int | None = None

    #: Threads of torch during training; None leaves them as they are. A fixed number makes the
    #: model independent of the number of cores.
    threads: int | None = None

    #: Share of the corpus held out for early stopping, calibration, threshold and validation.
    held_out: float = 0.1
    #: Calibration: none, platt, isotonic; None is chosen by cross-validation.
    calibration: str | None = None
    #: Prevalence of the stream; None: that of the corpus.
    expected_prevalence: float | None = None
    #: Comments with a higher probability are flagged; None: best F1 at the expected prevalence.
    threshold: float | None = None

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed and not (value is None and name == "calibration"):
                *others, last = allowed
                raise ModelError(
                    f"recipe: {name} must be {', '.join(others)} or {last}, got {value!r}"
                )
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise ModelError(f"recipe: {name} must be in [{low}, {high}], got {value}")
        if self.layers and self.hidden_size % self.attention_heads:
            raise ModelError(
                f"recipe: hidden_size must be a multiple of attention_heads, got "
                f"{self.hidden_size} and {self.attention_heads}"
            )

    @property
    def is_sngp(self) -> bool:
        """Whether the head is SNGP."""
        return self.method.startswith("sngp")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the model's predictions; a deterministic one has no posterior of weights."""
        return PLAIN if self.method == "deterministic" else (*PLAIN, *SPREADS)

    @property
    def networks(self) -> int:
        """Number of networks that are trained."""
        return self.members if self.method.endswith("ensemble") else 1

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any], *, origin: Path) -> "Recipe":
        """Return the recipe of `to_json`.

        ModelError names `origin` when a field is unknown.
        """
        try:
            return cls(**values)
        except TypeError as exc:
            known = {field.name for field in fields(cls)}
            unknown = ", ".join(sorted(set(values) - known)) or "none"
            raise ModelError(
                f"{origin}: invalid recipe (unknown fields: {unknown}); train the model again"
            ) from exc


def read_recipe(file: Path | None) -> Recipe:
    """Return the recipe of a TOML file; None: that of the offline model.

    Raises:
        ModelError: the file cannot be read, or `parse_recipe` refuses it.
    """
    try:
        text = "" if file is None else file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ModelError(f"{file} cannot be read ({type(exc).__name__}); name a file") from None
    return parse_recipe(text, origin=str(file))


def parse_recipe(text: str, *, origin: str) -> Recipe:
    """Return the recipe of a TOML text, whose keys are fields of `Recipe`.

    Fields that it does not name are those of fine-tuning if it names an `encoder`, or else those of
    the offline model.

    Raises:
        ModelError: it is no TOML, a field is unknown, or has an impossible value.

    >>> parse_recipe('encoder = "models/small"', origin="a.toml").max_length
    128
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise ModelError(f"{origin} cannot be read as TOML ({exc}); correct it") from None
    if unknown := values.keys() - {field.name for field in fields(Recipe)}:
        raise ModelError(
            f"{origin}: no recipe has {', '.join(sorted(unknown))}; see docs/models.md"
        )
    try:
        return (Recipe if "encoder" in values else offline_recipe)(**values)
    except TypeError:
        raise ModelError(
            f"{origin}: a text stands where a number must; see docs/models.md"
        ) from None


def offline_recipe(**changes: Any) -> Recipe:
    """Return the recipe of the offline model: a bag of subwords, trained from scratch in seconds.

    docs/decisions/models.md compares it with other recipes, and with TF-IDF.
    """
    values: dict[str, Any] = {
        "pooling": "max",
        "epochs": 4,
        "batch_size": 64,
        "batch_tokens": 16_384,
        "learning_rate": 5e-3,
        "head_rate": 0.5,
        "max_length": 256,
        "warm_up": 0.1,
        "max_examples": 60_000,
        "max_steps": 2_000,
        "threads": 1,
        "patience": 16,
        "linear_kernel": False,
    }
    return Recipe(**(values | changes))


_CHOICES: dict[str, tuple[str, ...]] = {
    "method": METHODS,
    "loss": LOSSES,
    "pooling": get_args(Pooling),
    "calibration": ("none", "platt", "isotonic"),
}
_TINY = 1e-6
_RANGES: tuple[tuple[str, float, float], ...] = (
    ("members", 1, 100),
    ("passes", 1, 1_000),
    ("focal_gamma", 0, 10),
    ("positive_weight", _TINY, 1e6),
    ("negatives_per_positive", _TINY, 1e6),
    ("vocab_size", 64, 1_000_000),
    ("layers", 0, 48),
    ("hidden_size", 1, 16_384),
    ("attention_heads", 1, 256),
    ("dropout", 0, 0.9),
    ("encoder_dropout", 0, 0.9),
    ("random_features", 1, 16_384),
    ("ridge", 1e-12, 1e6),
    ("norm_bound", _TINY, 100),
    ("mean_field_factor", 0, 10),
    ("max_length", 2, 8_192),
    ("epochs", 1, 1_000),
    ("batch_size", 1, 4_096),
    ("batch_tokens", 1, 10_000_000),
    ("accumulation", 1, 4_096),
    ("learning_rate", 1e-9, 1),
    ("head_rate", 0, 1_000),
    ("weight_decay", 0, 1),
    ("warm_up", 0, 1),
    ("evaluations", 1, 1_000),
    ("patience", 1, 1_000),
    ("max_characters", 1, 1_000_000_000),
    ("max_examples", 2, 1_000_000_000),
    ("max_steps", 1, 1_000_000_000),
    ("threads", 1, 1_024),
    ("held_out", 0.01, 0.5),
    ("expected_prevalence", _TINY, 1 - _TINY),
    ("threshold", 0, 1),
)
