import datetime as dt

from modwatch.data.sources.community import Community
from modwatch.data.sources.community.defects import defective_batch

DAY = dt.date(2024, 3, 1)


def test_each_defect_in_turn():
    clean = next(Community(seed=1, comments_per_day=50).read(DAY)).slice(0, 8)
    defects = defective_batch(DAY, 50, clean).to_pylist()
    whole = clean.to_pylist()
    assert [row["row"] for row in defects] == list(range(50, 58))
    twice, empty, outside, greeting = defects[:4]
    assert {**twice, "row": 0} == whole[0]
    assert empty["text"] == ""
    assert outside["created_at"].date() == DAY + dt.timedelta(days=1)
    assert (greeting["language"], greeting["label"], greeting["groups"]) == ("he", 0, [])
    assert len({row["comment_id"] for row in (*defects, *whole)}) == 14
