"""What a day's measuring plans and finds, on a whole installation."""

import pandas as pd
import pytest

from installation import FROM_THE_QUEUE, MONDAY, TO_THE_QUEUE, review
from modwatch.stops.measuring import slice_plan
from modwatch.wiring import open_wiring

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def test_the_slice_is_planned_from_the_labels_of_the_window(install):
    home = install()
    home.run(*TO_THE_QUEUE)
    with open_wiring(home.settings) as at:
        assert slice_plan(at, MONDAY).empty  # nothing was measured yet
    review(home)
    home.run(*FROM_THE_QUEUE[:2])
    with open_wiring(home.settings) as at:
        plan = slice_plan(at, MONDAY, widths=[0.9, 0.001])
        design = at.lake.table("routing_design", MONDAY).to_pandas()
    accuracy = plan[plan["metric"] == "accuracy"].set_index("width")
    assert accuracy.loc[0.9, "labels_now"] == design.loc[design["stratum"] > 0, "sample"].sum()
    assert accuracy.loc[0.9, "labels"] <= accuracy.loc[0.9, "labels_now"]
    assert pd.isna(accuracy.loc[0.001, "labels"])  # not even sixteen times as many would do
