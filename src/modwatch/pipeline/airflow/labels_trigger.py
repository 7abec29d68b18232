"""Waits for the labels of an audit, for days, without occupying a worker."""

import asyncio
import datetime
from collections.abc import AsyncIterator
from typing import Any

from airflow.sdk.execution_time.hitl import get_hitl_detail_content_detail
from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from modwatch.common.errors import AuditCancelledError, ModwatchError
from modwatch.installation import open_resources


class LabelsTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires when a stage is labelled, late or cancelled, and when a reminder is due.

    The event's `kind` is `over` or `reminder`. An answer in Airflow wakes the task by itself; one
    that was given while the task ran is read here, with the fields that Airflow gives it.

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
        """Poll; a service that is down is polled again."""
        logged = ""
        while True:
            event = await self._answer() or await asyncio.to_thread(self._look)
            if "kind" in event or "chosen_options" in event:
                yield TriggerEvent(event)
                return
            if event["text"] != logged:
                logged = event["text"]
                self.log.info("%s", logged)
            await asyncio.sleep(self.poll_seconds)

    async def _answer(self) -> dict[str, Any]:
        """Return the answer, if there is one."""
        detail = await sync_to_async(get_hitl_detail_content_detail)(ti_id=self.ti_id)
        if not (detail.response_received and detail.chosen_options):
            return {}
        user = detail.responded_by_user
        return {
            "chosen_options": list(detail.chosen_options),
            "params_input": detail.params_input or {},
            "responded_at": detail.responded_at,
            "responded_by_user": {"id": user.id, "name": user.name} if user else None,
        }

    def _look(self) -> dict[str, Any]:
        try:
            with open_resources() as resources:
                labelling = resources.audit(self.audit).labelling(self.stage)
        except AuditCancelledError:
            return {"kind": "over"}  # the task handles it
        except ModwatchError as exc:  # such as a database that restarts
            return {"text": f"The progress could not be read ({type(exc).__name__})."}
        if labelling is None or labelling.over:
            return {"kind": "over"}
        if datetime.datetime.now(datetime.UTC) >= datetime.datetime.fromisoformat(self.remind_at):
            return {"kind": "reminder"}
        return {"text": labelling.text}
