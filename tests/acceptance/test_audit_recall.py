"""Audits under real Airflow: from the form to the report."""

from collections.abc import Iterator

import pytest

from acceptance.audit_runs import Audits, audits, chain, label

pytestmark = pytest.mark.acceptance


@pytest.fixture(scope="module")
def airflow() -> Iterator[Audits]:
    with audits() as made:
        yield made


def test_an_audit_of_two_stages(airflow: Audits) -> None:
    airflow.to_the_labels("whole", labels=160, second_stage_share=0.4)
    label()
    airflow.until("whole", "label_again", "deferred")
    label()
    airflow.answer("whole", "sign_off", "Sign", "they agree")
    airflow.until("whole", "track", "success")
    print([(e.action, e.actor, e.note) for e in chain("whole")])
