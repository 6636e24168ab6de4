"""The senders themselves, with a real mail server and a real gateway: to whom they send, how, and how much."""

import logging
import uuid
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.notifications.hourly import PREFIX_PER_HOUR, Hourly, TooManyMessages
from custody.notifications.mail import Mail, is_loopback
from tests.fixtures.callers import Client
from tests.fixtures.deployments import partner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.people import fresh_address, mails_to_strangers, sign_in
from tests.fixtures.server import Service
from tests.outside.sms_gateway import SmsGateway
from tests.outside.smtp_server import LOGIN, PASSWORD, Mailbox
from tests.routes.auth.factors import refusal

SITE = "https://custody.example.com"
Send = Callable[..., Awaitable[list[str]]]


@pytest.fixture
def sender(mailbox: Mailbox, caplog: pytest.LogCaptureFixture) -> Send:
    """Mail a code with a sender of these settings, and wait for what becomes of it; the log's lines."""

    async def send(address: str, host: str = "localhost", **settings: bool) -> list[str]:
        caplog.clear()
        mail = Mail(f"smtp://{host}:{mailbox.port}?from=custody@mail.test", SITE, **settings)
        mail.send_code(address, "123456")
        await mail.close()
        return [f"{line.getMessage()} {getattr(line, 'reason', '')}".strip() for line in caplog.records]

    caplog.set_level(logging.WARNING)
    return send


# ---- to whom


async def test_a_mail_goes_to_the_address_and_says_so(sender: Send, mailbox: Mailbox) -> None:
    address = f"o'neill+{uuid.uuid4().hex[:8]}@example.com"

    assert await sender(address) == []

    mail = mailbox.mail_for(address)
    assert (mail.recipients, mail.message["to"]) == ((address,), address)


@pytest.mark.parametrize(
    "address",
    [
        "=?utf-8?q?=76ictim?=@bank.example.com",
        "=?utf-8?q?victim=40bank.com=2c?=@evil.example.com",
        "=?utf-8?q?x=0d=0abcc=3aa=40b.com?=@evil.example.com",
        "=?utf-8?q?=c3=a4?=@evil.example.com",
        "=?utf-8?b?dmljdGltQGJhbmsuY29tLA==?=@evil.example.com",
        "a@b.example.com, c@d.example.com",
        "a\r\nb@c.example.com",
        "Ann <ann@example.com>",
        "ann",
        "",
    ],
)
async def test_an_address_that_a_mail_header_would_misread_is_sent_nothing(
    sender: Send, mailbox: Mailbox, address: str
) -> None:
    before = len(mailbox.mails())

    [line] = await sender(address)

    assert line.startswith("not sent ")
    assert mails_to_strangers(mailbox, before) == []


def test_an_address_in_an_encoded_word_is_refused(as_nobody: Client, mailbox: Mailbox) -> None:
    before = len(mailbox.mails())
    for address in ("=?utf-8?q?=76ictim?=@bank.example.com", "=?utf-8?q?x=0d=0ax?=@evil.example.com"):
        assert refusal(as_nobody.post("/auth/email/send", json={"email": address})) == (400, "bad_email_address")

    assert mails_to_strangers(mailbox, before) == []


# ---- how: `127.1` is an address of this machine by which nobody can see it


async def test_beyond_this_machine_no_code_is_sent_in_plain(sender: Send, mailbox: Mailbox) -> None:
    address = fresh_address()

    assert await sender(address, "127.1") == ["not sent NoTls"]
    assert mailbox.count(address) == 0


async def test_where_it_is_allowed_it_is_said_once(sender: Send, mailbox: Mailbox) -> None:
    address = fresh_address()

    [line] = await sender(address, "127.1", plain=True)

    assert "in plain" in line
    assert mailbox.count(address) == 1


@pytest.mark.parametrize("host", ["127.1", "localhost"])
async def test_no_password_is_said_in_plain_even_where_that_is_allowed(
    mailbox: Mailbox, caplog: pytest.LogCaptureFixture, host: str
) -> None:
    mail = Mail(
        f"smtp://{LOGIN.replace('@', '%40')}:{PASSWORD.replace(' ', '%20')}@{host}:{mailbox.port}", SITE, plain=True
    )
    mail.send_code(address := fresh_address(), "123456")
    await mail.close()

    assert [getattr(line, "reason", "") for line in caplog.records] == ["NoTls"]
    assert mailbox.count(address) == 0


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("mail.example.com", False),
        ("10.0.0.1", False),
        ("127.1", False),
        ("localhost.example.com", False),
        ("0.0.0.0", False),
        ("", False),
    ],
)
def test_hosts_that_are_this_machine(host: str, here: bool) -> None:
    assert is_loopback(host) is here


def test_in_development_a_mail_server_without_tls_will_do(service: Service, mailbox: Mailbox) -> None:
    address = fresh_address()
    with (
        partner_of(service, SERVICE_SMTP_URL=f"smtp://127.1:{mailbox.port}") as running,
        Client(base_url=running.url) as client,
    ):
        for _ in range(2):
            assert client.post("/auth/email/send", json={"email": address}).status_code == 200
        eventually(lambda: mailbox.count(address), wanted=2)

        assert running.logs().count("in plain") == 1


# ---- how much


@given(st.integers(1, 60), st.lists(st.sampled_from(["+4179000", "+4179001", "+8821000"]), max_size=120))
def test_within_an_hour_there_are_neither_too_many_nor_too_many_alike(most: int, prefixes: list[str]) -> None:
    hourly, passed = Hourly(most), []
    for number, prefix in enumerate(prefixes):
        if len(passed) < most and passed.count(prefix) < PREFIX_PER_HOUR:
            hourly.count(f"{prefix}{number:04d}")
            passed.append(prefix)
            continue
        with pytest.raises(TooManyMessages) as refused:
            hourly.count(f"{prefix}{number:04d}")
        assert 0 < refused.value.retry_after <= 3600


@given(st.integers(1, 60), st.lists(st.sampled_from(["+4179000", "+4179001", "+8821000"]), max_size=120))
def test_numbers_that_are_enrolled_leave_half_to_those_that_are(most: int, prefixes: list[str]) -> None:
    hourly = Hourly(most)
    for number, prefix in enumerate(prefixes):
        with suppress(TooManyMessages):
            hourly.count(f"{prefix}{number:04d}", enrols=True)

    for number in range(min(most // 2, PREFIX_PER_HOUR // 2)):
        hourly.count(f"+4179000{number:04d}")


def test_without_a_limit_nothing_is_counted() -> None:
    hourly = Hourly(0)
    for _ in range(200):
        hourly.count("+41790000000")


@pytest.mark.long
def test_a_crowd_of_people_does_not_ring_a_crowd_of_numbers(service: Service, sms_gateway: SmsGateway) -> None:
    numbers = [f"+8821{uuid.uuid4().int % 10**8:08d}" for _ in range(4)]
    with partner_of(service, SERVICE_SMS_URL=sms_gateway.url, SERVICE_SMS_MAX_PER_HOUR="6") as running:
        answers = []
        for number in numbers:
            with closing(sign_in(running)) as somebody:
                answers.append(somebody.post("/auth/mfa/sms/enroll", json={"phone": number}))
        eventually(lambda: [sms_gateway.count(number) for number in numbers[:3]], wanted=[1, 1, 1])

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3].json()["data"]["code"] == "too_many_messages"
    assert 0 < int(answers[3].headers["Retry-After"]) <= 3600
    assert sms_gateway.count(numbers[3]) == 0
