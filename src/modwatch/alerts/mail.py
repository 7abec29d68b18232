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

from modwatch.alerts.channels import Patience
from modwatch.alerts.messages import Alert, header_safe
from modwatch.errors import AlertError, AlertRefusedError, SettingsError

_log = logging.getLogger(__name__)

#: Answers of a server that say "for good" (RFC 5321, 4.2.1).
_FOR_GOOD = range(500, 600)

_STARTTLS = ("auto", "required", "off")


@dataclass(frozen=True, kw_only=True)
class SmtpServer:
    """A mail server and how to talk to it."""

    host: str
    port: int
    #: TLS from the first byte on.
    tls: bool
    #: `required`; `auto`: if the server offers it, or a password is to be sent; `off`.
    starttls: str = "auto"
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, url: str) -> "SmtpServer":
        """Return the server of `smtp[s]://[user:password@]host[:port][?starttls=…]`.

        Raises:
            SettingsError: it is no such URL; the message does not quote it.

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
                "MODWATCH_ALERT_SMTP_URL is no address of a mail server; write "
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
    """Mails each alert to all recipients at once."""

    server: SmtpServer
    sender: str
    recipients: tuple[str, ...]
    patience: Patience = field(default_factory=Patience)
    #: Which certificates are trusted; None: those that the system trusts.
    trust: ssl.SSLContext | None = None
    clock: Callable[[], float] = time.time
    name: str = "mail"

    def send(self, alert: Alert) -> None:
        """Mail the alert; what the server refuses for the moment is tried again.

        Raises:
            AlertRefusedError: the server does not take this alert.
            AlertError: it could not be reached in time, is not trusted, or does not trust us.
        """
        message = self._message(alert)
        self.patience.until_done(
            lambda: self._hand_over(message),
            failure="the mail server did not take an alert; it is kept for the next run, check "
            "MODWATCH_ALERT_SMTP_URL and the server",
        )

    def _message(self, alert: Alert) -> EmailMessage:
        """Return the mail; its id is made from the alert's key, so it is the same every time."""
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
        message.set_content(body, cte="quoted-printable")  # not every server takes eight bits
        return message

    def _hand_over(self, message: EmailMessage) -> str:
        """Return what was in the way, if another attempt may help; nothing when it was taken."""
        try:
            with self._session() as session:
                refused = session.send_message(message)
        except smtplib.SMTPAuthenticationError as exc:
            raise AlertError(_refusal(f"answer {exc.smtp_code} to the password")) from None
        except smtplib.SMTPResponseException as exc:
            if exc.smtp_code not in _FOR_GOOD:
                return f"answer {exc.smtp_code}"
            raise AlertRefusedError(_refusal(f"answer {exc.smtp_code}")) from None
        except smtplib.SMTPRecipientsRefused as exc:
            codes = {code for code, _ in exc.recipients.values()}
            if not codes & set(_FOR_GOOD):
                return f"answer {min(codes)}"
            refusal = _refusal(f"answer {min(codes)} to every recipient")
            raise AlertRefusedError(refusal) from None
        except ssl.SSLError as exc:
            raise AlertError(_refusal(f"{type(exc).__name__}: no trust")) from None
        # Foreign messages may quote what was sent, a password among it: only their class is told.
        # ValueError: the host is a name that cannot be, or the password is not ASCII.
        except (OSError, ValueError, smtplib.SMTPException) as exc:
            return type(exc).__name__
        if refused:  # the others have it, and must not get it again
            _log.warning(
                "The mail server took an alert for some of its recipients only.",
                extra={"event": "alerts.recipients_refused", "recipients": len(refused)},
            )
        return ""

    @contextmanager
    def _session(self) -> Iterator[smtplib.SMTP]:
        server, context = self.server, self.trust or ssl.create_default_context()
        timeout = self.patience.timeout
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
            with suppress(OSError, smtplib.SMTPException):  # what it took, it keeps
                session.quit()
        finally:
            session.close()

    def _wants_tls(self, session: smtplib.SMTP) -> bool:
        """Return whether to start TLS; a server that must offer it and does not is refused."""
        if self.server.starttls == "off":
            return False
        offered = session.has_extn("starttls")
        if not offered and (self.server.starttls == "required" or self.server.user):
            raise AlertError(_refusal("it offers no STARTTLS: all would travel in the clear"))
        return offered


def _refusal(why: str) -> str:
    return (
        f"the mail server did not take an alert ({why}); it is kept for the next run, check "
        "MODWATCH_ALERT_SMTP_URL, MODWATCH_ALERT_MAIL_FROM and MODWATCH_ALERT_MAIL_TO"
    )
