"""Any task killed at any point and run again leaves the same tables as an undisturbed run.

Tuesday has been scored before, from other comments under the same ids; now its steps run again,
one after the other, and each of them is killed for good (SIGKILL, a real process) at one moment
after another: before its first trace in a file or a database, and before later and later ones.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from databases import empty, owner_url
from killing import new_file, run
from sqlalchemy import URL, make_url, text

from installation import (
    MONDAY,
    TO_THE_QUEUE,
    TUESDAY,
    Installation,
    assert_same,
    copy_home,
    picture_of,
    published,
    review,
)
from modwatch.installation.resources import open_resources
from modwatch.models.scoring.shards import shards
from modwatch.pipeline import daily
from modwatch.review.database import connect

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


DAY = TUESDAY.isoformat()

#: Kills before the first trace, and late among all that the step leaves.
EARLY_AND_LATE = (0, 0.95)

#: The steps of a day, in order; `score_shard` is one mapped task. Those of alerts write next to
#: nothing on a quiet day: `tests/monitoring/incidents/test_evaluation.py` kills them with alerts.
STEPS = (
    "ingest",
    "check_comments",
    "score",
    "score_shard",
    "check_scores",
    "route",
    "collect_labels",
    "follow_up",
    "measure",
    "detect_drift",
    "publish",
)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step, the installation before it, and what it keeps after it when nothing disturbs."""

    name: str
    before: Installation
    after: Mapping[str, list[str]]

    @property
    def arguments(self) -> list[str]:
        """What the command line is told."""
        if self.name == "score_shard":
            return [self.name, DAY, json.dumps(shard(self.before))]
        return ["run", self.name, DAY]


def shard(home: Installation) -> daily.Shard:
    """Return the arguments of the task that scores the second shard of Tuesday."""
    with open_resources(home.settings) as resources:
        texts = resources.lake.read("comments", TUESDAY, columns=["row", "text"])
        rows = shards(texts, shard_tokens=home.settings.shard_tokens)[1]
    return {"model_version": "1", "shard": 1, "first": rows.start, "end": rows.stop}


def run_step(name: str, home: Installation) -> None:
    if name == "score_shard":
        with open_resources(home.settings) as resources:
            daily.score_shard(resources, TUESDAY, **shard(home))
    else:
        home.run(name, day=TUESDAY)


def world(name: str, home: Installation) -> dict[str, list[str]]:
    """Return all that the step could have touched: only `route` knows the queue, and so on."""
    kept = picture_of(home)
    if name != "route":
        del kept["queue"]
    if name == "publish":
        kept["mlflow"] = published(home.settings.mlflow_url)
    return kept


def copied(name: str, home: Installation, folder: Path) -> Installation:
    """Return a copy of all that the step writes."""
    copy = home.but(home=copy_home(home.home, folder / "home"))
    if name == "route":
        copy = copy.but(database_url=_copied_database(home.values["database_url"], folder.name))
    if name == "publish":
        copy = copy.but(mlflow_url=_copied_store(home.values["mlflow_url"], folder / "mlflow.db"))
    return copy


def _copied_store(url: str, path: Path) -> str:
    source = url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(path)) as new:
        old.backup(new)
    return f"sqlite:///{path}"


def _copied_database(url: str, name: str) -> str:
    address = make_url(url)
    engine = connect(owner_url(_url(address.set(database="postgres"))), pool_size=1)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f'CREATE DATABASE "{name}" TEMPLATE "{address.database}"'))
    engine.dispose()
    return _url(address.set(database=name))


def _url(address: URL) -> str:
    return address.render_as_string(hide_password=False)


class Steps(dict[str, Step]):
    """The steps of Tuesday, each with the worlds before and after it, made when it is asked for."""

    def __init__(self, home: Installation, folder: Path) -> None:
        super().__init__()
        self._home, self._folder, self._left = home, folder, list(STEPS)

    def __missing__(self, wanted: str) -> Step:
        while wanted not in self:
            name = self._left.pop(0)
            self[name] = self._made(name)
        return self[wanted]

    def _made(self, name: str) -> Step:
        home = self._home
        if name == "collect_labels":
            review(home)
        if name == "score_shard":  # it does nothing where its scores are stored
            with open_resources(home.settings) as resources:
                resources.lake.replace("staged_scores", TUESDAY, [], shard=1)
        before = copied(name, home, self._folder / f"before-{name}")
        run_step(name, home)
        return Step(name=name, before=before, after=world(name, home))


def test_routing_is_killed_and_run_again(install_scored, queue_owner):
    """One step stands for all in `make test`: it writes to the lake and to the database."""
    arguments, undisturbed = ["run", "route", MONDAY.isoformat()], install_scored("undisturbed")
    traces = run(arguments, undisturbed.env).traces
    after = picture_of(undisturbed)
    empty(queue_owner)
    home = install_scored("killed")
    assert run(arguments, home.env, dies_at=max(1, round(traces / 2))).killed
    home.run("route")
    assert_same(after, picture_of(home))


@pytest.fixture(scope="module")
def steps(make_installation, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    home = make_installation(folder, window_days=3)
    other = home.but(source={**home.values["source"], "seed": 8})
    home.run(*TO_THE_QUEUE, day=MONDAY)
    other.run(*TO_THE_QUEUE, day=TUESDAY)
    review(home, limit=40)  # all of Monday's comments, some of Tuesday's
    home.run("collect_labels", "measure", "publish", day=TUESDAY)
    return Steps(home, folder)


def killed_at(trace: int, step: Step, folder: Path) -> None:
    """Kill the step at a trace and run it again; its tables are those of an undisturbed run."""
    home = copied(step.name, step.before, folder / f"{step.name}-{trace}")
    assert run(step.arguments, home.env, dies_at=trace).killed
    run_step(step.name, home)
    assert_same(step.after, world(step.name, home))


@pytest.mark.soak
@pytest.mark.parametrize("name", STEPS)
def test_killed_and_run_again(name, steps, tmp_path):
    step = steps[name]
    home = copied(name, step.before, tmp_path / f"{name}-whole")
    whole = run(step.arguments, home.env)
    assert whole.status == 0
    assert_same(step.after, world(name, home))
    killed_at(max(1, round(whole.traces / 2)), step, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("name", STEPS)
def test_killed_within_a_write_of_delta(name, steps, tmp_path):
    step = steps[name]
    home = copied(name, step.before, tmp_path / f"{name}-file")
    run(step.arguments, home.env, until=new_file(home.home.parent))
    run_step(name, home)
    assert_same(step.after, world(name, home))


@pytest.mark.soak
@pytest.mark.parametrize("name", STEPS)
def test_killed_early_and_late(name, steps, tmp_path):
    step = steps[name]
    home = copied(name, step.before, tmp_path / f"{name}-sweep")
    traces = run(step.arguments, home.env).traces
    for share in EARLY_AND_LATE:
        killed_at(max(1, round(share * traces)), step, tmp_path)
