"""The tasks of an audit: what a machine does, what people are asked, and the wait for labels.

An answer is kept in the evidence of the audit as soon as it is given, with the name that Airflow
knows the person by. Whoever gives an audit up ends its run: all later tasks are skipped.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param, task
from airflow.sdk.exceptions import AirflowSkipException, ParamValidationError
from airflow.sdk.execution_time.hitl import upsert_hitl_detail

from modwatch.errors import AuditCancelledError
from modwatch.orchestration.audit_form import filled_in
from modwatch.orchestration.labels_trigger import LabelsTrigger

CANCEL, STOP = "Give the audit up", "Stop labelling, and use what there is"

#: Longer than anybody waits for an answer.
_PATIENCE = datetime.timedelta(days=365)

_NOTE = {
    "note": Param(
        None,
        type=["null", "string"],
        maxLength=500,
        title="Note",
        description="Why; kept in the evidence, which others will read. No text of a comment.",
    )
}


def audit_stop(name: str, *, form: Sequence[str] = ()) -> Any:
    """Return the task `name`, which runs `modwatch.pipeline.audit.<name>` for an audit.

    The fields `form` of the run's form are handed over, empty ones as an empty text.
    """

    @task(task_id=name)  # type: ignore[untyped-decorator]
    def run(audit: str, stage: int | None = None, params: Any = None) -> Any:
        part = {"stage": stage} if stage else {}
        return _call(name, audit, **part, **{field: params[field] or "" for field in form})

    return run


def plan_stop() -> Any:
    """Return the task that plans what the form of the run asks for, and returns the name."""

    @task(task_id="plan")  # type: ignore[untyped-decorator]
    def run(params: Any = None, dag_run: Any = None, data_interval_start: Any = None) -> str:
        form = filled_in(
            params, covers=data_interval_start, run=dag_run.run_id, asked=dag_run.run_after
        )
        who = getattr(dag_run, "triggering_user_name", None) or "modwatch"
        return str(_call("plan", form, actor=who))

    return run


class _Question(HITLOperator):  # type: ignore[misc]
    """What people are asked about an audit: some options, and a note.

    The name of the audit follows the subject, so that those of several audits can be told apart.
    """

    template_fields: ClassVar = ("subject", "body", "audit")

    subject: str

    def __init__(self, *, audit: str, options: list[str], **kwargs: Any) -> None:
        super().__init__(options=options, response_timeout=_PATIENCE, **kwargs)
        self.audit = audit

    # Airflow takes the fields of the run's form for fields of the answer.
    @property
    def serialized_params(self) -> dict[str, Any]:
        """The form of the answer."""
        return {name: param.serialize() for name, param in _NOTE.items()}

    def validate_params_input(self, params_input: Mapping[str, Any]) -> None:
        """Raise ParamValidationError for an answer that the form does not have."""
        if unknown := params_input.keys() - _NOTE:
            raise ParamValidationError(f"the answer has no field {min(unknown)!r}")
        for name, value in params_input.items():
            copy(_NOTE[name]).resolve(value)


class AuditQuestion(_Question):
    """Asks somebody to take a step of an audit, or to give the audit up.

    Args:
        audit: Name of the audit.
        step: Function of `audit_pipeline` that keeps the answer: `approve` or `sign_off`.
        action: What the step is called in the evidence.
        answer: Label of the button.
    """

    def __init__(self, *, step: str, action: str, answer: str, **kwargs: Any) -> None:
        super().__init__(options=[answer, CANCEL], **kwargs)
        self.step, self.action = step, action

    def execute(self, context: Any) -> Any:
        """Ask, unless the step has been taken."""
        if _call("done", self.audit, self.action):
            return None
        page = self.generate_link_to_ui_from_context(context=context)
        self.subject = f"{self.subject} {self.audit}"
        self.body = _call("ask", self.audit, self.action, page=page)
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Keep the answer."""
        answer = super().execute_complete(context, event)
        step = "cancel" if answer["chosen_options"] == [CANCEL] else self.step
        _call(step, self.audit, **_who(answer))
        _skip_when(step == "cancel", self.audit)
        return step


class AuditLabels(_Question):
    """Waits until the labels of a stage are there, and seals them.

    Meanwhile somebody may stop the labelling or give the audit up; people are reminded; at the
    deadline of the plan it goes on with what there is. How far it is stands in the log.
    """

    def __init__(self, *, stage: int, poll_seconds: float = 10.0, **kwargs: Any) -> None:
        super().__init__(options=[STOP, CANCEL], **kwargs)
        self.stage, self.poll_seconds = stage, poll_seconds

    def execute(self, context: Any) -> Any:
        """Ask once whether to stop, and wait."""
        found = _call("labelling", self.audit, self.stage)
        if found is None:
            return self._go_on(context)
        ti_id = context["task_instance"].id
        upsert_hitl_detail(
            ti_id=ti_id,
            options=self.options,
            subject=f"{self.subject} {self.audit}",
            body=f"{found.words} So it began; the log of this task says how far it is now.\n\n"
            "People label in the review console. It goes on by itself when they are done, or late: "
            "answer only to end it before.",
            defaults=None,
            multiple=False,
            params=self.serialized_params,
        )
        return self._go_on(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Do what somebody asked for, or what the time has come for."""
        if "chosen_options" not in event:
            if event.get("kind") == "reminder":
                _call("remind", self.audit, self.stage, self._reminders(context))
            return self._go_on(context)
        answer = super().execute_complete(context, event)
        if answer["chosen_options"] == [STOP]:
            return _call("seal", self.audit, self.stage, stop=True, **_who(answer))
        _call("cancel", self.audit, **_who(answer))
        return _skip_when(True, self.audit)

    def _go_on(self, context: Any) -> Any:
        """Seal what is complete or late; else wait on."""
        found = _call("labelling", self.audit, self.stage)
        if found is None or found.over:
            late = found is not None and bool(found.progress.left)
            note = "the deadline" if late else ""
            return _call("seal", self.audit, self.stage, stop=late, note=note)
        number = self._reminders(context) + 1
        remind_at = found.since + number * self._every(context)
        return self.defer(
            trigger=LabelsTrigger(
                audit=self.audit,
                stage=self.stage,
                ti_id=str(context["task_instance"].id),
                remind_at=remind_at.isoformat(),
                poll_seconds=self.poll_seconds,
            ),
            method_name="execute_complete",
        )

    def _reminders(self, context: Any) -> int:
        """Return how many reminders are due by now."""
        found = _call("labelling", self.audit, self.stage)
        if found is None:
            return 0
        return int((datetime.datetime.now(datetime.UTC) - found.since) / self._every(context))

    def _every(self, context: Any) -> datetime.timedelta:
        return datetime.timedelta(days=context["params"]["remind_days"])


def _call(name: str, *args: Any, **kwargs: Any) -> Any:
    """Return what a function of `audit_pipeline` does; of a cancelled audit, skip the task."""
    from modwatch.pipeline import audit as audit_pipeline
    from modwatch.resources import open_resources

    function: Callable[..., Any] = getattr(audit_pipeline, name)
    try:
        with open_resources() as at:
            return function(at, *args, **kwargs)
    except AuditCancelledError as exc:
        raise AirflowSkipException(str(exc)) from None


def _skip_when(cancelled: bool, audit: str) -> None:
    if cancelled:
        raise AirflowSkipException(f"audit {audit!r} was given up; its evidence stays")


def _who(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return who answered, and their note."""
    user = answer.get("responded_by_user") or {}
    note = (answer.get("params_input") or {}).get("note") or ""
    return {"actor": str(user.get("name") or user.get("id") or "somebody"), "note": str(note)}
