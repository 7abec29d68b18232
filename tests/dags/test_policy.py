"""What holds for every DAG, and how to mend a breach."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DAG_FILES = sorted((ROOT / "dags").glob("[!_]*.py"))
HEAVY = {"torch", "transformers", "mlflow", "great_expectations"}

#: Parses each file in a process of its own, forked where Airflow has been imported.
PROBE = """
import importlib.util, json, os, sys, time
import airflow.sdk, modwatch.settings  # what every DAG file may rely on
from airflow.sdk.definitions._internal.contextmanager import DagContext
def parse(path):
    started = time.process_time()  # other programs do not count
    spec = importlib.util.spec_from_file_location("dag_file", path)
    module = importlib.util.module_from_spec(spec)
    DagContext.current_autoregister_module_name = "dag_file"
    sys.modules["dag_file"] = module
    spec.loader.exec_module(module)
    dags = [dag for dag, _ in DagContext.autoregistered_dags]
    print(json.dumps({
        "seconds": time.process_time() - started,
        "modules": sorted({name.split(".")[0] for name in sys.modules}),
        "dags": [{
            "dag_id": dag.dag_id, "doc": dag.doc_md or "", "catchup": dag.catchup,
            "schedule": getattr(dag.schedule, "summary", None),
            "tasks": [{
                "id": task.task_id, "retries": task.retries,
                "timeout": task.execution_timeout is not None,
                "policy": task.retry_policy is not None,
                "next": sorted(task.downstream_task_ids), "rule": task.trigger_rule.value,
                "alarms": [type(call).__name__ for call in task.on_failure_callback],
            } for task in dag.tasks],
        } for dag in dags],
    }), flush=True)
for path in sys.argv[1:]:
    child = os.fork()
    if not child:
        parse(path)
        sys.exit()
    if os.waitpid(child, 0)[1]:
        sys.exit("cannot be parsed: " + path)
"""


#: When the DAGs run (UTC), as docs/ops.md says.
SCHEDULES = {
    "score_comments": "0 0 * * *",
    "monitor_collaboration": None,  # follows score_comments
    "monitor_disagreement": "0 7 * * 1",
    "audit_recall": "0 7 1 * *",
    "enforce_retention": "0 4 * * *",
    "train_model": None,
}


@pytest.fixture(scope="module")
def facts_of(tmp_path_factory, services):
    """What each file defines."""
    env = {**os.environ, "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow"))}
    env["AIRFLOW__CORE__UNIT_TEST_MODE"] = "True"
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *map(str, DAG_FILES)],
        capture_output=True,
        text=True,
        env=env,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return dict(zip(DAG_FILES, found, strict=True))


@pytest.fixture(params=DAG_FILES, ids=lambda path: path.stem)
def parsed(request, facts_of):
    return request.param, facts_of[request.param]


def test_parsing_is_light_and_quick(parsed):
    path, facts = parsed
    heavy = HEAVY & set(facts["modules"])
    assert not heavy, (
        f"{path.name} imports {heavy} at the top; import them inside pipeline functions"
    )
    assert facts["seconds"] < 1, f"{path.name} takes {facts['seconds']:.1f} s to parse"


def test_the_runbook_ends_in_triage(parsed):
    path, facts = parsed
    for dag in facts["dags"]:
        assert "## Triage" in dag["doc"], f"{path.name}: end the docstring in a Triage section"
        for task in dag["tasks"]:
            assert f"`{task['id']}`" in dag["doc"], f"{path.name}: the runbook omits {task['id']}"


def test_every_task_has_the_defaults(parsed):
    path, facts = parsed
    assert [dag["dag_id"] for dag in facts["dags"]] == [path.stem], "name the DAG as its file"
    for dag in facts["dags"]:
        assert dag["catchup"] is False, f"{path.name}: leave catchup to the timetables"
        for task in dag["tasks"]:
            assert task["retries"] == 6, f"{task['id']}: leave retries to TASK_DEFAULTS"
            assert task["timeout"], f"{task['id']}: leave execution_timeout to TASK_DEFAULTS"
            assert task["policy"], f"{task['id']}: leave retry_policy to TASK_DEFAULTS"
            alarms = "leave on_failure_callback to TASK_DEFAULTS, so that someone is told"
            assert task["alarms"] == ["TaskFailureNotifier"], f"{task['id']}: {alarms}"


def test_it_runs_when_the_operations_page_says(parsed):
    path, facts = parsed
    [dag] = facts["dags"]
    assert dag["schedule"] == SCHEDULES[path.stem], "change docs/ops.md and SCHEDULES with it"


def test_alerts_are_delivered_after_they_are_raised(parsed):
    path, facts = parsed
    for dag in facts["dags"]:
        follows = {task["id"]: task["next"] for task in dag["tasks"]}
        if "raise_alerts" in follows:
            assert "deliver_alerts" in follows["raise_alerts"], path.name
            assert any("raise_alerts" in later for later in follows.values()), path.name


def test_nothing_but_its_own_alerts_waits_for_the_verification_of_the_log(parsed):
    path, facts = parsed
    for dag in facts["dags"]:
        follows = {task["id"]: task["next"] for task in dag["tasks"]}
        if "verify_log" in follows:
            assert follows["verify_log"] == ["raise_log_alerts"], path.name
            assert follows["raise_log_alerts"] == ["deliver_log_alerts"], path.name
            [rule] = [task["rule"] for task in dag["tasks"] if task["id"] == "raise_log_alerts"]
            assert rule == "all_done", "the alerts follow also when the verification failed"
