"""How often moderators err, as retests and gold items tell, from the answers in the lake."""

import datetime
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from modwatch.lake.delta import Lake
from modwatch.metrics.annotator_error import (
    ErrorRates,
    GoldAnswers,
    LabelPairs,
    error_rates_from_gold,
    error_rates_from_pairs,
)


def check_errors(
    lake: Lake, days: Sequence[datetime.date], *, prevalence: float | None
) -> Mapping[str, ErrorRates]:
    """Return the error rates that the checks of `days` tell, by source; some may be insufficient.

        source  is
        retest  a lower bound: a person may repeat a misreading
        gold    of comments that are no sample of the routed ones; `prevalence` as seen

    They are never pooled with second opinions, nor with each other.
    """
    return {
        "retest": error_rates_from_pairs(retest_pairs(lake, days)),
        "gold": error_rates_from_gold(gold_answers(lake, days), prevalence=prevalence),
    }


def retest_pairs(lake: Lake, days: Sequence[datetime.date]) -> LabelPairs:
    """Return both labels of each retest of `days`.

    Retests are drawn evenly from what was labelled, so weights are 1 on average over the top, and
    over the rest, where they go with 1/inclusion probability.
    """
    answers = _answers(lake, days, "retest")
    top = (answers["stratum"] == 0).to_numpy(np.bool_)
    weight = 1 / answers["inclusion_probability"].to_numpy(np.float64)
    for part in (top, ~top):
        if part.any():
            weight[part] *= part.sum() / weight[part].sum()
    return LabelPairs(
        first=answers["known"].to_numpy(np.int8),
        second=answers["label"].to_numpy(np.int8),
        top=top,
        weight=weight,
    )


def gold_answers(lake: Lake, days: Sequence[datetime.date]) -> GoldAnswers:
    """Return how the gold items of `days` were answered, all people together."""
    answers = _answers(lake, days, "gold")
    toxic, right = answers["known"] == 1, answers["known"] == answers["label"]
    return GoldAnswers(
        toxic=int(toxic.sum()),
        toxic_right=int((toxic & right).sum()),
        other=int((~toxic).sum()),
        other_right=int((~toxic & right).sum()),
    )


def _answers(lake: Lake, days: Sequence[datetime.date], kind: str) -> pd.DataFrame:
    frames = [lake.table("check_answers", day).to_pandas() for day in days]
    every = pd.concat(frames, ignore_index=True)
    return pd.DataFrame(every[every["kind"] == kind])
