"""Waits for the labels of an audit, for days, without a task that runs."""

import asyncio
import datetime
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from modwatch.errors import ModwatchError


class LabelsTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires when the labels of a stage are there, late, or given up; and when to remind people.

    The event's `kind` is `over` (look how far it is) or `reminder`. Somebody's answer in Airflow
    wakes the task by itself; one that came while the task ran is found here, with the fields that
    Airflow gives it.

    Args:
        audit: Name of the audit.
        stage: 1 or 2.
        ti_id: Task instance whose question people may answer.
        remind_at: ISO 8601, UTC.
        poll_seconds: How often to look.
    """

    def __init__(
        self, *, audit: str, stage: int, ti_id: str, remind_at: str, poll_seconds: float = 10.0
    ) -> None:
        super().__init__()
        self.audit = audit
        self.stage = stage
        self.ti_id = ti_id
        self.remind_at = remind_at
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class and arguments."""
        names = ("audit", "stage", "ti_id", "remind_at", "poll_seconds")
        arguments = {name: getattr(self, name) for name in names}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look now and then; what cannot be reached for a while is waited for."""
        told = ""
        while True:
            event = await self._answer() or await asyncio.to_thread(self._look)
            if "kind" in event or "chosen_options" in event:
                yield TriggerEvent(event)
                return
            if event["words"] != told:
                told = event["words"]
                self.log.info("%s", told)
            await asyncio.sleep(self.poll_seconds)

    async def _answer(self) -> dict[str, Any]:
        """Return what somebody answered, if they did."""
        from airflow.sdk.execution_time.hitl import get_hitl_detail_content_detail
        from asgiref.sync import sync_to_async

        found = await sync_to_async(get_hitl_detail_content_detail)(ti_id=self.ti_id)
        if not (found.response_received and found.chosen_options):
            return {}
        user = found.responded_by_user
        return {
            "chosen_options": list(found.chosen_options),
            "params_input": found.params_input or {},
            "responded_at": found.responded_at,
            "responded_by_user": {"id": user.id, "name": user.name} if user else None,
        }

    def _look(self) -> dict[str, Any]:
        from modwatch.pipeline import audit as audit_pipeline
        from modwatch.resources import open_resources

        try:
            with open_resources() as at:
                found = audit_pipeline.labelling(at, self.audit, self.stage)
        except ModwatchError as exc:  # a database restarts; a cancelled audit is for the task
            if type(exc).__name__ == "AuditCancelledError":
                return {"kind": "over"}
            return {"words": f"It cannot be told how far the labels are ({type(exc).__name__})."}
        if found is None or found.over:
            return {"kind": "over"}
        if datetime.datetime.now(datetime.UTC) >= datetime.datetime.fromisoformat(self.remind_at):
            return {"kind": "reminder"}
        return {"words": found.words}
