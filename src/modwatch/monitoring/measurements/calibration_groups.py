"""Groups of comments whose prediction sets are calibrated apart: by platform, or by language."""

import datetime
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.data.lake.day_scores import day_scores
from modwatch.data.lake.delta import Lake
from modwatch.statistics.live.labelled_day import LabelledDay

Codes = NDArray[np.int16]

#: Labels of a window that a group requires to be calibrated apart.
MINIMUM_LABELS = 100

#: Values of an attribute that are told apart.
_MOST_VALUES = 1_000


def calibration_groups(
    lake: Lake, days: Sequence[datetime.date], labelled: Sequence[LabelledDay]
) -> list[Codes] | None:
    """Return the group (N,) of each comment of the days, from 0; None if there is only one.

    Groups are the platforms if two have labels enough, else the languages. Smaller ones belong to
    the largest, and so do comments that name none.
    """
    for attribute in ("platform", "language"):
        names = {"": 0}
        codes = [_codes(lake, day, attribute, names) for day in days]
        count = np.zeros(len(names), np.int64)
        for of_day, day in zip(codes, labelled, strict=True):
            count += np.bincount(of_day[day.labelled], minlength=len(names))
        large = [code for code in range(1, len(names)) if count[code] >= MINIMUM_LABELS]
        if len(large) > 1:
            group = np.zeros(len(names), np.int16)
            largest_first = sorted(large, key=lambda code: -count[code])
            group[largest_first] = np.arange(len(large))
            return [group[of_day] for of_day in codes]
    return None


def _codes(lake: Lake, day: datetime.date, attribute: str, names: dict[str, int]) -> Codes:
    """Return the code (N,) in `names` of each scored comment's value, 0 where there is none.

    New values get a code of their own, as long as codes suffice.
    """
    parts, ids = [np.zeros(0, np.int16)], list[pa.Array]()
    for batch in lake.read("comments", day, columns=["comment_id", attribute]):
        value = pc.fill_null(batch.column(attribute), "").dictionary_encode()
        known = value.dictionary.to_pylist()
        for name in known:
            if len(names) < _MOST_VALUES:
                names.setdefault(name, len(names))
        code = np.array([names.get(name, 0) for name in known], np.int16)
        parts.append(code[value.indices.to_numpy()])
        ids.append(batch.column("comment_id"))
    scores = day_scores(lake, day)
    place, codes = scores.positions(ids), np.concatenate(parts)
    found = np.zeros(len(scores.comment_id), np.int16)
    found[place[place >= 0]] = codes[place >= 0]
    return found
