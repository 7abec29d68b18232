from modwatch.statistics.drift.queue import Queue, queue_metrics


def test_queue_in_hours() -> None:
    queue = Queue(waiting=1, decided=3, age_median=5_400, age_oldest=7_200, decision_median=1_000)
    found = {each.metric: (each.value, each.n) for each in queue_metrics(queue)}
    assert found == {
        "queue_completion": (0.75, 4),
        "queue_waiting": (1.0, 4),
        "queue_age_median_hours": (1.5, 1),
        "queue_age_oldest_hours": (2.0, 1),
        "queue_decision_median_hours": (0.3, 3),
    }


def test_an_empty_queue() -> None:
    found = {each.metric: each for each in queue_metrics(Queue(waiting=0, decided=0))}
    assert found.pop("queue_waiting").value == 0
    assert all(each.value is None and each.reason for each in found.values())
