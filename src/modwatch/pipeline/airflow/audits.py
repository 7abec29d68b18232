"""The tasks of an audit: automatic steps, questions to people, and the wait for labels.

An answer is kept in the evidence of the audit as soon as it is given, with the name that Airflow
knows the person by. Cancelling an audit skips all later tasks of its run.
"""

import datetime
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

from airflow.sdk import task
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time.hitl import upsert_hitl_detail

from modwatch.common.errors import AuditCancelledError
from modwatch.installation import open_resources
from modwatch.pipeline.airflow.labels_trigger import LabelsTrigger
from modwatch.pipeline.airflow.questions import Question, respondent

if TYPE_CHECKING:
    from modwatch.audits.review_items import Labelling
    from modwatch.audits.workflow import Audit
    from modwatch.installation.resources import Resources

CANCEL, STOP = "Cancel the audit", "Stop labelling and use the labels so far"

_NOTE = "Reason, kept in the evidence and visible to others. Do not quote comments."


@contextmanager
def _resources() -> Iterator["Resources"]:
    """Open the resources of a task; a cancelled audit skips the task."""
    try:
        with open_resources() as resources:
            yield resources
    except AuditCancelledError as exc:
        raise AirflowSkipException(str(exc)) from None


@contextmanager
def _opened(name: str) -> Iterator["Audit"]:
    with _resources() as resources:
        yield resources.audit(name)


@task
def plan(params: Any = None, dag_run: Any = None, data_interval_start: Any = None) -> str:
    """Seal the plan that the form of the run asks for; return the name of the audit."""
    from modwatch.audits.request import filled_in
    from modwatch.pipeline import audit

    form = filled_in(
        params, covers=data_interval_start, run=dag_run.run_id, asked=dag_run.run_after
    )
    actor = getattr(dag_run, "triggering_user_name", None) or "modwatch"
    with _resources() as resources:
        return audit.plan(resources, form, actor=actor).name


@task
def draw(audit: str, stage: int) -> int:
    """Draw and queue a stage; return how many comments are drawn in all."""
    with _opened(audit) as opened:
        return opened.draw(stage)


@task
def estimate(audit: str) -> str:
    """Compute and seal the result; return the status of recall."""
    with _opened(audit) as opened:
        metrics = opened.estimate()["figures"]
    return str(next(estimate["status"] for estimate in metrics if estimate["metric"] == "recall"))


@task
def publish(audit: str, params: Any = None) -> str:
    """Write the report and, for a service, the DSA files; return the report's name."""
    with _opened(audit) as opened:
        return opened.publish(service=params["service"] or "")


@task
def track(audit: str) -> str:
    """Show the audit in MLflow; return the run's id."""
    from modwatch.pipeline.audit import track

    with _resources() as resources:
        return track(resources, audit)


class _Question(Question):
    """A question about an audit.

    The name of the audit is appended to the subject, to distinguish questions of several audits.
    """

    template_fields: ClassVar = ("subject", "body", "audit")

    def __init__(self, *, audit: str, **kwargs: Any) -> None:
        super().__init__(note=_NOTE, **kwargs)
        self.audit = audit


class _Decision(_Question):
    """Asks a person to take a step of an audit, or to cancel the audit."""

    #: The step in the evidence, the method of the audit that takes it, the question, and the label
    #: of the button.
    action: ClassVar[str]
    step: ClassVar[Literal["approve", "sign_off"]]
    question: ClassVar[str]
    answer: ClassVar[str]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(subject=self.question, options=[self.answer, CANCEL], **kwargs)

    def execute(self, context: Any) -> Any:
        """Ask, unless the step is done."""
        from modwatch.pipeline.audit import ask

        with _opened(self.audit) as audit:
            if audit.done(self.action):
                return None
        page = self.generate_link_to_ui_from_context(context=context)
        self.subject = f"{self.subject} {self.audit}"
        with _resources() as resources:
            self.body = ask(resources, self.audit, self.action, page=page)
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Record the answer."""
        answer = super().execute_complete(context, event)
        with _opened(self.audit) as audit:
            if answer["chosen_options"] == [CANCEL]:
                _cancel(audit, answer)
            getattr(audit, self.step)(**respondent(answer))
        return self.action


class Approval(_Decision):
    """Asks for the approval of the plan."""

    action, step = "approved", "approve"
    question, answer = "Approve the plan of audit", "Approve"


class SignOff(_Decision):
    """Asks for the signature of the result."""

    action, step = "signed_off", "sign_off"
    question, answer = "Sign the result of audit", "Sign"


class AuditLabels(_Question):
    """Waits until a stage is labelled, and seals its labels.

    Meanwhile people can stop the labelling or cancel the audit, and reminders are sent. At the
    deadline of the plan the labels so far are sealed. The log shows the progress.
    """

    def __init__(self, *, stage: int, poll_seconds: float = 10.0, **kwargs: Any) -> None:
        super().__init__(subject="Wait for the labels of audit", options=[STOP, CANCEL], **kwargs)
        self.stage, self.poll_seconds = stage, poll_seconds

    def execute(self, context: Any) -> Any:
        """Ask once whether to stop, and wait."""
        with _opened(self.audit) as audit:
            labelling = audit.labelling(self.stage)
            if labelling is not None:
                self._ask(context, labelling.text)
            return self._seal_or_wait(context, audit)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Act on an answer, a reminder or the end of the wait."""
        if "chosen_options" not in event:
            return self._continue(context, remind=event.get("kind") == "reminder")
        answer = super().execute_complete(context, event)
        with _opened(self.audit) as audit:
            if answer["chosen_options"] == [CANCEL]:
                _cancel(audit, answer)
            who = respondent(answer)
            who["note"] = who["note"] or f"{who['actor']} ended the labelling and gave no reason"
            return audit.seal(self.stage, stop=True, **who)

    def _ask(self, context: Any, progress: str) -> None:
        upsert_hitl_detail(
            ti_id=context["task_instance"].id,
            options=self.options,
            subject=f"{self.subject} {self.audit}",
            body=f"{progress} This was the progress at the start; the log of this task shows it "
            "now.\n\nPeople label in the review console. The task continues by itself when all "
            "comments are labelled or the deadline passes; answer only to end it early.",
            defaults=None,
            multiple=False,
            params=self.serialized_params,
        )

    def _continue(self, context: Any, *, remind: bool) -> Any:
        from modwatch.pipeline.audit import remind as send_reminder

        with _resources() as resources:
            audit = resources.audit(self.audit)
            labelling = audit.labelling(self.stage)
            if remind and labelling is not None:
                number = self._reminders(context, labelling)
                send_reminder(resources, self.audit, self.stage, number)
            return self._seal_or_wait(context, audit)

    def _seal_or_wait(self, context: Any, audit: "Audit") -> Any:
        """Seal labels that are complete or late; else wait."""
        labelling = audit.labelling(self.stage)
        if labelling is None or labelling.over:
            late = labelling is not None and bool(labelling.progress.left)
            return audit.seal(self.stage, stop=late, note="the deadline" if late else "")
        number = self._reminders(context, labelling) + 1
        return self.defer(
            trigger=LabelsTrigger(
                audit=self.audit,
                stage=self.stage,
                ti_id=str(context["task_instance"].id),
                remind_at=(labelling.since + number * self._interval(context)).isoformat(),
                poll_seconds=self.poll_seconds,
            ),
            method_name="execute_complete",
        )

    def _reminders(self, context: Any, labelling: "Labelling") -> int:
        """Return how many reminders are due by now."""
        waited = datetime.datetime.now(datetime.UTC) - labelling.since
        return int(waited / self._interval(context))

    def _interval(self, context: Any) -> datetime.timedelta:
        return datetime.timedelta(days=context["params"]["remind_days"])


def _cancel(audit: "Audit", answer: Mapping[str, Any]) -> NoReturn:
    """Cancel the audit, and skip the task."""
    audit.cancel(**respondent(answer))
    raise AirflowSkipException(f"audit {audit.name!r} was cancelled; its evidence stays")
