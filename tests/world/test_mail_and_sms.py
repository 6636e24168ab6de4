"""The mail server and the gateway for text messages, through the standard library's clients."""

import smtplib
import ssl
import threading
from collections.abc import Iterator
from email.message import EmailMessage

import httpx
import pytest

from tests.outside.codes import code_in
from tests.outside.sms_gateway import Sms, SmsGateway, running_sms_gateway
from tests.outside.smtp_server import LOGIN, PASSWORD, Mailbox, running_mail_server

ANN, BOB = "ann@people.test", "bob@people.test"


@pytest.fixture(scope="module")
def server() -> Iterator[Mailbox]:
    with running_mail_server() as started:
        yield started


@pytest.fixture
def mailbox(server: Mailbox) -> Iterator[Mailbox]:
    yield server
    server.be("accept")


@pytest.fixture
def gateway() -> Iterator[SmsGateway]:
    with running_sms_gateway() as started:
        yield started


def mail(to: str, code: str) -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "app@mail.test", to, "Your code for Grün & Co."
    made.set_content(f"Grün & Co.\n\nYour code is {code}. It is good for 10 minutes.\n")
    made.add_alternative(f"<p style='color:#123456'>Your code is <b>{code}</b></p>", subtype="html")
    return made


def send(mailbox: Mailbox, to: str, code: str, seconds: float = 10) -> None:
    with smtplib.SMTP(mailbox.host, mailbox.port, timeout=seconds) as client:
        client.send_message(mail(to, code))


def trusting(mailbox: Mailbox) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(mailbox.ca_file))


def test_a_mail_is_kept_with_its_code_for_whom_it_was_sent(mailbox: Mailbox) -> None:
    before = mailbox.count(ANN)

    send(mailbox, ANN, "012345")
    send(mailbox, BOB, "999999")
    send(mailbox, ANN, "543210")

    assert mailbox.code_for(ANN, after=before) == "012345"
    assert mailbox.code_for(ANN, after=before + 1) == "543210"
    kept = mailbox.mail_for(ANN, after=before)
    assert (kept.sender, kept.recipients, kept.encrypted, kept.login) == ("app@mail.test", (ANN,), False, None)
    assert kept.message["subject"] == "Your code for Grün & Co."


def test_a_code_is_waited_for(mailbox: Mailbox) -> None:
    before = mailbox.count(ANN)
    later = threading.Timer(0.2, send, (mailbox, ANN, "246810"))
    later.start()

    assert mailbox.code_for(ANN, after=before) == "246810"
    later.join()


def test_a_mail_that_never_comes_is_waited_for_in_vain(mailbox: Mailbox) -> None:
    with pytest.raises(AssertionError, match="still"):
        mailbox.mail_for("nobody@people.test", seconds=0.1)


@pytest.mark.parametrize(("mode", "status"), [("refuse", 550), ("busy", 451)])
def test_recipients_are_refused(mailbox: Mailbox, mode: str, status: int) -> None:
    before = mailbox.count(ANN)
    mailbox.be(mode)

    with pytest.raises(smtplib.SMTPRecipientsRefused) as caught:
        send(mailbox, ANN, "111111")

    assert caught.value.recipients[ANN][0] == status
    assert mailbox.count(ANN) == before


@pytest.mark.parametrize(
    ("mode", "seconds", "said"), [("hang", 1, "timed out$"), ("close", 10, "closed$")], ids=["hang", "close"]
)
def test_a_server_that_hangs_or_leaves_takes_nothing(mailbox: Mailbox, mode: str, seconds: float, said: str) -> None:
    before = mailbox.count(ANN)
    mailbox.be(mode)

    # The client turns a silence into a connection that is closed, and says only in words which it was.
    with pytest.raises((TimeoutError, smtplib.SMTPServerDisconnected), match=said):
        send(mailbox, ANN, "111111", seconds)

    mailbox.be("accept")
    send(mailbox, ANN, "222222")
    assert mailbox.code_for(ANN, after=before) == "222222"


def test_starttls_and_a_login_are_demanded() -> None:
    with running_mail_server("starttls") as mailbox:
        with pytest.raises(smtplib.SMTPSenderRefused, match="STARTTLS"):
            send(mailbox, ANN, "111111")
        with smtplib.SMTP(mailbox.host, mailbox.port, timeout=5) as client:
            client.starttls(context=trusting(mailbox))
            with pytest.raises(smtplib.SMTPAuthenticationError):
                client.login(LOGIN, "a guess")
            with pytest.raises(smtplib.SMTPSenderRefused, match="Authentication required"):
                client.send_message(mail(ANN, "111111"))
            client.login(LOGIN, PASSWORD)
            client.send_message(mail(ANN, "135791"))

        kept = mailbox.mail_for(ANN)

        assert (kept.encrypted, kept.login, mailbox.code_for(ANN)) == (True, LOGIN, "135791")


def test_tls_from_the_first_byte() -> None:
    with running_mail_server("tls") as mailbox:
        with smtplib.SMTP_SSL(mailbox.host, mailbox.port, timeout=5, context=trusting(mailbox)) as client:
            client.login(LOGIN, PASSWORD)
            client.send_message(mail(ANN, "135791"))

        kept = mailbox.mail_for(ANN)

        assert (kept.encrypted, kept.login, mailbox.code_for(ANN)) == (True, LOGIN, "135791")


def test_a_certificate_of_nobody_known_is_not_trusted() -> None:
    with (
        running_mail_server("tls") as mailbox,
        pytest.raises(ssl.SSLCertVerificationError),
        smtplib.SMTP_SSL(mailbox.host, mailbox.port, timeout=5, context=ssl.create_default_context()),
    ):
        pass


@pytest.mark.parametrize("text", ["none", "12345", "1234567", "#123456", "123456 and 654321", "x123456"])
def test_a_text_without_exactly_one_code_fails(text: str) -> None:
    with pytest.raises(AssertionError, match="codes in"):
        code_in(text)


def test_a_text_message_is_kept_with_its_code(gateway: SmsGateway) -> None:
    body = {"to": "+4915112345678", "text": "Your code is 123456."}

    answer = httpx.post(gateway.url, json=body, headers={"authorization": "Bearer x"}, trust_env=False)

    assert answer.status_code == 200
    assert gateway.to("+4915112345678") == [Sms("+4915112345678", "Your code is 123456.")]
    assert gateway.code_for("+4915112345678") == "123456"
    assert gateway.asked[0][0]["authorization"] == "Bearer x"


@pytest.mark.parametrize("status", [302, 429, 500])
def test_a_gateway_that_fails_has_sent_nothing(gateway: SmsGateway, status: int) -> None:
    gateway.status = status

    answer = httpx.post(gateway.url, json={"to": "+1", "text": "123456"}, trust_env=False)

    assert answer.status_code == status
    assert (gateway.sent, len(gateway.asked)) == ([], 1)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"to":1,"text":""}', b'{"to":"","text":"","from":""}'])
def test_the_gateway_takes_nothing_else(gateway: SmsGateway, body: bytes) -> None:
    assert httpx.post(gateway.url, content=body, trust_env=False).status_code == 400


def test_a_gateway_that_hangs_answers_when_it_is_let_go(gateway: SmsGateway) -> None:
    gateway.hang()

    with pytest.raises(httpx.ReadTimeout):
        httpx.post(gateway.url, json={"to": "+1", "text": "123456"}, trust_env=False, timeout=0.2)

    assert gateway.count("+1") == 0
    gateway.go_on()
    assert gateway.code_for("+1") == "123456"
