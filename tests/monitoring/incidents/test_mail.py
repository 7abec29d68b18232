"""Mail against a real server on loopback, with and without TLS, in good weather and bad."""

import datetime
import ipaddress
import logging
import ssl
import traceback
from dataclasses import replace
from email import message_from_string, policy
from email.message import EmailMessage
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from receivers import MailServer, closed_port, mail_server

from modwatch.common.errors import AlertError, AlertRefusedError, SettingsError
from modwatch.monitoring.incidents.channels import MailChannel, Retry, SmtpServer
from modwatch.monitoring.incidents.messages.alert import Alert

ALERT = Alert(
    key="scores_shifted[prob,fixed]/2026-01-05/1-opened",
    title="warning: scores_shifted (prob,fixed) opened",
    text="Psi 0.31, größer als 0.2.\nLook at: the scores.",
    facts={"rule": "scores_shifted"},
    links={"MLflow": "http://mlflow/#/experiments/1"},
)


def channel(port: int, user: str = "", **changes: Any) -> MailChannel:
    query = changes.pop("query", "")
    login = f"{user}:hunter2@" if user else ""
    plain = {
        "server": SmtpServer.from_url(f"smtp://{login}127.0.0.1:{port}{query}"),
        "sender": "modwatch@example.org",
        "recipients": ("ops@example.org", "lead@example.org"),
        "retry": Retry(timeout=0.5, pause=0),
        "clock": lambda: 1_767_600_000,
    }
    return MailChannel(**{**plain, **changes})


def received(server: MailServer) -> EmailMessage:
    [text] = server.messages
    return cast(EmailMessage, message_from_string(text, policy=policy.default))


def test_an_alert_arrives_as_plain_text():
    with mail_server() as server:
        channel(server.port).send(ALERT)
    message = received(server)
    assert message["Subject"] == f"Modwatch: {ALERT.title}"
    assert message["From"] == "modwatch@example.org"
    assert message["To"] == "ops@example.org, lead@example.org"
    assert message["Idempotency-Key"] == ALERT.key
    assert message["Date"] == "Mon, 05 Jan 2026 08:00:00 -0000"
    assert message.get_content_type() == "text/plain"
    text = message.get_content().replace("\r\n", "\n")
    assert text == f"{ALERT.text}\n\nMLflow: http://mlflow/#/experiments/1\n"
    assert server.recipients == ["ops@example.org", "lead@example.org"]
    assert server.logins == []


def test_the_same_alert_has_the_same_id_again_and_nothing_can_be_smuggled_in():
    forged = replace(ALERT, title="a\r\nBcc: thief@example.org\r\n\r\nbody", key="k\r\nBcc: x@y")
    with mail_server() as server:
        for alert in (ALERT, ALERT, forged):
            channel(server.port).send(alert)
    once, again, other = (message_from_string(text)["Message-ID"] for text in server.messages)
    assert once == again != other
    message = message_from_string(server.messages[-1], policy=policy.default)
    assert message["Bcc"] is None
    assert message["Subject"] == "Modwatch: a Bcc: thief@example.org body"
    assert message["Idempotency-Key"] == "k__Bcc:_x@y"
    assert {*server.recipients} == {"ops@example.org", "lead@example.org"}


@pytest.mark.parametrize(
    "says",
    [
        {"CONNECT": ["421 not now"]},
        {"MAIL": ["451 not now"]},
        {"RCPT": ["450 not now", "450 not now"]},
        {"MESSAGE": ["452 full"]},
        {"EHLO": [None]},  # silence
        {"DATA": ["nonsense without a number"]},
    ],
)
def test_what_passes_is_tried_again(says):
    with mail_server(says=says) as server:
        channel(server.port).send(ALERT)
    assert received(server)["Idempotency-Key"] == ALERT.key


def test_a_refusal_is_not_tried_again():
    for says, code in (
        ({"MAIL": ["550 no"]}, 550),
        ({"RCPT": ["550 no", "553 no"]}, 550),
        ({"MESSAGE": ["554 spam"]}, 554),
    ):
        with mail_server(says=says) as server, pytest.raises(AlertRefusedError, match=f"{code}"):
            channel(server.port).send(ALERT)
        assert server.messages == []


def test_one_recipient_who_is_refused_does_not_make_the_others_get_it_twice(caplog):
    with mail_server(says={"RCPT": ["250 ok", "550 unknown"]}) as server:
        channel(server.port).send(ALERT)
    assert len(server.messages) == 1
    assert "rejected some recipients" in caplog.text
    assert "example.org" not in caplog.text


def test_what_was_taken_counts_even_if_the_farewell_fails():
    with mail_server(says={"QUIT": ["500 what?"]}) as server:
        channel(server.port).send(ALERT)
    assert len(server.messages) == 1


def test_no_one_at_the_address_or_no_name_is_an_error_of_the_channel():
    with pytest.raises(AlertError, match="ConnectionRefusedError") as caught:
        channel(closed_port()).send(ALERT)
    assert not isinstance(caught.value, AlertRefusedError)
    with pytest.raises(AlertError, match="MODWATCH_ALERT_SMTP_URL"):
        channel(25, server=SmtpServer.from_url("smtp://a..b")).send(ALERT)


# Passwords and TLS


def test_a_password_that_cannot_be_sent_is_an_error_of_the_channel():
    with mail_server() as server:
        url = f"smtp://mod:h%C3%BCnter2@127.0.0.1:{server.port}?starttls=off"
        stuck = channel(server.port, server=SmtpServer.from_url(url))
        with pytest.raises(AlertError, match="UnicodeEncodeError") as caught:
            stuck.send(ALERT)
    assert "nter2" not in "".join(traceback.format_exception(caught.value))


def test_a_password_is_not_sent_in_the_clear():
    with mail_server() as server, pytest.raises(AlertError, match="STARTTLS"):
        channel(server.port, user="mod").send(ALERT)
    assert server.logins == []
    with mail_server() as server:  # unless it is asked for
        channel(server.port, user="mod", query="?starttls=off").send(ALERT)
    assert server.logins == ["\0mod\0hunter2"]


def test_a_wrong_password_is_refused_without_being_reported(caplog):
    caplog.set_level(logging.DEBUG)
    replies = {"AUTH": ["535 hunter2 is wrong"] * 9}
    with mail_server(says=replies) as server, pytest.raises(AlertError, match="535") as caught:
        channel(server.port, user="mod", query="?starttls=off").send(ALERT)
    assert "hunter2" not in f"{caught.value!r} {caplog.text} {channel(1, user='mod')!r}"
    assert caught.value.__cause__ is None


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that no system trusts, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(made.public_bytes(pem) + key.private_bytes(pem, *plain))
    return path


@pytest.fixture
def tls(certificate):
    """What a server that offers STARTTLS is made of."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return {"tls": context, "offers": ("STARTTLS", "AUTH PLAIN")}


def test_a_connection_is_encrypted_before_the_password(tls, certificate):
    trust = ssl.create_default_context(cafile=str(certificate))
    with mail_server(**tls) as server:
        channel(server.port, user="mod", trust=trust).send(ALERT)
    assert server.logins == ["\0mod\0hunter2"]
    assert server.encrypted == [True]


def test_a_certificate_that_no_one_vouches_for_is_refused(tls):
    with mail_server(**tls) as server, pytest.raises(AlertError, match="SSLCertVerificationError"):
        channel(server.port, user="mod").send(ALERT)
    assert server.logins == []


def test_an_address_says_how_to_talk():
    for url, expected in (
        ("smtp://mail", ("mail", 25, False, "auto", "", "")),
        ("smtp://u:p%40ss@mail", ("mail", 587, False, "auto", "u", "p@ss")),
        ("smtps://u:p@mail", ("mail", 465, True, "auto", "u", "p")),
        ("smtp://mail:2525?starttls=required", ("mail", 2525, False, "required", "", "")),
    ):
        at = SmtpServer.from_url(url)
        assert (at.host, at.port, at.tls, at.starttls, at.user, at.password) == expected


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.org",
        "http://u:hunter2@mail",
        "smtp://u:hunter2@",
        "smtp://u:hunter2@mail:port",
        "smtp://u:hunter2@mail?starttls=perhaps",
        "smtp://[hunter2",
    ],
)
def test_an_impossible_address_is_refused_and_not_quoted(url):
    with pytest.raises(SettingsError, match="MODWATCH_ALERT_SMTP_URL") as caught:
        SmtpServer.from_url(url)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
