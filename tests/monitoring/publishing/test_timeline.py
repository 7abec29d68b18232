from datetime import date, timedelta

import pytest

from modwatch.common.mlflow_client import (
    connect,
    experiment_id,
    log_points,
    midnight_ms,
    points_of,
    runs_tagged,
)
from modwatch.monitoring.publishing.days import Day, KeyFigure
from modwatch.monitoring.publishing.keys import COUNTED
from modwatch.monitoring.publishing.timeline import publish_timeline

FIRST = date(2026, 1, 30)


def rows_of(days, keys=3, shift=0.0):
    """Make rows over a month's end, with values that only a full double holds."""
    return {
        FIRST + timedelta(days=day): {
            COUNTED[key]: (day + 1) / 3 + key + shift for key in range(keys)
        }
        for day in range(days)
    }


@pytest.fixture
def publish(mlflow_url, experiment):
    """Publish rows to this test's experiment."""

    def publish_rows(rows):
        days = [
            Day(
                day=day,
                checks="passed",
                figures={key: KeyFigure(value=value) for key, value in row.items()},
            )
            for day, row in rows.items()
        ]
        return publish_timeline(days, (), {}, tracking_uri=mlflow_url, experiment=experiment)

    return publish_rows


@pytest.fixture
def history(mlflow_url, experiment):
    """Return (run id, every point with its time) of the only timeline that MLflow shows."""

    def read_history():
        with connect(mlflow_url) as client:
            [run] = runs_tagged(client, experiment_id(client, experiment), {"kind": "timeline"})
            points = [
                (point.step, key, point.value, point.timestamp)
                for key in run.data.metrics
                for point in client.get_metric_history(run.info.run_id, key)
            ]
            return run.info.run_id, sorted(points)

    return read_history


def expected(rows):
    first = min(rows)
    return sorted(
        ((day - first).days, key, value, midnight_ms(day))
        for day, row in rows.items()
        for key, value in row.items()
    )


def test_steps_are_days_and_times_are_midnights_and_again_nothing_changes(
    publish, history, mlflow_url
):
    rows = rows_of(4)
    run_id = publish(rows)
    assert history() == (run_id, expected(rows))
    with connect(mlflow_url) as client:
        before = client.get_run(run_id).to_dictionary()
        assert publish(rows) == run_id
        assert client.get_run(run_id).to_dictionary() == before
    assert history() == (run_id, expected(rows))


@pytest.mark.parametrize(
    "rows",
    [
        rows_of(5),
        rows_of(3, keys=4),
        rows_of(3, shift=0.1),
        rows_of(2),
        rows_of(3, keys=2),
        {FIRST - timedelta(days=2): {COUNTED[0]: 1.0}} | rows_of(3),
    ],
    ids=["new day", "new key", "other value", "lost day", "lost key", "earlier day"],
)
def test_a_timeline_that_changed_is_written_anew(publish, history, rows):
    old = publish(rows_of(3))
    new = publish(rows)
    assert new != old
    assert history() == (new, expected(rows))


@pytest.mark.parametrize("finished", [False, True], ids=["half-way", "before the old was deleted"])
def test_a_killed_rebuild_leaves_the_old_and_is_removed(
    publish, history, mlflow_url, experiment, finished
):
    publish(rows_of(2))
    changed = rows_of(2, shift=0.5)
    with connect(mlflow_url) as client:
        where = experiment_id(client, experiment)
        left_over = client.create_run(where, tags={"kind": "timeline"}).info.run_id
        log_points(client, left_over, points_of(changed, first=FIRST), first=FIRST)
        if finished:
            client.set_terminated(left_over)
    run_id = publish(changed)
    assert run_id != left_over
    assert history() == (run_id, expected(changed))


def test_a_superseded_timeline_goes_with_the_next_call(publish, history, mlflow_url, experiment):
    run_id = publish(rows_of(2))
    with connect(mlflow_url) as client:  # killed before it was deleted
        where = experiment_id(client, experiment)
        older = client.create_run(where, tags={"kind": "timeline"}).info.run_id
        client.set_terminated(older)
    assert publish(rows_of(2)) == run_id
    assert history() == (run_id, expected(rows_of(2)))


def test_more_points_than_one_call_takes(publish, history):
    rows = rows_of(101, keys=10)
    run_id = publish(rows)
    assert history() == (run_id, expected(rows))
