"""The examples of docs/extending.md, installed as packages of their own where they are some."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modwatch.models.scoring.opening import open_scorer
from modwatch.monitoring.publishing.keys import threshold_rows
from modwatch.statistics import fully_labelled, measure_days
from modwatch.statistics.collaboration.review_strategies import all_review_scores
from modwatch.statistics.live.figures import FIGURES

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()


SCORE, FIGURE, COLUMN, SOURCE, MODEL = (
    "A review score",
    "A figure from labels",
    "A column of comments",
    "A source of comments",
    "A model",
)


def block(section: str, language: str) -> str:
    """Return the first example of a language in a section."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found
    return found[1]


def run(section: str) -> dict[str, Any]:
    """Return what the Python example of a section defines."""
    found: dict[str, Any] = {}
    exec(block(section, "python"), found)
    return found


@pytest.fixture
def site(tmp_path):
    """The folder of an installation that has nothing but the package with the page's source."""
    return package(tmp_path, "tickets", SOURCE)


def package(tmp_path: Path, name: str, section: str) -> Path:
    """Install the example of a section; return the folder."""
    folder = tmp_path / "site"
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / f"{name}.py").write_text(block(section, "python"))
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = tomllib.loads(block(section, "toml"))["project"]["entry-points"]
    lines = [
        line
        for group, names in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in names.items()))
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    return folder


def modwatch(site: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    env = {name: value for name, value in os.environ.items() if not name.startswith("MODWATCH_")}
    env |= {"PYTHONPATH": str(site), "MODWATCH_HOME": str(site / "home")} | variables
    command = [sys.executable, "-m", "modwatch", *arguments]
    return subprocess.run(command, env=env, cwd=site, capture_output=True, text=True, check=False)


def test_the_source_of_the_page_is_configured_checked_and_read(site):
    named = dict(re.findall(r"(MODWATCH_\w+)=(\S+)", block(SOURCE, "bash")))
    shown = modwatch(site, "settings", **named)
    assert re.search(
        r"MODWATCH_SOURCE__QUEUE +parcels +environment +Name of the queue", shown.stdout
    )
    ingested = modwatch(site, "run", "ingest", "2026-03-01", **named)
    assert (ingested.returncode, ingested.stdout) == (0, "ingest: 3\n")
    without = modwatch(site, "settings", MODWATCH_SOURCE__KIND="tickets")
    assert without.stderr == (
        "modwatch: MODWATCH_SOURCE__KIND=tickets requires MODWATCH_SOURCE__QUEUE; set it "
        "(Name of the queue)\n"
    )


def test_an_entry_point_that_is_no_kind_of_source_is_named(site):
    points = site / "tickets-1.0.dist-info" / "entry_points.txt"
    sql, ours = "modwatch.data.sources.settings:SqlSourceSettings", "tickets:TicketSettings"
    for name, value, problem in (
        ("tickets", "tickets:TicketSource", "kind of source 'tickets', is no class of SourceSett"),
        ("tickets", sql, "the kind of source 'tickets', has no field `kind`"),
        ("sql", ours, f"{sql} and {ours} are both 'sql' of modwatch.sources"),
    ):
        points.write_text(f"[modwatch.sources]\n{name} = {value}\n")
        assert problem in modwatch(site, "up").stderr


def test_the_review_score_of_the_page_orders_and_is_refused_without_its_column(tmp_path):
    site = package(tmp_path, "doubts", SCORE)
    named = dict(re.findall(r"(MODWATCH_\w+)=(\S+)", block(SCORE, "bash")))
    shown = modwatch(site, "settings", **named)
    assert re.search(r"MODWATCH_STRATEGY +doubt +environment", shown.stdout)
    unknown = modwatch(site, "settings", MODWATCH_STRATEGY="doubts")
    assert "MODWATCH_STRATEGY must be one of uncertainty," in unknown.stderr
    program = (
        "from modwatch.statistics import review_scores\n"
        "found = {'columns': {'doubt': [0.1, 0.4, 0.1]}}\n"
        "print(review_scores([0.1, 0.9, 0.4], 'doubt', **found).argsort().tolist())\n"
        "review_scores([0.1], 'doubt')\n"
    )
    command = [sys.executable, "-c", program]
    env = os.environ | {"PYTHONPATH": str(site)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "[0, 2, 1]\n"
    assert "the strategy doubt needs the column doubt" in done.stderr


def test_the_figure_of_the_page_is_estimated_and_watched(monkeypatch):
    mine = run(FIGURE)["ALARMS"]
    monkeypatch.setitem(FIGURES, mine.key, mine)
    rng = np.random.default_rng(0)
    prob = rng.random(500)
    day = fully_labelled(rng.random(500) < prob, prob)
    value = measure_days([day]).set_index("metric")["value"]
    assert value[mine.key] == pytest.approx(1 - value["precision_flagged"])
    assert threshold_rows(f"window_{mine.key}", None, None) == [mine.name]


def test_the_columns_of_the_page_are_read_from_the_setting(tmp_path):
    program = block(COLUMN, "bash") + f"{sys.executable} -m modwatch settings"
    env = os.environ | {"MODWATCH_HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-ec", program], env=env, capture_output=True, text=True, check=True
    )
    assert "channel: text groups_by shown_in_queue" in done.stdout
    assert "karma: integer shown_in_queue erasable hidden_when_blind" in done.stdout


@pytest.mark.services
@pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType")  # of MLflow's own
def test_the_model_of_the_page_returns_the_column_of_the_review_score(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    score = run(SCORE)["DOUBT"]
    scores = {**all_review_scores(), score.name: score}
    monkeypatch.setattr(
        "modwatch.statistics.collaboration.review_strategies.all_review_scores", lambda: scores
    )
    mlflow.pyfunc.save_model(str(tmp_path / "model"), python_model=run(MODEL)["Annotators"]())
    scorer = open_scorer(tmp_path / "model", model_version="1")
    assert scorer.columns == ("prob", "cut", "doubt")
    found = scorer.score(["Thank you.", "a longer comment " * 4])
    assert found.further["doubt"][0] < found.further["doubt"][1]
