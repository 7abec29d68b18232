"""The scores and comments of a day next to those of its reference, as a page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from modwatch.common.html import render_html
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.profiles import read_profiles
from modwatch.data.validation.result import CheckStore
from modwatch.monitoring.measurements.references import ReferencePlan, references
from modwatch.statistics.drift.profile import Counts, coarser, pooled

#: Bins of the scores, and categories, that are shown.
_BINS, _MOST = 20, 15


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """A feature of a day and of its reference."""

    feature: str
    #: The reference, in words, and what each side counts.
    before: str
    before_total: int
    total: int
    #: Name, and share of the reference and of the day in [0, 1].
    rows: list[tuple[str, float, float]]


def distributions(
    lake: Lake, checks: CheckStore, day: date, *, plan: ReferencePlan
) -> Iterator[Distribution]:
    """Yield the features of a day next to the trailing days, or else the fixed reference.

    A feature without values on either side is left out.
    """
    today = read_profiles(lake, [day]).get(day)
    if today is None:
        return
    known = references(lake, checks, day, plan=plan)
    for reference in sorted(known, key=lambda one: one.name != "trailing"):
        words = "the days before" if reference.name == "trailing" else "the fixed reference"
        scores = pooled(reference.scored_by(today.model_version))
        comments = pooled(reference.comments or ())
        mixes = {**comments.categories, **reference.mixes}
        sides = {
            "score": (_bins(scores.scores["prob"]), _bins(today.scores["prob"])),
            **{feature: (mixes.get(feature, {}), mix) for feature, mix in today.categories.items()},
        }
        found = [_side_by_side(feature, words, *side) for feature, side in sides.items()]
        if any(found):
            yield from filter(None, found)
            return


def distribution_page(
    lake: Lake, checks: CheckStore, day: date, *, plan: ReferencePlan, console_url: str
) -> str | None:
    """Return the page of a day as HTML text; None: there is nothing to compare."""
    shown = [*distributions(lake, checks, day, plan=plan)]
    if not shown:
        return None
    examples = f"{console_url.rstrip('/')}/search?day={day}"
    return render_html(
        "modwatch.monitoring.ops_page",
        "distributions.html",
        day=day,
        distributions=shown,
        examples=examples,
    )


def _bins(counts: Counts) -> dict[str, int]:
    width = 1 / _BINS
    sums = enumerate(coarser(counts, _BINS).tolist())
    return {f"{at * width:.2f} to {(at + 1) * width:.2f}": count for at, count in sums}


def _side_by_side(
    feature: str, words: str, before: Mapping[str, int], today: Mapping[str, int]
) -> Distribution | None:
    totals = sum(before.values()), sum(today.values())
    if not all(totals):
        return None
    rows = [
        (name, before.get(name, 0) / totals[0], today.get(name, 0) / totals[1])
        for name in dict.fromkeys([*before, *today])
    ]
    if feature != "score":
        rows = sorted(rows, key=lambda row: -max(row[1:]))[:_MOST]
    return Distribution(
        feature=feature, before=words, before_total=totals[0], total=totals[1], rows=rows
    )
