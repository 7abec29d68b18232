"""Coverage of the headline intervals of the demo, over all of its days, on each data set.

    python benchmarks/demo_coverage.py [--data synthetic …] [--seeds 10] [--cache FOLDER]

The measuring part of `make demo`, in-process: the offline model scores the stream once, and then,
for each seed, every day is routed with the demo's policy, the demo's moderators label what is
routed and confirm what is drawn, and all days are measured together. The seed decides the keys of
the slice and of the confirmations, who labels what, and people's errors; for Civil Comments, which
real rating each person gives. Not simulated: skipped and escalated items, gold items, and comments
that data validation quarantines for other reasons than a missing text or a repeated id.

`figures` is the number of seeds with an estimate, `coverage` how many of their intervals hold the
truth, `independent` the same if no error were shared, and `first` the coverage if
every first label is taken as true. Scores are cached in FOLDER, by default in the folder for
temporary files; remove it after a change of the model. Exit status 1 if the intervals of a data set
hold the truth in less than 90 % of the cases.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from modwatch.common.errors import SourceError
from modwatch.routing import RoutingPolicy, design_routing, random_keys
from modwatch.routing.confirmation_design import confirmation_probabilities, draw_confirmations
from modwatch.routing.design import Routing
from modwatch.settings import load_settings
from modwatch.statistics import LabelledDay, fully_labelled, measure_days
from modwatch.statistics.live.label_errors import label_error_table
from modwatch.statistics.live.labelled_day import Confirmations
from modwatch.statistics.live.measure import Measured
from modwatch_lab.demo.datasets import DemoData, demo_data
from modwatch_lab.demo.moderators import DEMO_MODERATORS
from modwatch_lab.demo.setup import DEMO_SETTINGS
from modwatch_lab.simulated import SimulatedModerator

DATA = ("synthetic", "wikipedia_talk", "civil_comments")
METRICS = ("accuracy", "oc_accuracy", "oc_auroc", "review_efficiency")
RATES = ("annotator_false_positive_rate", "annotator_false_negative_rate")
FLOOR = 0.9
POLICY = RoutingPolicy(
    review_fraction=float(DEMO_SETTINGS["MODWATCH_REVIEW_FRACTION"]),
    slice_share=float(DEMO_SETTINGS["MODWATCH_SLICE_SHARE"]),
)


@dataclass(frozen=True, kw_only=True)
class ScoredDay:
    """The n comments of a day."""

    name: str
    ids: list[str]
    #: (n,) in [0, 1].
    prob: np.ndarray
    #: (n,) the truth, 0 or 1.
    label: np.ndarray


class Team:
    """The demo's moderators, who label and confirm the routed comments day by day."""

    def __init__(self, people: Sequence[SimulatedModerator], seed: int, threshold: float) -> None:
        self.people, self.threshold = people, threshold
        self.salt, self.rng = f"seed {seed}", np.random.default_rng(seed)
        #: First labels, toxic ones, and confirmations so far; of the top, and of the slice.
        self.labels, self.toxic, self.confirmations = np.zeros(2), np.zeros(2), 0
        #: First labels that are wrong, and comments, by truth.
        self.wrong, self.given = np.zeros(2), np.zeros(2)

    def review(self, day: ScoredDay) -> LabelledDay:
        """Return the day after review, with all labels and confirmations in."""
        routing = design_routing(
            day.prob, self._keys(day.ids, day, ""), POLICY, threshold=self.threshold
        )
        result = self._labels(day, routing)
        stratum, label = np.full(len(day.ids), -1), np.zeros(len(day.ids), int)
        stratum[routing.row], label[routing.row] = routing.stratum, result[:, 0]
        return LabelledDay(
            prob=day.prob,
            stratum=stratum,
            label=label,
            labelled=stratum >= 0,
            population=routing.strata["population"].to_numpy(),
            sample=routing.strata["sample"].to_numpy(),
            confirmations=self._confirmed(day, routing, result),
        )

    def _labels(self, day: ScoredDay, routing: Routing) -> np.ndarray:
        """Return the labels (r, 3) of the routed comments by three people each."""
        found = np.empty((routing.row.size, 3), int)
        for place, row in enumerate(routing.row):
            who = self.rng.permutation(len(self.people))[:3]
            found[place] = [self.people[n].label(day.ids[row], int(day.label[row])) for n in who]
        truth, first = day.label[routing.row].astype(int), found[:, 0]
        self.given += np.bincount(truth, minlength=2)
        self.wrong += np.bincount(truth[first != truth], minlength=2)
        return found

    def _confirmed(self, day: ScoredDay, routing: Routing, reported: np.ndarray) -> Confirmations:
        """Return the labels of rounds 2 and 3, drawn as the pipeline draws them."""
        row, ids = routing.row, [day.ids[row] for row in routing.row]
        chance = confirmation_probabilities(
            day.prob[row],
            routing.stratum,
            threshold=self.threshold,
            share=POLICY.confirmation_share,
            toxic_labels=self._recent(),
        )
        keys, ranks = (self._keys(ids, day, f" {use}") for use in ("confirmation", "rank"))
        drawn = draw_confirmations(chance, keys, ranks)
        second = drawn.row[drawn.confirmed[np.arange(len(drawn.row)), reported[drawn.row, 0]]]
        third = second[reported[second, 0] != reported[second, 1]]
        for part, here in enumerate((routing.stratum == 0, routing.stratum != 0)):
            self.labels[part] += here.sum()
            self.toxic[part] += reported[here, 0].sum()
        self.confirmations += len(second) + len(third)
        return Confirmations(
            row=row[np.concatenate([second, third])],
            label=np.concatenate([reported[second, 1], reported[third, 2]]),
        )

    def _recent(self) -> tuple[float | None, float | None]:
        """Return the share of toxic labels so far, of the top and of the slice."""
        if not self.labels.any():
            return None, None
        top, rest = (self.toxic + 1) / (self.labels + 10)
        return float(top), float(rest)

    def _keys(self, ids: Sequence[str], day: ScoredDay, use: str) -> np.ndarray:
        digest = f"{POLICY.digest}{use}"
        return random_keys(ids, day=day.name, design_digest=digest, salt=self.salt)


def people(data: DemoData, seed: int) -> list[SimulatedModerator]:
    """Return the demo's moderators; the seed decides their errors, or which ratings they give."""
    ratings = data.ratings()
    return [
        SimulatedModerator(
            token="",
            false_positive_rate=false_positive,
            false_negative_rate=false_negative,
            seed=number + (0 if ratings else len(DEMO_MODERATORS) * seed),
            ratings=ratings and replace(ratings, seed=seed),
        )
        for number, (_, false_positive, false_negative) in enumerate(DEMO_MODERATORS)
    ]


def scored(data: DemoData, cache: Path) -> tuple[list[ScoredDay], float]:
    """Return the scored days, and the model's threshold."""
    file = cache / f"{data.name}-{data.days}.parquet"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        score(data, stream(data)).to_parquet(file)
    frame = pd.read_parquet(file)
    days = [
        ScoredDay(
            name=str(day),
            ids=rows["comment_id"].tolist(),
            prob=rows["prob"].to_numpy(np.float64),
            label=rows["label"].to_numpy(np.int8),
        )
        for day, rows in frame.groupby("dt", sort=True)
    ]
    return days, float(frame["threshold"].iloc[0])


def stream(data: DemoData) -> pd.DataFrame:
    """Return the valid comments of all days, as the demo's source delivers them."""
    os.environ.update(data.settings)
    try:
        source = load_settings().source.open()
    finally:
        for name in data.settings:
            del os.environ[name]
    batches = [batch for day in data.day_list() for batch in source.read(day)]
    rows = pa.Table.from_batches(batches).to_pandas().dropna(subset=["comment_id", "text", "label"])
    rows = rows[rows["text"].str.strip() != ""]
    return rows.drop_duplicates("comment_id", ignore_index=True)


def score(data: DemoData, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the ids, days, labels and probabilities of these comments by a model trained now."""
    from modwatch.models.artifact import save
    from modwatch.models.recipe import offline_recipe
    from modwatch.models.scoring.local import LocalScorer
    from modwatch.models.training import train

    corpus = data.training()
    recipe = offline_recipe(expected_prevalence=data.expected_prevalence)
    model = train(corpus.texts, corpus.labels.tolist(), recipe=recipe, seed=0)
    with tempfile.TemporaryDirectory() as scratch:
        save(model, Path(scratch) / "model")
        scorer = LocalScorer(Path(scratch) / "model", model_version="1", threads=1)
        prob = scorer.score(rows["text"].tolist()).prob
    return rows[["comment_id", "dt", "label"]].assign(prob=prob, threshold=scorer.threshold)


def measured(
    data: DemoData, days: Sequence[ScoredDay], threshold: float, seed: int
) -> pd.DataFrame:
    """Return one row per metric: truth, estimate, and the estimate from first labels alone."""
    team = Team(people(data, seed), seed, threshold)
    reviewed = [team.review(day) for day in days]
    plain = [replace(day, confirmations=None) for day in reviewed]
    true = [fully_labelled(day.label, day.prob) for day in days]
    tables = [
        measure_days(
            value,
            review_fractions=[POLICY.review_fraction],
            strategies=[POLICY.strategy],
            threshold=threshold,
            seed=seed,
        ).set_index("metric")[["value", "low", "high"]]
        for value in (reviewed, plain, true)
    ]
    ours, first, truth = tables
    table = ours.join(first.add_prefix("first_")).join(truth["value"].rename("truth"))
    alone = label_error_table(
        Measured.from_days(reviewed, seed=seed),
        review_fraction=POLICY.review_fraction,
        strategy=POLICY.strategy,
        threshold=threshold,
    ).set_index("metric")
    table = table.join(alone[["independent_low", "independent_high"]])
    for name, rate in zip(RATES, team.wrong / team.given, strict=True):
        table.loc[name, "truth"] = rate
    table = table.loc[[*METRICS, *RATES]].astype(float)
    return table.assign(
        data=data.name, seed=seed, further=team.confirmations / float(team.labels.sum())
    )


def report(runs: pd.DataFrame) -> list[str]:
    """Print the table; return the floors missed."""
    frame = runs.reset_index()
    for prefix in ("", "first_", "independent_"):
        low, high = frame[f"{prefix}low"], frame[f"{prefix}high"]
        held = (low <= frame["truth"] + 1e-9) & (frame["truth"] <= high + 1e-9)
        frame[f"{prefix}held"] = held.astype(float).where(low.notna())
    frame["width"] = frame["high"] - frame["low"]
    names = {name: place for place, name in enumerate([*METRICS, *RATES])}
    table = (
        frame.groupby(["data", "metric"], sort=False)
        .agg(
            figures=("value", "count"),
            coverage=("held", "mean"),
            independent=("independent_held", "mean"),
            first=("first_held", "mean"),
            truth=("truth", "mean"),
            estimate=("value", "mean"),
            first_estimate=("first_value", "mean"),
            width=("width", "mean"),
            further=("further", "mean"),
        )
        .sort_index(key=lambda level: level.map(names) if level.name == "metric" else level)
    )
    table.loc[(slice(None), list(RATES)), ["first", "first_estimate"]] = np.nan
    print(table.round(4).to_string())
    cases = frame[frame["metric"].isin(METRICS)]
    shares = cases.groupby("data")["held"].mean()
    print(f"all data sets: {cases['held'].mean():.1%} of the cases")
    return [f"{data}: {share:.0%}" for data, share in shares.items() if share < FLOOR]


def main() -> int:
    """Run the seeds on each data set; return 1 when a floor is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--seeds", type=int, default=10)
    default = Path(tempfile.gettempdir()) / "modwatch-demo-coverage"
    parser.add_argument("--cache", type=Path, default=default)
    options = parser.parse_args()
    start, runs = time.perf_counter(), []
    for name in options.data:
        try:
            data = demo_data(name)
        except SourceError as error:
            print(f"{name} is left out: {error}")
            continue
        days, threshold = scored(data, options.cache)
        runs += [measured(data, days, threshold, seed) for seed in range(options.seeds)]
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    missed = report(pd.concat(runs))
    print(f"floors missed: {', '.join(missed) or 'none'}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
