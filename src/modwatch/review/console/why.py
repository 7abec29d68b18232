"""Why a comment was sent, in words, where knowing it spoils no comparison."""

from dataclasses import dataclass

from sqlalchemy import Engine, exists, select

from modwatch.review.console.i18n import N_
from modwatch.review.tables import review_item

_REASONS = {
    "uncertainty": N_("The model is least sure of comments like this one."),
    "toxicity": N_("The model finds it among the most toxic of its day."),
    "hybrid": N_("The model finds it toxic, or is unsure."),
}

#: p(1-p): from here on a model is unsure (p between 0.3 and 0.7), and below 0.09 sure.
_UNSURE, _SURE = 0.21, 0.09


@dataclass(frozen=True, kw_only=True)
class Why:
    """What is told of the model's view; each a message of the catalogues."""

    reason: str
    view: str
    #: p(toxic), in [0, 1].
    prob: float


def why(engine: Engine, item_id: int) -> Why | None:
    """Return why the item was sent; None unless one label of one person is all that is wanted.

    Labels of all other items are compared with others, or with the model, and are blind.
    """
    columns = ("kind", "labels_wanted", "reason", "prob", "uncertainty")
    twin = review_item.alias("twin")
    compared = exists().where(
        twin.c.dt == review_item.c.dt,
        twin.c.comment_id == review_item.c.comment_id,
        twin.c.kind == "second_opinion",
    )
    asked = select(*(review_item.c[name] for name in columns), compared.label("compared")).where(
        review_item.c.id == item_id
    )
    with engine.connect() as connection:
        row = connection.execute(asked).one_or_none()
    if row is None or row.kind != "review" or row.labels_wanted != 1 or row.compared:
        return None
    if row.reason not in _REASONS:
        return None
    return Why(reason=_REASONS[row.reason], view=in_words(row.prob, row.uncertainty), prob=row.prob)


def in_words(prob: float, uncertainty: float) -> str:
    """Return the model's view as one sentence.

    >>> in_words(0.4, 0.24)
    'The model leans to not toxic and is unsure.'
    >>> in_words(0.99, 0.01)
    'The model says toxic and is sure.'
    """
    toxic = prob >= 0.5
    if uncertainty >= _UNSURE:
        return (
            N_("The model leans to toxic and is unsure.")
            if toxic
            else N_("The model leans to not toxic and is unsure.")
        )
    if uncertainty >= _SURE:
        return (
            N_("The model leans to toxic and is fairly sure.")
            if toxic
            else N_("The model leans to not toxic and is fairly sure.")
        )
    return (
        N_("The model says toxic and is sure.")
        if toxic
        else N_("The model says not toxic and is sure.")
    )
