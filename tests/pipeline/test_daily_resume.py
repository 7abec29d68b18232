"""A scoring task that is killed in the middle of its shard goes on where it was."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from installation import MONDAY, Installation, table_rows
from modwatch.common.errors import DayRejectedError
from modwatch.data.lake.schemas import COMMENTS
from modwatch.installation.resources import Resources, open_resources
from modwatch.models.scoring import shards
from modwatch.models.scoring.scorer import Predictions, Scorer
from modwatch.pipeline import daily

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

PIECE = 20
_LIMIT_SECONDS = 120

#: The task, in small pieces that take a while each.
TASK = f"""
import datetime, json, sys, time
from modwatch.pipeline import daily
from modwatch.installation.resources import open_resources
from modwatch.models.scoring import shards
shards._PIECE_ROWS, staged = {PIECE}, shards.staged
def slowly(*rows, **numbers):
    time.sleep(0.3)
    return staged(*rows, **numbers)
shards.staged = slowly
with open_resources() as at:
    daily.score_shard(at, datetime.date.fromisoformat(sys.argv[1]), **json.loads(sys.argv[2]))
"""


class Counting:
    """A scorer that keeps what it was asked."""

    def __init__(self, scorer: Scorer, asked: list[str]) -> None:
        self._scorer, self._asked = scorer, asked
        self.model_version, self.threshold = scorer.model_version, scorer.threshold
        self.columns = scorer.columns

    def score(self, texts: Sequence[str]) -> Predictions:
        self._asked += texts
        return self._scorer.score(texts)


def pieces(resources: Resources) -> dict[int, int]:
    """Return the number of comments of each stored piece of the first shard."""
    stored = resources.lake.table("staged_scores", MONDAY, columns=["piece"], shard=0).to_pandas()
    return stored["piece"].value_counts().to_dict()


def killed_halfway(home: Installation, part: daily.Shard) -> dict[int, int]:
    """Kill the task for good once it has stored two pieces; return those that it stored."""
    command = [sys.executable, "-c", TASK, MONDAY.isoformat(), json.dumps(part)]
    process = subprocess.Popen(command, env={**os.environ, **home.env})
    deadline = time.monotonic() + _LIMIT_SECONDS
    try:
        with open_resources(home.settings) as resources:
            while len(pieces(resources)) < 2:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.kill()
            assert process.wait() == -signal.SIGKILL
            return pieces(resources)
    finally:
        process.kill()


def test_a_killed_shard_goes_on_after_its_last_piece(install, monkeypatch):
    home = install(shard_tokens=10**6)
    home.run("ingest", "check_comments")
    with open_resources(home.settings) as resources:
        [part] = daily.plan_shards(resources, MONDAY)
        total = resources.lake.count("comments", MONDAY)
    before = killed_halfway(home, part)
    assert 2 <= len(before) < total // PIECE

    monkeypatch.setattr(shards, "_PIECE_ROWS", PIECE)
    asked: list[str] = []
    real = Resources.scorer
    monkeypatch.setattr(Resources, "scorer", lambda *which: Counting(real(*which), asked))
    with open_resources(home.settings) as resources:
        assert daily.score_shard(resources, MONDAY, **part) == total
        assert {
            piece: size for piece, size in pieces(resources).items() if piece in before
        } == before
        texts = resources.lake.table("comments", MONDAY, columns=["row", "text"]).to_pandas()
        number = (texts["row"] - part["first"]) // PIECE
        assert sorted(asked) == sorted(set(texts["text"][~number.isin(list(before))]))
        interrupted = table_rows(resources.lake, "staged_scores")
    # All in one go: the same scores.
    with open_resources(home.settings) as resources:
        assert daily.score(resources, MONDAY) == total
        assert interrupted == table_rows(resources.lake, "staged_scores")


def test_a_finished_shard_is_not_scored_again(install, monkeypatch):
    home = install()
    home.run("ingest", "check_comments", "score")

    def fails(*_: Any) -> Scorer:
        raise AssertionError

    monkeypatch.setattr(Resources, "scorer", fails)
    texts_of = {"columns": ["row", "text"]}
    with open_resources(home.settings) as resources:
        [first, *_] = shards.shards(
            resources.lake.read("comments", MONDAY, **texts_of),
            shard_tokens=home.settings.shard_tokens,
        )
        part: daily.Shard = {
            "model_version": "1",
            "shard": 0,
            "first": first.start,
            "end": first.stop,
        }
        assert daily.score_shard(resources, MONDAY, **part) == resources.lake.count(
            "staged_scores", MONDAY, shard=0
        )
        # Another version's scores are no part of this plan.
        with pytest.raises(AssertionError):
            daily.score_shard(resources, MONDAY, **{**part, "model_version": "2"})


def test_a_piece_of_another_plan_is_scored_again(install):
    """An attempt of an earlier plan stores its piece after the day was planned again."""
    home = install(shard_tokens=10**6)
    home.run("ingest", "check_comments")
    with open_resources(home.settings) as resources:
        [part] = daily.plan_shards(resources, MONDAY)
        total = resources.lake.count("comments", MONDAY)
        # So few comments are missing that the validation of the day would tolerate it.
        assert daily.score_shard(resources, MONDAY, **{**part, "end": part["end"] - 3}) < total
        assert daily.score_shard(resources, MONDAY, **part) == total
        ids = (
            resources.lake.table("staged_scores", MONDAY, columns=["comment_id"])
            .column(0)
            .to_pylist()
        )
        assert len(set(ids)) == total


@pytest.mark.parametrize("own", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_scores_of_what_was_read_before_are_never_published(install, own):
    """An attempt scores what it read, while the day is read anew with the same ids."""
    home = install(shard_tokens=10**6)
    home.run("ingest", "check_comments")
    with open_resources(home.settings) as resources:
        change(resources, own, 0.5)
        [part] = daily.plan_shards(resources, MONDAY)
        daily.score_shard(resources, MONDAY, **part)
        before = change(resources, own, 0.25)
        with pytest.raises(DayRejectedError, match="stale_scores"):
            daily.check_scores(resources, MONDAY)
        assert daily.score_shard(resources, MONDAY, **part) == before
        assert daily.check_scores(resources, MONDAY) == before


def change(resources: Resources, own: bool, to: float) -> int:
    """Change each comment of the day, or the score that came with it; return how many there are."""
    day = resources.lake.table("comments", MONDAY)
    changed: dict[str, list[Any]] = {"text": [f"{row} {to}" for row in day["text"].to_pylist()]}
    if own:
        changed = {"prob": [to], "model_version": ["own"], "flagged": [to > 0.3]}
        changed = {name: value * day.num_rows for name, value in changed.items()}
    for name, values in changed.items():
        field = COMMENTS.field(name)
        day = day.set_column(COMMENTS.get_field_index(name), field, pa.array(values, field.type))
    return resources.lake.replace("comments", MONDAY, day.to_batches())
