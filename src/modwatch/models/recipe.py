"""The hyperparameters of a training run, stored with the model."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from modwatch.errors import ModelError

HeadName = Literal["sngp", "deterministic"]
Pooling = Literal["mean", "max", "mean-max"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Hyperparameters; with corpus and seed they determine the model.

    The defaults are the offline model. `benchmarks/model_choice.py` compares them with other
    recipes and with TF-IDF and logistic regression, which mostly ranks better.

    >>> Recipe(epochs=2).epochs
    2
    >>> Recipe(pooling="median")
    Traceback (most recent call last):
        ...
    modwatch.errors.ModelError: recipe: pooling must be mean, max or mean-max, got 'median'
    """

    #: Folder of a pretrained Hugging Face encoder (config.json, model.safetensors, tokenizer.json);
    #: None trains tokenizer and encoder from scratch.
    encoder: str | None = None

    #: Tokenizer trained on the corpus (ignored with `encoder`).
    vocab_size: int = 8_000

    #: Encoder from scratch (ignored with `encoder`): BERT with this many layers; 0 is a bag of
    #: pooled subword embeddings.
    layers: int = 0
    hidden_size: int = 128
    attention_heads: int = 2
    dropout: float = 0.1

    pooling: Pooling = "max"
    head: HeadName = "sngp"
    #: Random Fourier features of the SNGP head.
    random_features: int = 1024
    #: Ridge of the Laplace precision.
    ridge: float = 1e-3
    #: Largest spectral norm of the dense layer before the head.
    norm_bound: float = 0.95
    #: λ of the mean-field logit μ/√(1+λσ²); π/8 is the textbook value, Kivlichan et al. use 0.1.
    mean_field_factor: float = 0.39269908169872414

    epochs: int = 4
    batch_size: int = 64
    learning_rate: float = 1e-3
    #: Factor on the learning rate of the embeddings, each of which occurs in few batches.
    embedding_rate: float = 5.0
    weight_decay: float = 0.01
    #: Share of subwords masked in each step, for regularisation.
    token_dropout: float = 0.1
    #: Maximum length in subwords; longer comments are truncated, in training and in scoring.
    max_length: int = 256
    #: Weight of the teacher's prediction (`teacher.teacher_predictions`) in the training target;
    #: the label has the rest. 0 trains on labels alone, without a teacher.
    teacher_weight: float = 0.5
    #: Weight of a toxic comment in the loss; calibration corrects for it.
    positive_weight: float = 1.0
    #: Maximum number of comments (a random sample of a larger corpus) and of steps, to bound the
    #: training time.
    max_examples: int = 60_000
    max_steps: int = 2_000
    #: Time limit of the optimisation. A run that reaches it stops early with a warning; the same
    #: seed may then give another model.
    seconds: float = 90.0
    #: Threads of torch during training. The default encoder is too small to gain from a second
    #: one; a fixed number makes the model independent of the machine.
    threads: int = 1

    #: Share of the corpus held out for calibration, threshold and validation metrics.
    held_out: float = 0.1
    #: Prevalence of the stream; None: that of the corpus.
    expected_prevalence: float | None = None
    #: Comments with a higher probability are flagged; None: best F1 at the expected prevalence.
    threshold: float | None = None

    def __post_init__(self) -> None:
        for name, kind in (("head", HeadName), ("pooling", Pooling)):
            if getattr(self, name) not in get_args(kind):
                *others, last = get_args(kind)
                raise ModelError(
                    f"recipe: {name} must be {', '.join(others)} or {last}, "
                    f"got {getattr(self, name)!r}"
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

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any], *, origin: Path) -> "Recipe":
        """Return the recipe of `to_json`; ModelError names `origin` when a field is unknown."""
        try:
            return cls(**values)
        except TypeError as exc:
            known = {field.name for field in fields(cls)}
            unknown = ", ".join(sorted(set(values) - known)) or "none"
            raise ModelError(
                f"{origin}: invalid recipe (unknown fields: {unknown}); train the model again"
            ) from exc


_TINY = 1e-6
_RANGES: tuple[tuple[str, float, float], ...] = (
    ("vocab_size", 64, 1_000_000),
    ("layers", 0, 48),
    ("hidden_size", 1, 16_384),
    ("attention_heads", 1, 256),
    ("dropout", 0, 0.9),
    ("random_features", 1, 16_384),
    ("ridge", 1e-12, 1e6),
    ("norm_bound", _TINY, 100),
    ("mean_field_factor", 0, 10),
    ("epochs", 1, 1_000),
    ("batch_size", 1, 4_096),
    ("learning_rate", 1e-9, 1),
    ("embedding_rate", 0, 100),
    ("weight_decay", 0, 1),
    ("token_dropout", 0, 0.9),
    ("max_length", 2, 8_192),
    ("teacher_weight", 0, 1),
    ("positive_weight", _TINY, 1e6),
    ("max_examples", 2, 100_000_000),
    ("max_steps", 1, 100_000_000),
    ("seconds", 0.1, 604_800),
    ("threads", 1, 1_024),
    ("held_out", 0.01, 0.5),
    ("expected_prevalence", _TINY, 1 - _TINY),
    ("threshold", 0, 1),
)
