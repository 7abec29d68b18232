"""Alerts to the services that Apprise knows: Slack, Teams, PagerDuty and many more."""

import hashlib
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import apprise

from modwatch.common.errors import AlertRefusedError, SettingsError
from modwatch.monitoring.incidents.channels import Retry
from modwatch.monitoring.incidents.messages.alert import Alert
from modwatch.monitoring.incidents.rules import EVERYTHING, Route

#: HTTP statuses that a repetition does not change; redirects are not followed.
_REFUSED = frozenset(range(300, 500)) - {408, 429}

#: How Apprise's records name the HTTP status of an answer.
_STATUS = re.compile(r"\berror=(\d{3})\b")

#: The schemes of Apprise's own mail, which is less strict than `MailChannel`.
_MAIL_SCHEMES = ("mailto", "mailtos")

#: No files, no redirects, and nothing in the text is interpreted.
_ASSET = apprise.AppriseAsset(
    app_id="Modwatch",
    storage_mode=apprise.PersistentStoreMode.MEMORY,
    http_redirects=False,
    allow_templates=False,
    async_mode=False,
    interpret_escapes=False,
    interpret_emojis=False,
    secure_logging=True,
)


@dataclass(frozen=True, kw_only=True)
class AppriseChannel:
    """Sends each alert to one service that Apprise knows, such as Slack, Teams or PagerDuty."""

    #: Contains the token of the service, so it is never part of a message or a log.
    url: str = field(repr=False)
    retry: Retry = field(default_factory=Retry)
    route: Route = EVERYTHING

    @classmethod
    def from_urls(cls, urls: Sequence[str], retry: Retry) -> "tuple[AppriseChannel, ...]":
        """Return a channel for each URL of `MODWATCH_ALERT_CHANNELS`.

        Raises:
            SettingsError: Apprise does not know a URL, which is not quoted.
        """
        channels = tuple(cls(url=url, retry=retry) for url in dict.fromkeys(urls))
        for number, channel in enumerate(channels, 1):
            if channel._scheme in _MAIL_SCHEMES:
                raise SettingsError(
                    f"entry {number} of MODWATCH_ALERT_CHANNELS is a mail address; set "
                    "MODWATCH_ALERT_SMTP_URL instead"
                )
            if channel._service() is None:
                raise SettingsError(
                    f"entry {number} of MODWATCH_ALERT_CHANNELS is not a valid Apprise URL; "
                    "https://appriseit.com/services/ lists the services"
                )
        return channels

    @property
    def name(self) -> str:
        """The scheme and the start of a digest: the same whatever the order of the URLs."""
        return f"{self._scheme}-{hashlib.sha256(self.url.encode()).hexdigest()[:8]}"

    @property
    def _scheme(self) -> str:
        return self.url.partition("://")[0].lower()

    def send(self, alert: Alert) -> None:
        """Send the alert; retries after a transient failure.

        Raises:
            AlertRefusedError: the service rejected the alert.
            AlertError: the service could not be reached.
        """
        self.retry.call(
            lambda: self._send(alert),
            failure=f"the alert channel {self.name} did not accept an alert; it stays pending for "
            "the next run. Check MODWATCH_ALERT_CHANNELS and the service",
        )

    def _send(self, alert: Alert) -> str:
        """Return an error message if sending should be retried; empty on success."""
        records = list[str]()
        sender = apprise.Apprise(asset=_ASSET)
        sender.add(self.service_for(alert))
        links = [f"{name}: {url}" for name, url in alert.links.items()]
        sent = sender.notify(
            title=" ".join(f"Modwatch: {alert.title}".split()),
            body="\n".join([alert.text, *links]),
            notify_type=_notify_type(alert),
            body_format=apprise.NotifyFormat.TEXT,  # so that each service escapes its own markup
            log_callback=lambda record, _: records.append(record.message),
            log_level=logging.WARNING,
        )
        if sent:
            return ""
        # Only the status: a record may quote the URL or the answer.
        found = next(filter(None, map(_STATUS.search, records)), None)
        if found is None:
            return "no answer"
        if int(found[1]) not in _REFUSED:
            return f"answer {found[1]}"
        raise AlertRefusedError(
            f"the alert channel {self.name} rejected an alert (answer {found[1]}); it stays "
            "pending for the next run. Check its entry in MODWATCH_ALERT_CHANNELS"
        )

    def service_for(self, alert: Alert) -> Any:
        """Return the service; in PagerDuty, messages of one incident have one key."""
        service = self._service()
        if getattr(service, "dedup", "") is None:
            incident = str(alert.facts.get("incident", alert.key))
            service.dedup = hashlib.sha256(incident.encode()).hexdigest()
        return service

    def _service(self) -> Any:
        """Return Apprise's service; None if the URL is not valid."""
        # Their records quote URLs with tokens, and answers.
        logging.getLogger("apprise").propagate = False
        logging.getLogger("urllib3.connectionpool").setLevel(logging.INFO)
        service = apprise.Apprise.instantiate(self.url, asset=_ASSET)
        if service is not None:
            service.socket_connect_timeout = service.socket_read_timeout = self.retry.timeout
        return service


def _notify_type(alert: Alert) -> str:
    """Return the severity as Apprise names it; the end of an incident is a success."""
    if alert.facts.get("event") in ("recovered", "withdrawn", "accepted"):
        return "success"
    severity = str(alert.facts.get("severity", "info"))
    return {"critical": "failure", "warning": "warning"}.get(severity, "info")
