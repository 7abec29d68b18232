"""The validation page and MLflow's drift table show the same numbers for the same day."""

import datetime

import pytest

from installation import MONDAY, TO_THE_QUEUE
from modwatch.common.errors import DayRejectedError
from modwatch.data.validation.profiles import read_profiles
from modwatch.data.validation.result import percentage
from modwatch.data.validation.rules import validated
from modwatch.installation.resources import open_resources

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

USUAL = {"kind": "community", "seed": 7, "comments_per_day": 330, "dirt_rate": 0.02}
DAYS = [MONDAY + datetime.timedelta(days=number) for number in range(5)]
TODAY = DAYS[-1]


def test_validation_and_drift_show_the_same_numbers(install):
    home = install(source=USUAL)
    for day in DAYS[:3]:
        home.run(*TO_THE_QUEUE, day=day)
    lost = home.but(source={**USUAL, "comments_per_day": 6})
    with pytest.raises(DayRejectedError, match="volume_collapse"):
        lost.run("ingest", "check_comments", day=DAYS[3])
    storm = {**USUAL, "comments_per_day": 540, "drift_from": TODAY.isoformat()}
    home.but(source=storm).run(*TO_THE_QUEUE, "detect_drift", day=TODAY)

    with open_resources(home.settings) as resources:
        results = [resources.checks.load(suite, TODAY) for suite in ("comments", "scores")]
        page = resources.checks.read_page(TODAY)
        drift = resources.lake.table("drift", TODAY).to_pandas()
        assert resources.lake.days("profiles") == [*DAYS[:3], TODAY]
        brought = resources.model_reference(resources.registry.champion_version())
        stored = read_profiles(resources.lake, [TODAY], held_out=True)[TODAY]
    assert brought is not None
    assert (stored.flagged, stored.scored) == (brought.flagged, brought.scored)
    assert stored.scored > 0
    rules = {rule.name: rule for result in results for rule in result.results}
    drift = drift[drift["reference"] != "fixed"].set_index(["metric", "feature"])
    ends, drift = drift[["low", "high"]], drift["value"]

    same = {
        "volume_shift": ("volume_ratio", "comments"),
        "language_shift": ("jensen_shannon", "language"),
        "quarantined_many": ("quarantined_share", "quarantined"),
        "score_shift": ("psi", "prob"),
        **{f"missing_share_{name}": ("missing_share_change", name) for name in validated()},
    }
    within_noise = {key: low <= 0 <= high for key, low, high in ends.itertuples()}
    assert {name: rules[name].value for name in same} == {
        name: 0 if within_noise[key] else drift[key] for name, key in same.items()
    }
    flagged = drift["flagged_share", "flagged"]
    before = flagged - drift["flagged_share_change", "flagged"]
    shares = f"{percentage(flagged, 1)} flagged, {percentage(before, 1)} on 3 trailing days"
    assert rules["flagged_shift"].observed == shares
    shown = (
        f"{drift['volume_ratio', 'comments']:.2f} times the trailing median",
        f"{drift['jensen_shannon', 'language']:.3f} bits",
        f"PSI {drift['psi', 'prob']:.3f} against 3 trailing days",
        shares,
    )
    for text in shown:
        assert text in page
    assert drift["volume_ratio", "comments"] > 1.3
    assert drift["psi", "prob"] > 0
