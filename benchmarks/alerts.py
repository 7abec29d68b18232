"""Alerts of falling accuracy: their delay, their false alarms, and the day that they name.

    python benchmarks/alerts.py [--runs 200] [--days 60] [--processes 2] [--csv FILE]

Each run simulates daily estimates of accuracy and OC-Acc: 1,500 comments a day, of which the 150
with the highest uncertainty are reviewed and 50 of the others are drawn at random. The model's
accuracy varies by 0.15 on the log-odds scale from day to day. On the first evening 60 % of a day's
labels are in, on the second 85 %, on the third all. Two programs see the same labels:

    change   `modwatch.metrics.changes`: a fall of at least 2 or of at least 10 points in either
             series; none of 2 opens while one of 10 is open. Recomputed every evening.
    window   the default rules on the mean of the last fourteen days

Columns: `opened`, share of runs with an incident after the change; `delay`, days from the first bad
day to its first incident, median and 90 % quantile, a run without counted as the days left; `day1`,
`day3`, `day7`, share with at most that; `near`, share of incidents whose change day, as named when
they opened, is at most one day off; `covered`, share whose interval contains the day; `false`,
incidents a quarter (90 days) outside the fault; `ended`, share of runs with an incident that opened
and ended in the fault. The exit status is 1 if one of the floors at the end is missed.
"""

import argparse
import datetime
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import beta

from modwatch.alerts.incidents import MetricValue, incidents
from modwatch.alerts.rules import load_rules
from modwatch.metrics.changes import MINIMUM_BEFORE, follow_falls
from modwatch.metrics.intervals import NORMAL_QUANTILE

COMMENTS, REVIEWED, DRAWN = 1500, 150, 50
SHARE = REVIEWED / COMMENTS
#: Share of the labels that are in on the first evening, on the second, and from the third on.
RECEIVED = (0.6, 0.85, 1.0)
VARIATION = 0.15
#: The reviewed tenth has this share of a good model's errors; of a bad one's it has fewer.
CONCENTRATION = 0.45
WINDOW = 14
#: Falls from which an incident is a warning, and critical.
BOUNDS = (0.02, 0.1)
SERIES = ("accuracy", "oc_accuracy")
FIRST = datetime.date(2026, 1, 1)

#: Accuracy before, and by how much it falls; slow is a fall over twenty days.
CELLS = (
    *((before, 0.0, "none") for before in (0.965, 0.9, 0.8)),
    *((0.965, size, "step") for size in (0.03, 0.1, 0.25)),
    *((0.9, size, "step") for size in (0.03, 0.1, 0.25)),
    (0.965, 0.1, "slow"),
)

Estimates = dict[str, NDArray[np.float64]]
Cell = tuple[float, float, str]
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reported:
    """An incident as receivers see it, by evenings from 0."""

    opened: int
    #: None: still open on the last evening.
    ended: int | None = None
    #: The change day that it names, with its interval; None for the window.
    named: tuple[int, int, int] | None = None
    #: Whether none was sent, because a more severe one of the same series was open.
    silent: bool = False
    #: Whether its end says that the fault is over; that of a critical one may leave a warning.
    final: bool = True


def path(before: float, size: float, kind: str, days: int, change: int) -> NDArray[np.float64]:
    """Return the true mean accuracy of each day."""
    since = np.arange(days) - change + 1
    steps = {"none": 0 * since, "step": since > 0, "slow": np.clip(since / 20, 0, 1)}
    return before - size * steps[kind]


def received(rng: np.random.Generator, mean: NDArray[np.float64]) -> list[Estimates]:
    """Return the estimates of all days by how many evenings ago they were: 0, 1, 2 or more."""
    wrong = expit(logit(1 - mean) + rng.normal(0, VARIATION, mean.size))
    part = np.where(wrong < 0.1, CONCENTRATION, SHARE + (CONCENTRATION - SHARE) * 0.1 / wrong)
    of_reviewed = np.clip(part * wrong / SHARE, 0, 0.95)
    of_others = (wrong - SHARE * of_reviewed) / (1 - SHARE)
    reviewed = rng.random((REVIEWED, mean.size)) < of_reviewed
    drawn = rng.random((DRAWN, mean.size)) < of_others
    return [estimates(reviewed, drawn, part) for part in RECEIVED]


def estimates(reviewed: NDArray[np.bool_], drawn: NDArray[np.bool_], part: float) -> Estimates:
    """Return value, low and high of both series, (days,), with that part of the labels."""
    rows, errors = round(part * DRAWN), drawn[: round(part * DRAWN)].sum(axis=0)
    top, model_wrong = round(part * REVIEWED), reviewed[: round(part * REVIEWED)].mean(axis=0)
    rate, result = errors / rows, {}
    ends = [
        np.where(errors > 0, beta.ppf(0.025, errors + 0.5, rows - errors + 0.5), 0),
        np.where(errors < rows, beta.ppf(0.975, errors + 0.5, rows - errors + 0.5), 1),
    ]
    # Reviewed comments without a label so far count as the model decided them.
    for name, wrong in (("accuracy", model_wrong), ("oc_accuracy", (1 - part) * model_wrong)):
        variance = np.maximum(wrong * (1 - wrong), 0.02) / top * (1 - part)
        margins = [
            np.hypot((1 - SHARE) * (end - rate), NORMAL_QUANTILE * SHARE * np.sqrt(variance))
            for end in ends
        ]
        value = 1 - SHARE * wrong - (1 - SHARE) * rate
        low, high = np.maximum(value - margins[1], 0), np.minimum(value + margins[0], 1)
        result[name] = np.stack([value, low, high])
    return result


def seen(looks: list[Estimates], name: str, evening: int) -> NDArray[np.float64]:
    """Return what is known on that evening, (3, evening + 1)."""
    known = looks[2][name][:, : evening + 1].copy()
    known[:, -1] = looks[0][name][:, evening]
    if evening:
        known[:, -2] = looks[1][name][:, evening - 1]
    return known


def by_change(looks: list[Estimates], name: str) -> list[Reported]:
    """Return the incidents of a fall of one series, most severe first."""
    warnings, critical = (_falls_of(looks, name, bound) for bound in BOUNDS)
    days = looks[0][name].shape[1]
    return [replace(each, final=False) for each in critical] + [
        replace(each, silent=any(_is_open(one, each.opened, days) for one in critical))
        for each in warnings
    ]


def _is_open(incident: Reported, evening: int, days: int) -> bool:
    end = days if incident.ended is None else incident.ended
    return incident.opened <= evening < end


def _falls_of(looks: list[Estimates], name: str, bound: float) -> list[Reported]:
    """Return the incidents of falls of at least `bound`; they end at half of it."""
    ended: list[Reported] = []
    active: Reported | None = None
    for evening in range(looks[0][name].shape[1]):
        reported = active.named[0] if active and active.named else None
        fall = follow_falls(*seen(looks, name, evening), reported=reported)[-1]
        size = -fall.change[0] if fall else 0.0
        if active is None and fall is not None and size >= bound:
            named = (fall.first.day, fall.first.day_low, fall.first.day_high)
            active = Reported(opened=evening, named=named)
        elif active is not None and size < bound / 2:
            ended.append(replace(active, ended=evening))
            active = None
    return [*ended, active] if active else ended


def by_window(looks: list[Estimates], name: str) -> list[Reported]:
    """Return the incidents of the default rule on the window of one series."""
    (rule,) = (rule for rule in load_rules() if rule.name == f"{name}_low")
    return [
        Reported(
            opened=(each.opened - FIRST).days,
            ended=(each.recovered - FIRST).days if each.recovered else None,
        )
        for each in incidents(rule, list(_window_values(looks, name)))
    ]


def _window_values(looks: list[Estimates], name: str) -> Iterator[MetricValue]:
    """Yield the mean of the trailing window on each evening: margins of n days shrink by √n."""
    for evening in range(looks[0][name].shape[1]):
        value, low, high = seen(looks, name, evening)[:, -WINDOW:]
        shrunk = [
            float(np.sqrt(np.mean(margin**2) / value.size))
            for margin in (value - low, high - value)
        ]
        mean = float(value.mean())
        yield MetricValue(
            day=FIRST + datetime.timedelta(evening),
            metric=f"window_{name}",
            value=mean,
            low=mean - shrunk[0],
            high=mean + shrunk[1],
            n=(REVIEWED + DRAWN) * value.size,
        )


def run_once(cell: Cell, days: int, change: int, seed: list[int]) -> dict[str, list[Reported]]:
    """Return the incidents of both series, by program, in one run."""
    looks = received(np.random.default_rng(seed), path(*cell, days, change))
    return {
        program: [each for name in SERIES for each in find(looks, name)]
        for program, find in (("change", by_change), ("window", by_window))
    }


def row(cell: Cell, program: str, found: list[list[Reported]], days: int, change: int) -> Row:
    """Return the figures of one program on one cell; `found` has the incidents of each run."""
    end = days if cell[2] == "none" else change
    false = sum(each.opened < end and not each.silent for run in found for each in run)
    names = dict(zip(("before", "fall", "kind"), cell, strict=True))
    quarters = len(found) * (end - MINIMUM_BEFORE) / 90
    result: Row = {**names, "program": program, "false": false / quarters}
    return result if end == days else {**result, **_in_the_fault(found, days, change)}


def _in_the_fault(found: list[list[Reported]], days: int, change: int) -> Row:
    """Return the figures on the incidents that opened in the fault."""
    true = [[each for each in run if each.opened >= change] for run in found]
    first = [min((each.opened for each in run), default=days) for run in true]
    delay = np.array(first) - change
    named = [each.named for run in true for each in run if each.named and not each.silent]
    near = [abs(day - change) <= 1 for day, _, _ in named]
    covered = [low <= change <= high for _, low, high in named]
    return {
        "opened": (delay < days - change).mean(),
        "delay": np.median(delay),
        "delay_90": np.quantile(delay, 0.9),
        **{f"day{most}": (delay <= most).mean() for most in (1, 3, 7)},
        "near": np.mean(near) if near else np.nan,
        "covered": np.mean(covered) if covered else np.nan,
        "ended": np.mean([any(each.ended and each.final for each in run) for run in true]),
    }


def measure(runs: int, days: int, change: int, processes: int) -> pd.DataFrame:
    """Return the figures of both programs on every cell."""
    rows = []
    with ProcessPoolExecutor(processes) as pool:
        for number, cell in enumerate(CELLS):
            seeds = [[number, run] for run in range(runs)]
            run = partial(run_once, cell, days, change)
            found = list(pool.map(run, seeds, chunksize=10))
            rows += [
                row(cell, program, [each[program] for each in found], days, change)
                for program in ("change", "window")
            ]
    return pd.DataFrame(rows)


def floors(table: pd.DataFrame) -> dict[str, bool]:
    """Return whether each floor is reached."""
    ours = table[table["program"] == "change"]
    step = ours[ours["kind"] == "step"]
    large, small = step[step["fall"] >= 0.1], step[step["fall"] < 0.1]
    return {
        "a fall of 10 points or more: median at most 1 day after all labels": (
            large["delay"] <= len(RECEIVED)
        ).all(),
        "a fall of 3 points: median delay at most 7 days": (small["delay"] <= 7).all(),
        "at most 1 false incident a quarter": (ours["false"] <= 1).all(),
        "change day within 1 day in 90 %, 10 points or more": (large["near"] >= 0.9).all(),
        "no incident of 10 points or more ends in the fault": (large["ended"] == 0).all(),
    }


def main() -> int:
    """Print the figures; return 1 if a floor is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--change", type=int, default=35, help="first day of the fault, from 0")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    table = measure(options.runs, options.days, options.change, options.processes)
    print(table.round(2).to_string(index=False, na_rep=""))
    if options.csv:
        table.to_csv(options.csv, index=False)
    reached = floors(table)
    for floor, holds in reached.items():
        print(f"{'reached' if holds else 'MISSED '}  {floor}")
    return 0 if all(reached.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
