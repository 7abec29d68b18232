"""How long a day takes from trigger to queue in real Airflow, against the same in one process.

Prints, for one day of the synthetic community: the time from trigger to queue, the time inside
`score_shard` tasks, the rest (the scheduler's and the other stops' share), and the ratio to the
baseline: `modwatch run day` for a day of the same size, in the same run of this program.

    python benchmarks/scheduler_overhead.py
"""

import dataclasses
import datetime
import subprocess
import sys
import time

from modwatch.installation.stack.airflow import AirflowClient
from modwatch.installation.stack.installation import narrator
from modwatch_lab.demo.datasets import demo_data
from modwatch_lab.demo.run import train_champion
from modwatch_lab.demo.setup import started


def main() -> None:
    data = dataclasses.replace(demo_data("synthetic"), days=2)
    with started(data, narrator()) as demo:
        train_champion(demo)
        demo.stack.wait_ready()
        baseline = _in_one_process(data.last_day)
        client = AirflowClient(demo.airflow)
        try:
            _report(baseline, *_in_airflow(client, data.first_day))
        finally:
            client.close()


def _in_one_process(day: datetime.date) -> float:
    """Return the seconds that the stops up to the queue take in a process of their own."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "modwatch", "run", "day", day.isoformat()]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def _in_airflow(client: AirflowClient, day: datetime.date) -> tuple[float, float, dict[str, float]]:
    """Return the seconds from trigger to queue, those spent scoring, and those of each task."""
    client.wait_for_dags({"score_comments"})
    client.unpause("score_comments")
    triggered = datetime.datetime.now(datetime.UTC)
    client.backfill("score_comments", day, day)
    (run,) = client.wait("score_comments", 1, timeout=300)
    spans = {
        f"{task['task_id']}[{task['map_index']}]": (
            datetime.datetime.fromisoformat(task["start_date"]),
            datetime.datetime.fromisoformat(task["end_date"]),
        )
        for task in client.tasks("score_comments", run.run_id)
        if task["start_date"] and task["end_date"]
    }
    scoring = [span for name, span in spans.items() if name.startswith("score_shard")]
    total = (max(end for _, end in spans.values()) - triggered).total_seconds()
    scored = (max(end for _, end in scoring) - min(begin for begin, _ in scoring)).total_seconds()
    tasks = {name: (end - begin).total_seconds() for name, (begin, end) in spans.items()}
    return total, scored, tasks


def _report(baseline: float, total: float, scored: float, tasks: dict[str, float]) -> None:
    inside = sum(seconds for name, seconds in tasks.items() if not name.startswith("score_shard"))
    print(f"trigger to queue                     {total:6.1f} s")
    print(f"  of it scoring (first to last shard){scored:6.1f} s")
    print(f"  overhead: all the rest             {total - scored:6.1f} s")
    print(f"    inside the other tasks           {inside:6.1f} s")
    print(f"    between tasks (the scheduler)    {total - scored - inside:6.1f} s")
    print(f"baseline, the same stops in a process{baseline:6.1f} s")
    print(f"ratio to the baseline                {total / baseline:6.2f}")


if __name__ == "__main__":
    main()
