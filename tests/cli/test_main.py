"""The command line: it parses, calls, and turns an error into one sentence and a status."""

import datetime
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from installation import (
    FROM_THE_QUEUE,
    MONDAY,
    TO_THE_QUEUE,
    Installation,
    assert_same,
    picture_of,
    review,
)
from modwatch.cli.daily import plan_table
from modwatch.cli.main import main
from modwatch.common.errors import SettingsError
from modwatch.installation.resources import open_resources
from modwatch.pipeline import daily
from modwatch.review.people.sessions import authenticate
from modwatch.routing.design import RoutingPolicy
from modwatch.routing.label_plan import plan_labels

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

Install = Callable[..., Installation]
DAY = MONDAY.isoformat()
STEPS = tuple(step.__name__ for step in daily.STEPS)


@pytest.fixture(autouse=True)
def _loggers():
    """Take back the handler that a command sets up: its stream ends with the test."""
    before = list(logging.root.handlers)
    yield
    logging.root.handlers[:] = before


@pytest.fixture
def home(install, monkeypatch):
    """An installation that the process finds in its environment."""
    made = install()
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def queued(install_scored, monkeypatch):
    """The same, with a day in the queue."""
    made = install_scored()
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    made.run("route", "score_challenger")
    return made


def test_the_steps_are_those_of_a_day_in_order():
    assert (*TO_THE_QUEUE, *FROM_THE_QUEUE) == STEPS


def test_a_day_by_command_is_the_day_by_call(home, install, capsys):
    assert main(["run", "day", DAY]) == 0
    printed = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    commanded = picture_of(home)
    called = install("called", mlflow_url=home.values["mlflow_url"])
    counts = called.run(*TO_THE_QUEUE)
    assert printed == dict(zip(TO_THE_QUEUE, map(str, counts), strict=True))
    # Both queue the same day in one database: the second time nothing changes there.
    assert_same(commanded, picture_of(called))


def test_every_step_can_be_run_alone(home, capsys):
    for step in STEPS:
        assert main(["run", step, DAY]) == 0
        assert capsys.readouterr().out.startswith(f"{step}: ")


@pytest.mark.parametrize("step", ["day", "ingest", "measure"])
def test_days_that_cannot_be_are_refused(step, home, monkeypatch, capsys):
    monkeypatch.setenv("MODWATCH_FIRST_DAY", DAY)
    assert main(["run", step, "2026-01-04"]) == 1
    assert main(["run", step, "9999-12-31"]) == 1
    early, late = capsys.readouterr().err.splitlines()
    assert "2026-01-04 is before 2026-01-05, the first day" in early
    assert "9999-12-31 has not begun" in late
    settings = home.settings.model_copy(update={"first_day": MONDAY})
    with (
        open_resources(settings) as resources,
        pytest.raises(SettingsError, match="is before 2026-01-05"),
    ):
        daily.ingest(resources, MONDAY - datetime.timedelta(days=1))


def planned(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows that `modwatch plan` prints, by metric and width; empty cells are missing."""
    assert main(["plan", DAY, *arguments]) == 0
    heads, *lines = capsys.readouterr().out.splitlines()
    ends = [0, *(match.end() for match in re.finditer(r"\S+", heads))]
    rows = [
        {heads[start:end].strip(): line[start:end].strip() for start, end in pairwise(ends)}
        for line in lines
    ]
    return {(row["metric"], row["width"]): row for row in rows}


@pytest.mark.soak  # tests/routing/test_label_plan.py has the plan, the next test its table
def test_labels_are_planned_for_widths_and_for_a_budget(queued, capsys):
    assert main(["plan", DAY]) == 0
    assert "wait for labels" in capsys.readouterr().out
    review(queued)
    queued.run("collect_labels", "measure")

    rows = planned(capsys, "--width", "0.9", "--width", "0.001")
    assert {width for _, width in rows} == {"0.900", "0.001"}
    enough, never = rows["accuracy", "0.900"], rows["accuracy", "0.001"]
    assert int(enough["total"]) == int(enough["labels"]) + int(enough["confirmations"]) > 0
    assert 0 < float(enough["slice_share"]) < 1
    assert [never[name] for name in ("labels", "confirmations", "total")] == ["too many"] * 3
    assert (never["slice_share"], never["confirmation_share"]) == ("", "")

    rows = planned(capsys, "--budget", "60", "--error-rates", "0.02", "0.2")
    split = next(row for (metric, _), row in rows.items() if metric == "accuracy")
    assert 50 <= int(split["total"]) <= 61
    assert float(split["width"]) < float(split["width_now"])


def test_where_no_split_is_possible_the_plan_has_no_figures():
    plan = plan_labels([], RoutingPolicy(review_fraction=0.1), budget=1)
    plan.loc[0, ["metric", "width_now", "labels_now"]] = ["accuracy", 0.5, 8]
    row = plan_table(plan, lacking="too few").splitlines()[1]
    assert row.split() == ["accuracy", "0.500", "8", *["too", "few"] * 3]


@pytest.mark.parametrize(
    ("variable", "value", "step"),
    [
        ("MODWATCH_REVIEW_FRACTION", "0", "route"),
        ("MODWATCH_REVIEW_FRACTION", "1.01", "route"),
        ("MODWATCH_STRATEGY", "guessing", "route"),
        ("MODWATCH_MLFLOW_URL", "http://127.0.0.1:9", "publish"),
        ("MODWATCH_DATABASE_URL", "postgresql://mod:hunter2@127.0.0.1:9/x", "route"),
    ],
)
def test_an_error_is_one_sentence_and_a_status(home, monkeypatch, capsys, variable, value, step):
    monkeypatch.setenv(variable, value)
    assert main(["run", step, DAY]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("modwatch: ")
    assert err.count("\n") == 1
    assert variable in err
    assert "hunter2" not in err


def test_the_process_itself_ends_with_the_status(home):
    done = subprocess.run(
        [sys.executable, "-m", "modwatch", "run", "ingest", DAY],
        env={**home.env, "PYTHONPATH": ":".join(sys.path), "MODWATCH_REVIEW_FRACTION": "2"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("modwatch: MODWATCH_REVIEW_FRACTION")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["run"], ["run", "nothing", DAY], ["run", "ingest", "today"], ["paint"]]
)
def test_what_cannot_be_parsed_shows_the_usage(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "Usage: modwatch" in capsys.readouterr().err


def test_a_token_opens_the_console(home, capsys):
    assert main(["token", "ann", "--role", "lead"]) == 0
    token = capsys.readouterr().out.strip()
    with open_resources(home.settings) as resources:
        person = authenticate(resources.database, token)
    assert (person.pseudonym, person.role) == ("ann", "lead")
    assert main(["token", "ann", "--role", "admin"]) == 1
    assert "is a lead" in capsys.readouterr().err


def test_the_log_is_verified_and_exported(queued, capfdbinary, tmp_path):
    done = review(queued, limit=3)
    witness = ["--witness", str(tmp_path / "witness")]
    assert main(["queue", "verify-log", *witness]) == 0
    printed = capfdbinary.readouterr().out
    assert printed.startswith(f"{done} decisions, head ".encode())
    assert main(["queue", "export", "--format", "jsonl", "--notes"]) == 0
    exported = tmp_path / "log.jsonl"
    exported.write_bytes(capfdbinary.readouterr().out)
    assert main(["queue", "verify-log", "--export", str(exported), *witness]) == 0
    assert capfdbinary.readouterr().out == printed
    whole, kept = exported.read_bytes(), Path(witness[1]).read_bytes()
    exported.write_bytes(whole.replace(b'"seconds": 3', b'"seconds": 4', 1))
    assert main(["queue", "verify-log", "--export", str(exported)]) == 1
    assert b"was changed" in capfdbinary.readouterr().out
    exported.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    for _ in range(2):  # the witness of a cut log would hide it from then on
        assert main(["queue", "verify-log", "--export", str(exported), *witness]) == 1
    assert Path(witness[1]).read_bytes() == kept


def test_tasks_go_to_another_tool_and_come_back(queued, capfdbinary, tmp_path):
    assert main(["queue", "export", "--format", "label-studio"]) == 0
    tasks = tmp_path / "tasks.json"
    tasks.write_bytes(capfdbinary.readouterr().out)
    assert main(["queue", "import-label-studio", str(tasks)]) == 0
    n = len(json.loads(tasks.read_bytes()))
    printed = capfdbinary.readouterr().out.decode()
    assert printed.startswith(f"{n} tasks: {n} used, 0 merged, 0 refused\n{n} new items")
    broken = [{"data": {"text": "\u200b", "dt": "2026-01-06"}}] * 25
    tasks.write_text(json.dumps([*broken, {"data": {"text": "a kettle", "dt": "2026-01-06"}}]))
    assert main(["queue", "import-label-studio", str(tasks)]) == 1
    printed, refused = (part.decode() for part in capfdbinary.readouterr())
    assert printed.startswith("26 tasks: 1 used, 0 merged, 25 refused\n1 new items")
    first = ", ".join(map(str, range(1, 21)))
    assert refused.startswith("25 refused: blank_text, the text is missing or has no visible")
    assert refused.endswith(f": task {first}, …\n")
    with pytest.raises(SystemExit, match="2"):
        main(["queue", "import-label-studio", str(tmp_path / "none.json")])


def test_migrating_twice_is_harmless(home, capsys):
    assert main(["migrate"]) == main(["migrate"]) == 0
    assert capsys.readouterr().out.count("up to date") == 2


def test_a_demo_without_its_data_says_what_to_set(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MODWATCH_DATA", str(tmp_path))
    assert main(["demo", "--data", "wikipedia_talk", "--once"]) == 1
    assert "set MODWATCH_DATA" in capsys.readouterr().err
    assert main(["demo", "--data", "weather"]) == 1
    assert "synthetic, wikipedia_talk or civil_comments" in capsys.readouterr().err
