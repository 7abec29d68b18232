"""Groups of annotators of published corpora: whose labels does a model follow?

    python benchmarks/divergence_corpora.py [--data ../shared/data]

Prints tables of results/groups.md: rows of groups with at least 20 annotators and 300 labels. The
model is the offline model, trained on Wikipedia Talk (`balanced_test`, `non_toxic_train`), which
knows none of these comments; decisions are positive above 0.5. Corpora that are not in the folder
are left out. Single ratings of Civil Comments do not tell whose they are: each counts as a person,
and intervals leave out that ratings of one person are alike.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from wikipedia_talk import corpus as wikipedia_talk
from wikipedia_talk import ours

from modwatch.models.recipe import offline_recipe
from modwatch.statistics.disagreement import Annotations
from modwatch.statistics.divergence import Groups, group_report, intersections, kappa_table
from modwatch_lab.corpora import load, long_table

#: Name, loader, folder, groupings.
CORPORA = (
    ("CREHate", "crehate", "crehate", ("nationality", "gender,ethnicity")),
    ("Civil Comments, spans", "civil_comments_spans", "civil_comments", ("country",)),
    ("SBIC v2, dev", "sbic", "sbic_v2", ("gender", "race", "age", "politics")),
    ("Civil Comments, single ratings", "civil_comments_cctk", "civil_comments_cctk", ("country",)),
)

COLUMNS = (
    "group", "annotators", "labels", "agreement", "less all others", "shrunk", "F1",
    "less all others", "uncertainty divergence", "κ within (items)",
)  # fmt: skip


def attributes(table):
    """Return the attributes of annotators, by id, with short names and ages in decades."""
    people = table.to_pandas().set_index("annotator_id")
    people.columns = [name.removeprefix("annotator").lower() for name in people.columns]
    if "age" in people:
        decade = pd.to_numeric(people["age"], errors="coerce") // 10 * 10
        people["age"] = decade.map("{:.0f}s".format, na_action="ignore")
    return people


def interval(row, name="value", sign=""):
    low, high = ("low", "high") if name == "value" else (f"{name}_low", f"{name}_high")
    return f"{row[name]:{sign}.3f} [{row[low]:{sign}.3f}, {row[high]:{sign}.3f}]"


def p_value(row):
    return "p < 0.01" if row["p_holm"] < 0.01 else f"p = {row['p_holm']:.2f}"


def difference(row):
    return f"{interval(row, 'difference', '+')} ({p_value(row)})".replace("-", "−")


def kappa(row):
    result = f"{row['kappa']:.2f} [{row['low']:.2f}, {row['high']:.2f}] ({row['items']:,})"
    return "" if np.isnan(row["kappa"]) else result.replace("-", "−")


def print_table(annotations, prob, groups):
    table = group_report(annotations, prob, groups)
    within = kappa_table(annotations, groups).query("group == other").set_index("group")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    metrics = {name: of.set_index("group") for name, of in table.groupby("metric")}
    hidden = 0
    for group in groups.names:
        one = {name: of.loc[group] for name, of in metrics.items()}
        agreement, divergence = one["agreement"], one["uncertainty_divergence"]
        if agreement["annotators"] < 20 or agreement["annotations"] < 300:
            hidden += 1
            continue
        cells = (
            group, f"{agreement['annotators']:,.0f}", f"{agreement['annotations']:,.0f}",
            interval(agreement), difference(agreement), f"{agreement['shrunk']:.3f}",
            interval(one["f1"]), difference(one["f1"]),
            f"{interval(divergence)} ({p_value(divergence)})", kappa(within.loc[group]),
        )  # fmt: skip
        print(f"| {' | '.join(cells)} |")
    print(
        f"\n{hidden} smaller groups not listed, {len(groups.suppressed)} suppressed; "
        f"{groups.without:,} people without one."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("MODWATCH_DATA"))
    folder = parser.parse_args().data or Path(__file__).resolve().parents[2] / "shared" / "data"
    with tempfile.TemporaryDirectory() as scratch:
        talk = wikipedia_talk(folder / "wikipedia_talk", set())
        score = ours(talk, offline_recipe(), 0, Path(scratch) / "model")
        for name, loader, where, groupings in CORPORA:
            if not (folder / where).exists():
                continue
            start = time.perf_counter()
            corpus = load(loader, folder / where)
            annotations = Annotations.from_columns(
                **long_table(corpus)[["item", "annotator", "label"]], classes=(0, 1)
            )
            text = corpus.items.to_pandas().set_index("comment_id")["text"]
            prob = score(text[list(annotations.items)].tolist())
            people = attributes(corpus.annotators)
            for grouping in groupings:
                group = intersections(people, grouping.split(",")).dropna()
                groups = Groups.from_annotations(annotations, group)
                print(f"\n**{name}, by {grouping.replace(',', ' and ')}**\n")
                print_table(annotations, prob, groups)
            print(f"\n{time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
