import numpy as np

from modwatch.ingest.community.latents import Climate, draw_latents
from modwatch.ingest.community.lexicon import GROUPS
from modwatch.ingest.community.truth import TRUTH, greeting_table, truth_table


def test_latents_become_rows():
    climate = Climate(prevalence=0.3, new_topics=0, coinages=0)
    latents = draw_latents(100, climate, np.random.default_rng(0))
    table = truth_table([f"c{i}" for i in range(100)], latents)
    assert table.schema == TRUTH
    assert table["label"].to_pylist() == latents.label.tolist()
    assert all(set(groups) <= set(GROUPS) for groups in table["groups"].to_pylist())


def test_greetings_are_harmless():
    (row,) = greeting_table(["x"]).to_pylist()
    assert (row["label"], row["kind"], row["difficulty"]) == (0, "greeting", 0.02)
