"""Airflow finds the plugin by its entry point, and the DAGs by their folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from modwatch.common.installed import dags_folder

pytestmark = pytest.mark.usefixtures("services")

PROBE = """
import json
from airflow import plugins_manager
from airflow.serialization.decoders import decode_timetable
from airflow.serialization.encoders import encode_timetable
from airflow.timetables.base import DataInterval
from airflow.utils.types import DagRunType
from modwatch.pipeline.airflow import daily_schedule
from pendulum import datetime
# As the scheduler does: it has the timetable from Airflow's database.
stored = json.loads(json.dumps(encode_timetable(daily_schedule("@daily")["schedule"])))
day = DataInterval(start=datetime(2026, 1, 5), end=datetime(2026, 1, 6))
timetable = decode_timetable(stored)
runs = [timetable.generate_run_id(run_type=kind, run_after=day.end, data_interval=day)
        for kind in (DagRunType.SCHEDULED, DagRunType.MANUAL)]
plugins, problems = plugins_manager._get_plugins()
ours = [plugin for plugin in plugins if plugin.name == "modwatch"]
print(json.dumps({
    "plugins": len(ours),
    "runs": runs,
    "problems": problems,
    "routes": [app["url_prefix"] for plugin in ours for app in plugin.fastapi_apps],
    "views": [view["name"] for plugin in ours for view in plugin.external_views],
}))
"""


def test_the_plugin_is_found_without_a_plugins_folder(tmp_path):
    env = {name: value for name, value in os.environ.items() if "PLUGINS_FOLDER" not in name}
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        capture_output=True,
        text=True,
        env={**env, "AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__UNIT_TEST_MODE": "True"},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "plugins": 1,
        "runs": ["scheduled__2026-01-05", "manual__2026-01-06T00:00:00+00:00"],
        "problems": {},
        "routes": ["/modwatch", "/modwatch-ops"],
        "views": ["Modwatch", "Review", "MLflow"],
    }, "the plugin is an entry point of the installed package: install Modwatch again"


def test_the_folder_of_the_dags_is_that_of_the_repository():
    assert dags_folder() == Path(__file__).resolve().parents[2] / "dags"
