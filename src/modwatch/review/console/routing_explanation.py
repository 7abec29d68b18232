"""Why a comment was sent for review, for items whose labels are not compared with others."""

from dataclasses import dataclass

from sqlalchemy import Engine, exists, select

from modwatch.review.console.i18n import N_
from modwatch.review.tables import review_item

_REASONS = {
    "uncertainty": N_("The model is uncertain about this comment."),
    "toxicity": N_("The model ranks this comment among the most toxic of the day."),
    "hybrid": N_("The model finds this comment toxic or is uncertain."),
}

#: Least p(1-p), and the views for not toxic and for toxic; 0.21 is p between 0.3 and 0.7.
_VIEWS = (
    (
        0.21,
        N_("The model leans towards not toxic and is unsure."),
        N_("The model leans towards toxic and is unsure."),
    ),
    (
        0.09,
        N_("The model leans towards not toxic and is fairly sure."),
        N_("The model leans towards toxic and is fairly sure."),
    ),
    (
        0.0,
        N_("The model predicts not toxic and is sure."),
        N_("The model predicts toxic and is sure."),
    ),
)


@dataclass(frozen=True, kw_only=True)
class RoutingExplanation:
    """Reason and model's view; both are messages of the catalogues."""

    reason: str
    view: str
    #: p(toxic), in [0, 1].
    prob: float


def explain_routing(engine: Engine, item_id: int) -> RoutingExplanation | None:
    """Return why the item was sent; None unless it wants one label of one person.

    Labels of all other items are compared with other labels or with the model, and are blind.
    """
    columns = ("kind", "labels_wanted", "reason", "prob", "uncertainty")
    twin = review_item.alias("twin")
    compared = exists().where(
        twin.c.dt == review_item.c.dt,
        twin.c.comment_id == review_item.c.comment_id,
        twin.c.kind == "confirmation",
    )
    query = select(*(review_item.c[name] for name in columns), compared.label("compared")).where(
        review_item.c.id == item_id
    )
    with engine.connect() as connection:
        row = connection.execute(query).one_or_none()
    if row is None or row.kind != "review" or row.labels_wanted != 1 or row.compared:
        return None
    if row.reason not in _REASONS:
        return None
    view = model_view(row.prob, row.uncertainty)
    return RoutingExplanation(reason=_REASONS[row.reason], view=view, prob=row.prob)


def model_view(prob: float, uncertainty: float) -> str:
    """Return the model's view as one sentence.

    >>> model_view(0.4, 0.24)
    'The model leans towards not toxic and is unsure.'
    >>> model_view(0.99, 0.01)
    'The model predicts toxic and is sure.'
    """
    views = next(views for least, *views in _VIEWS if uncertainty >= least)
    return views[prob >= 0.5]
