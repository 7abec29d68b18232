"""The values of an attribute of a day's scored comments."""

import numpy as np
from lake_days import put_comments, put_scores

from installation import MONDAY
from modwatch.data.lake.day_scores import attribute_codes, day_scores
from modwatch.data.lake.delta import Lake


def test_every_scored_comment_has_the_code_of_its_value(tmp_path):
    """Comments are in another order than scores, and one of them has none."""
    lake = Lake(root=str(tmp_path))
    put_comments(lake, MONDAY, 4, language=["de", "en", None, "de"])
    rows = lake.table("comments", MONDAY)
    lake.replace("comments", MONDAY, rows.take([3, 2, 1, 0]).to_batches())
    put_scores(lake, MONDAY, np.full(3, 0.2, np.float32))
    names = {"": 0}
    codes = attribute_codes(lake, MONDAY, day_scores(lake, MONDAY), "language", names)
    assert [dict(map(reversed, names.items()))[code] for code in codes.tolist()] == ["de", "en", ""]
