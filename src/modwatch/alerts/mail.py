"""Alerts as plain-text mail."""

import hashlib
import logging
import smtplib
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate
from urllib.parse import parse_qs, unquote, urlsplit

from modwatch.alerts.channels import Retry
from modwatch.alerts.messages import Alert, header_safe
from modwatch.errors import AlertError, AlertRefusedError, SettingsError

_log = logging.getLogger(__name__)

#: Reply codes of a permanent failure (RFC 5321, 4.2.1).
_PERMANENT = range(500, 600)

_STARTTLS = ("auto", "required", "off")


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
    def of(cls, url: str) -> "SmtpServer":
        """Return the server of `smtp[s]://[user:password@]host[:port][?starttls=…]`.

        Raises:
            SettingsError: the URL is invalid; the message does not quote it.

        >>> SmtpServer.of("smtp://mail.example.org")
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
            if exc.smtp_code not in _PERMANENT:
                return f"reply {exc.smtp_code}"
            raise AlertRefusedError(_rejection(f"reply {exc.smtp_code}")) from None
        except smtplib.SMTPRecipientsRefused as exc:
            codes = {code for code, _ in exc.recipients.values()}
            if not codes & set(_PERMANENT):
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
        "Check MODWATCH_ALERT_SMTP_URL, MODWATCH_ALERT_MAIL_FROM and MODWATCH_ALERT_MAIL_TO"
    )
