"""The demonstration model on a platform's comments: it shows the parts, and says nothing."""

import pytest
from feed import good, write_json

from installation import FROM_THE_QUEUE, MONDAY, TO_THE_QUEUE, TUESDAY
from modwatch.data.lake.day_scores import DEMONSTRATION, model_origin
from modwatch.installation.resources import open_resources
from modwatch.models.reference import INVENTED
from modwatch.monitoring.incidents.metrics import metric_values
from modwatch.monitoring.measurements.references import model_reference
from modwatch.monitoring.publishing.days import read_days
from modwatch.review.queue.metrics import newest_model

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def test_its_figures_raise_no_alert_and_are_named_on_every_page(files, incoming):
    """All of one text, which the model flags: volume and columns are watched all the same."""
    for day in (MONDAY, TUESDAY):
        rows = [good(number, day, text="you stupid idiot") for number in range(300)]
        write_json(incoming / f"{day}.jsonl", rows)
        files.run(*TO_THE_QUEUE, *FROM_THE_QUEUE, day=day)
    with open_resources(files.settings) as resources:
        lake = resources.lake
        assert model_reference(lake, MONDAY) is None
        assert model_origin(lake, TUESDAY) == DEMONSTRATION
        values = metric_values(lake, resources.checks, MONDAY, TUESDAY)
        days = read_days(lake)
        assert newest_model(resources.database) == f"1 ({DEMONSTRATION})"
    watched = {(value.metric, value.feature) for value in values}
    assert {"volume_ratio", "checks_warned", "missing_share_change"} <= {m for m, _ in watched}
    assert not {f for _, f in watched} & {"prob", "uncertainty", "flagged"}
    assert not [m for m, _ in watched if "accuracy" in m]
    assert not {f for _, f in watched} & {"unscored", "cut_comments"}
    assert [(day.status, day.model) for day in days] == [
        (DEMONSTRATION, f"1 ({DEMONSTRATION})")
    ] * 2


def test_of_made_up_comments_it_counts(files, incoming):
    write_json(incoming / f"{MONDAY}.jsonl", map(good, range(300)))
    path = str(incoming / "{dt}.jsonl")
    made_up = files.but(source={"kind": "files", "path": path, "made_up": True})
    made_up.run(*TO_THE_QUEUE)
    with open_resources(made_up.settings) as resources:
        assert model_origin(resources.lake, MONDAY) == INVENTED
