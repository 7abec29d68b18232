"""The channels of alerts: signed HTTP requests and plain-text mail, and their retries."""

import hashlib
import json
import logging
import smtplib
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from modwatch.common import webhooks
from modwatch.common.errors import AlertError, AlertRefusedError, SettingsError
from modwatch.monitoring.incidents.messages.alert import Alert, header_safe
from modwatch.monitoring.incidents.rules import EVERYTHING, OTHER_CAUSES, AlertRule, Route

_log = logging.getLogger(__name__)

#: HTTP statuses that are retried; every other error status is permanent.
_TRANSIENT_STATUSES = range(500, 600)

#: SMTP reply codes of a permanent failure (RFC 5321, 4.2.1).
_PERMANENT_REPLIES = range(500, 600)

_STARTTLS = ("auto", "required", "off")


class Channel(Protocol):
    """A destination of alerts."""

    @property
    def name(self) -> str:
        """The name under which deliveries are recorded."""

    @property
    def route(self) -> Route:
        """Which alerts it receives."""

    def send(self, alert: Alert) -> None:
        """Deliver one alert; raises AlertError, whose message contains no secret."""


@dataclass(frozen=True, kw_only=True)
class Retry:
    """Retries with exponential backoff."""

    attempts: int = 3
    #: Seconds that one step of an attempt (connect, send, receive) may take.
    timeout: float = 10.0
    #: Seconds before the second attempt.
    pause: float = 1.0
    sleep: Callable[[float], None] = time.sleep

    def call(self, attempt: Callable[[], str], *, failure: str) -> None:
        """Call `attempt` until it returns an empty text instead of an error message.

        Raises:
            AlertError: every attempt failed; the message is `failure` with the last error.

        >>> answers = iter(["busy", ""])
        >>> Retry(sleep=lambda seconds: print(seconds, "s")).call(
        ...     lambda: next(answers), failure="Not sent.")
        1.0 s
        """
        error = ""
        for number in range(self.attempts):
            if number:
                self.sleep(self.pause * 2 ** (number - 1))
            error = attempt()
            if not error:
                return
        raise AlertError(f"{failure} ({error}, {self.attempts} attempts)")


@dataclass(frozen=True, kw_only=True)
class WebhookChannel:
    """Posts each alert as JSON with a signature and an idempotency key."""

    #: http or https; may contain a token, so it is never part of a message.
    url: str = field(repr=False)
    #: Key of the signature.
    secret: str = field(repr=False)
    retry: Retry = field(default_factory=Retry)
    clock: Callable[[], float] = time.time
    name: str = "webhook"
    route: Route = EVERYTHING

    def send(self, alert: Alert) -> None:
        """Post the alert; retries after a 5xx status or a connection error.

        Raises:
            AlertRefusedError: the receiver rejected the alert, or redirected the request.
            AlertError: the receiver could not be reached.
        """
        body = json.dumps(alert.payload, sort_keys=True, allow_nan=False).encode()
        self.retry.call(
            lambda: self._post(alert.key, body),
            failure="the webhook did not accept an alert; it stays pending for the next run. "
            "Check MODWATCH_ALERT_WEBHOOK_URL and its server",
        )

    def _post(self, key: str, body: bytes) -> str:
        """Return an error message if the request should be retried; empty on success."""
        answer = webhooks.post(
            self.url,
            body,
            secret=self.secret,
            key=key,
            timeout=self.retry.timeout,
            clock=self.clock,
        )
        if not answer.problem or answer.status is None or answer.status in _TRANSIENT_STATUSES:
            return answer.problem
        raise AlertRefusedError(
            f"the webhook rejected an alert ({answer.problem}); it stays pending for the next run. "
            "Check MODWATCH_ALERT_WEBHOOK_URL and what its server expects"
        )


@dataclass(frozen=True, kw_only=True)
class SmtpServer:
    """A mail server and its connection options."""

    host: str
    port: int
    #: Implicit TLS (smtps).
    tls: bool
    #: required | off | auto: if the server offers it, required with a password.
    starttls: str = "auto"
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def from_url(cls, url: str) -> "SmtpServer":
        """Return the server of `smtp[s]://[user:password@]host[:port][?starttls=…]`.

        Raises:
            SettingsError: the URL is invalid; the message does not quote it.

        >>> SmtpServer.from_url("smtp://mail.example.org")
        SmtpServer(host='mail.example.org', port=25, tls=False, starttls='auto', user='')
        """
        try:
            parts = urlsplit(url)
            port, host = parts.port, parts.hostname
        except ValueError:
            port, host = None, None
        starttls = parse_qs(parts.query).get("starttls", ["auto"])[-1] if host else ""
        if not host or parts.scheme not in ("smtp", "smtps") or starttls not in _STARTTLS:
            raise SettingsError(
                "MODWATCH_ALERT_SMTP_URL is not a valid SMTP URL; use "
                "smtp://user:password@host:587 or smtps://host, with ?starttls=required or off"
            ) from None
        tls = parts.scheme == "smtps"
        return cls(
            host=host,
            port=port or (465 if tls else 587 if parts.username else 25),
            tls=tls,
            starttls=starttls,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
        )


@dataclass(frozen=True, kw_only=True)
class MailChannel:
    """Mails each alert to all recipients in one message."""

    server: SmtpServer
    sender: str
    recipients: tuple[str, ...]
    retry: Retry = field(default_factory=Retry)
    #: Trusted certificates; None: those of the system.
    trust: ssl.SSLContext | None = None
    clock: Callable[[], float] = time.time
    name: str = "mail"
    route: Route = EVERYTHING

    def send(self, alert: Alert) -> None:
        """Mail the alert; retries after a transient failure.

        Raises:
            AlertRefusedError: the server rejected the alert.
            AlertError: connection, TLS or authentication failed.
        """
        message = self._message(alert)
        self.retry.call(
            lambda: self._send(message),
            failure="the mail server did not accept an alert; it stays pending for the next run. "
            "Check MODWATCH_ALERT_SMTP_URL and the server",
        )

    def _message(self, alert: Alert) -> EmailMessage:
        """Return the mail; its Message-ID is derived from the alert's key, the same every time."""
        message = EmailMessage()
        message["Subject"] = " ".join(f"Modwatch: {alert.title}".split())
        message["From"] = self.sender
        message["To"] = ", ".join(self.recipients)
        message["Date"] = formatdate(self.clock())
        message["Message-ID"] = f"<{hashlib.sha256(alert.key.encode()).hexdigest()[:40]}@modwatch>"
        message["Idempotency-Key"] = header_safe(alert.key)
        message["Auto-Submitted"] = "auto-generated"
        links = [f"{name}: {url}" for name, url in alert.links.items()]
        body = "\n".join([alert.text, *([""] if links else []), *links]) + "\n"
        message.set_content(body, cte="quoted-printable")  # not every server supports 8BITMIME
        return message

    def _send(self, message: EmailMessage) -> str:
        """Return an error message if sending should be retried; empty on success."""
        try:
            with self._session() as session:
                refused = session.send_message(message)
        except smtplib.SMTPAuthenticationError as exc:
            raise AlertError(_rejection(f"reply {exc.smtp_code} to the password")) from None
        except smtplib.SMTPResponseException as exc:
            if exc.smtp_code not in _PERMANENT_REPLIES:
                return f"reply {exc.smtp_code}"
            raise AlertRefusedError(_rejection(f"reply {exc.smtp_code}")) from None
        except smtplib.SMTPRecipientsRefused as exc:
            codes = {code for code, _ in exc.recipients.values()}
            if not codes & set(_PERMANENT_REPLIES):
                return f"reply {min(codes)}"
            raise AlertRefusedError(_rejection(f"reply {min(codes)} to every recipient")) from None
        except ssl.SSLError as exc:
            raise AlertError(_rejection(f"{type(exc).__name__}: certificate not trusted")) from None
        # Only the class: the message may quote what was sent, including the password.
        # ValueError: the host name is invalid, or the password is not ASCII.
        except (OSError, ValueError, smtplib.SMTPException) as exc:
            return type(exc).__name__
        if refused:  # no retry: the other recipients have received it
            _log.warning(
                "The mail server rejected some recipients of an alert.",
                extra={"event": "alerts.recipients_refused", "recipients": len(refused)},
            )
        return ""

    @contextmanager
    def _session(self) -> Iterator[smtplib.SMTP]:
        server, context = self.server, self.trust or ssl.create_default_context()
        timeout = self.retry.timeout
        session: smtplib.SMTP = (
            smtplib.SMTP_SSL(server.host, server.port, timeout=timeout, context=context)
            if server.tls
            else smtplib.SMTP(server.host, server.port, timeout=timeout)
        )
        try:
            session.ehlo()
            if not server.tls and self._wants_tls(session):
                session.starttls(context=context)
            if server.user:
                session.login(server.user, server.password)
            yield session
            with suppress(OSError, smtplib.SMTPException):  # the mail is accepted already
                session.quit()
        finally:
            session.close()

    def _wants_tls(self, session: smtplib.SMTP) -> bool:
        """Return whether to start TLS; raises AlertError if it is required and not offered."""
        if self.server.starttls == "off":
            return False
        offered = session.has_extn("starttls")
        if not offered and (self.server.starttls == "required" or self.server.user):
            raise AlertError(_rejection("it does not offer STARTTLS"))
        return offered


def _rejection(why: str) -> str:
    return (
        f"the mail server did not accept an alert ({why}); it stays pending for the next run. "
        "Check MODWATCH_ALERT_SMTP_URL, with its sender and recipients"
    )


def routed(
    channels: Sequence[Any], routes: Sequence[Route], rules: Sequence[AlertRule]
) -> tuple[Any, ...]:
    """Return the channels, each with the first route of its name; what none receives is logged.

    Raises:
        SettingsError: a route names no channel or an unknown cause, or critical alerts would reach
            no channel.
    """
    if not channels:
        return ()
    alerts = {(rule.cause or rule.name, rule.severity) for rule in rules} | {*OTHER_CAUSES.items()}
    causes, found = {cause for cause, _ in alerts}, list[Any]()
    for channel in channels:
        names = (channel.name, channel.name.partition("-")[0])
        mine = (route for route in routes if route.name in names)
        found.append(replace(channel, route=next(mine, EVERYTHING)))
    for route in routes:
        unknown = {*(route.causes or ())} - causes
        if unknown or route not in [channel.route for channel in found]:
            known = causes if unknown else {channel.name for channel in channels}
            raise SettingsError(
                f"alerts.toml: channel {route.name!r}: unknown or repeated "
                f"{min(unknown, default='name')!r}; choose from {', '.join(sorted(known))}"
            )
    lost = {alert for alert in alerts if not any(one.route.takes(*alert) for one in found)}
    if critical := sorted(cause for cause, severity in lost if severity == "critical"):
        raise SettingsError(
            f"alerts.toml: critical alerts of {', '.join(critical)} reach no channel; "
            "leave out `causes` of one"
        )
    if lost:
        _log.warning("Some alerts reach no channel: %s.", ", ".join(sorted(dict(lost))))
    return tuple(found)
