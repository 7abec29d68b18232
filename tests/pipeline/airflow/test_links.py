"""The buttons of tasks: where they lead, also without a day, and what Airflow stores of them."""

import datetime
from types import SimpleNamespace

import pytest
from airflow.sdk import DAG, BaseOperatorLink
from airflow.serialization.serialized_objects import DagSerialization

from modwatch.pipeline.airflow import task_of
from modwatch.pipeline.airflow.links import MLFLOW_RUN, REVIEW_QUEUE, VALIDATION_PAGE

AIRFLOW, CONSOLE = "http://airflow:8080", "http://console:8090"
DAY = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)


@pytest.fixture(autouse=True)
def _settings(monkeypatch, tmp_path):
    monkeypatch.setenv("MODWATCH_HOME", str(tmp_path))
    monkeypatch.setenv("MODWATCH_AIRFLOW_URL", f"{AIRFLOW}/")
    monkeypatch.setenv("MODWATCH_CONSOLE_URL", CONSOLE)


def address(link: BaseOperatorLink, **context: object) -> str:
    """Return the address of a button for a task instance with that context."""
    ended = SimpleNamespace(get_template_context=lambda: context)
    return str(link.get_link(SimpleNamespace(), ti_key=ended))


@pytest.mark.parametrize(
    "context",
    [
        {"dag_run": SimpleNamespace(partition_key="2026-01-05")},
        {"dag_run": SimpleNamespace(partition_key=None), "data_interval_start": DAY},
    ],
)
def test_a_button_leads_to_the_page_of_the_day(context):
    assert [address(value, **context) for value in (VALIDATION_PAGE, MLFLOW_RUN, REVIEW_QUEUE)] == [
        f"{AIRFLOW}/modwatch-ops/days/2026-01-05/validation",
        f"{AIRFLOW}/modwatch-ops/days/2026-01-05/mlflow",
        CONSOLE,
    ]


def test_without_a_day_it_leads_to_the_page_of_modwatch():
    run = SimpleNamespace(partition_key="soon")
    assert address(VALIDATION_PAGE, dag_run=run) == f"{AIRFLOW}/modwatch-ops/"


def test_airflow_knows_the_buttons_of_a_task_and_of_no_other():
    def check(_resources: object, _day: datetime.date) -> int:
        return 0

    def count(_resources: object, _day: datetime.date) -> int:
        return 0

    with DAG("two_tasks") as dag:
        task_of(check, links=[VALIDATION_PAGE, REVIEW_QUEUE])()
        task_of(count)()
    stored = [task["__var"] for task in DagSerialization.to_dict(dag)["dag"]["tasks"]]
    links = {task["task_id"]: task.get("_operator_extra_links") for task in stored}
    assert links == {
        "check": {
            "Validation page": "link_validation_page",
            "Review queue": "link_review_queue",
        },
        "count": None,
    }
