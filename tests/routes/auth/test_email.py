"""Sign-in with a code by e-mail."""

import socket
import statistics
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.deployments import partner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, fresh_address, mails_to_strangers
from tests.fixtures.server import Service
from tests.outside.smtp_server import LOGIN, PASSWORD, Mailbox, running_mail_server
from tests.routes.auth.factors import BLANKS, put_blanks

# Headers that differ from request to request.
OWN = {"x-request-id", "date"}
ADDRESS, OTHER = "codes@example.com", "nobody@example.com"


def send(client: Client, address: str) -> httpx.Response:
    return client.post("/auth/email/send", json={"email": address})


def new_code(client: Client, mailbox: Mailbox, address: str) -> str:
    """The code that is mailed to an address now."""
    before = mailbox.count(address.lower())
    assert send(client, address).status_code == 200
    return mailbox.code_for(address.lower(), after=before)


def verify(client: Client, address: str, code: Any, **more: Any) -> httpx.Response:
    return client.post("/auth/email/verify", json={"email": address, "code": code, **more})


def outcome(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


def wrong(code: str, by: int = 1) -> str:
    """Another code."""
    return f"{(int(code) + by) % 1_000_000:06d}"


@pytest.fixture
def address() -> str:
    """One that nobody has."""
    return fresh_address()


@pytest.fixture
def somebody(as_nobody: Client, mailbox: Mailbox, address: str) -> dict[str, Any]:
    """The session of a person who signed in by mail just now."""
    return verify(as_nobody, address, new_code(as_nobody, mailbox, address)).json()["data"]


# ---- what works


def test_a_code_signs_in_and_makes_a_person_with_a_tenant(somebody: dict[str, Any], address: str) -> None:
    assert somebody["user"]["email"] == address
    assert somebody["user"]["walletAddress"] is None
    assert somebody["tenant"]["id"] == f"personal-{somebody['user']['id']}"
    assert (somebody["tenant"]["role"], somebody["provider"], somebody["expiresIn"]) == ("owner", "email", 900)
    assert somebody["tenant"]["apiKey"]
    assert somebody["mfa"] == {"verifiedAt": None, "methods": []}


def test_the_same_address_is_the_same_person(
    as_nobody: Client, mailbox: Mailbox, somebody: dict[str, Any], address: str
) -> None:
    again = verify(as_nobody, address, new_code(as_nobody, mailbox, address)).json()["data"]

    assert again["user"] == somebody["user"]
    assert "apiKey" not in again["tenant"]


def test_case_does_not_matter(as_nobody: Client, mailbox: Mailbox, somebody: dict[str, Any], address: str) -> None:
    again = verify(as_nobody, address.title(), new_code(as_nobody, mailbox, address.upper())).json()["data"]

    assert again["user"] == somebody["user"]


def test_the_mail_says_where_and_for_how_long(
    service: Service, as_nobody: Client, mailbox: Mailbox, address: str
) -> None:
    code = new_code(as_nobody, mailbox, address)

    mail = mailbox.mail_for(address)
    assert code in mail.message["Subject"]
    assert mail.message["To"] == address
    assert mail.message["Auto-Submitted"] == "auto-generated"
    assert f"http://localhost:{service.port}" in mail.text
    assert "ten minutes" in mail.text


# ---- codes that do not work


def test_a_wrong_code_is_refused_and_the_right_one_still_works(
    as_nobody: Client, mailbox: Mailbox, address: str
) -> None:
    code = new_code(as_nobody, mailbox, address)

    assert outcome(verify(as_nobody, address, wrong(code))) == (401, "code_invalid")
    assert verify(as_nobody, address, code).status_code == 200


@pytest.mark.parametrize("bad", ["", "x" * 65, "1" + " " * 64, None, 123456, ["123456"]])
def test_a_malformed_code_is_400(as_nobody: Client, address: str, bad: Any) -> None:
    answer = verify(as_nobody, address, bad)

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["code"])


@pytest.mark.parametrize("blank", BLANKS)
def test_a_code_counts_however_it_is_spaced(as_nobody: Client, mailbox: Mailbox, address: str, blank: str) -> None:
    code = new_code(as_nobody, mailbox, address)

    assert verify(as_nobody, address, put_blanks(code, blank)).status_code == 200


@pytest.mark.parametrize("bent", ["0{}", "{}\x00", "{}0", "-{}", "{}."])
def test_a_code_is_compared_to_the_letter(as_nobody: Client, mailbox: Mailbox, address: str, bent: str) -> None:
    code = new_code(as_nobody, mailbox, address)

    assert outcome(verify(as_nobody, address, bent.format(code))) == (401, "code_invalid")


def test_five_wrong_codes_kill_the_code(as_nobody: Client, mailbox: Mailbox, address: str) -> None:
    code = new_code(as_nobody, mailbox, address)

    guesses = [outcome(verify(as_nobody, address, wrong(code, by))) for by in range(1, 6)]

    assert guesses == [(401, "code_invalid")] * 5
    assert outcome(verify(as_nobody, address, code)) == (401, "code_invalid")
    assert verify(as_nobody, address, new_code(as_nobody, mailbox, address)).status_code == 200


def test_five_wrong_codes_at_once_kill_it_too(as_nobody: Client, mailbox: Mailbox, address: str) -> None:
    code = new_code(as_nobody, mailbox, address)

    with ThreadPoolExecutor(5) as threads:
        list(threads.map(lambda by: verify(as_nobody, address, wrong(code, by)), range(1, 6)))

    assert outcome(verify(as_nobody, address, code)) == (401, "code_invalid")


async def test_after_ten_guesses_one_has_to_wait(
    as_nobody: Client, mailbox: Mailbox, address: str, owner: asyncpg.Connection
) -> None:
    guesses = [outcome(verify(as_nobody, address, "000000")) for _ in range(10)]
    code = new_code(as_nobody, mailbox, address)

    answer = verify(as_nobody, address, code)

    assert guesses == [(401, "code_invalid")] * 10
    assert outcome(answer) == (429, "too_many_attempts")
    assert 3500 < int(answer.headers["Retry-After"]) <= 3600
    # The answer is the same whatever is guessed, and an hour later the right code works.
    assert outcome(verify(as_nobody, address, wrong(code))) == (429, "too_many_attempts")
    hour = "UPDATE attempts SET ends_at = ends_at - interval '1 hour' WHERE subject = $1"
    assert await owner.execute(hour, f"email:{address}") == "UPDATE 1"
    assert verify(as_nobody, address, code).status_code == 200


def test_twenty_guesses_at_once_are_no_more_than_ten(as_nobody: Client, address: str) -> None:
    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(lambda _: verify(as_nobody, address, "000000"), range(20)))

    assert sorted(answer.status_code for answer in answers) == [401] * 10 + [429] * 10


def test_the_spelling_of_an_address_gives_no_more_guesses(as_nobody: Client, address: str) -> None:
    spelled = [address, address.upper(), address.title()] * 4

    answers = [verify(as_nobody, spelling, "000000").status_code for spelling in spelled]

    assert answers == [401] * 10 + [429] * 2


def test_a_right_code_forgets_the_wrong_ones(as_nobody: Client, mailbox: Mailbox, address: str) -> None:
    for _ in range(3):
        code = new_code(as_nobody, mailbox, address)
        assert [verify(as_nobody, address, wrong(code, by)).status_code for by in range(1, 5)] == [401] * 4
        assert verify(as_nobody, address, code).status_code == 200


def test_a_code_works_once(as_nobody: Client, mailbox: Mailbox, address: str) -> None:
    code = new_code(as_nobody, mailbox, address)

    assert verify(as_nobody, address, code).status_code == 200
    assert outcome(verify(as_nobody, address, code)) == (401, "code_invalid")


def test_a_code_works_once_even_if_it_comes_at_once(as_nobody: Client, mailbox: Mailbox, address: str) -> None:
    code = new_code(as_nobody, mailbox, address)

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: verify(as_nobody, address, code), range(4)))

    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]


def test_a_newer_code_replaces_the_older_one(as_nobody: Client, mailbox: Mailbox, address: str) -> None:
    older, newer = new_code(as_nobody, mailbox, address), new_code(as_nobody, mailbox, address)

    if older != newer:
        assert outcome(verify(as_nobody, address, older)) == (401, "code_invalid")
    assert verify(as_nobody, address, newer).status_code == 200


async def test_a_code_does_not_work_after_ten_minutes(
    as_nobody: Client, mailbox: Mailbox, address: str, owner: asyncpg.Connection
) -> None:
    code = new_code(as_nobody, mailbox, address)
    moved = "UPDATE sign_in_codes SET expires_at = expires_at - interval '10 minutes' WHERE subject = $1"

    assert await owner.execute(moved, address) == "UPDATE 1"

    assert outcome(verify(as_nobody, address, code)) == (401, "code_invalid")


def test_a_code_is_for_one_address(as_nobody: Client, mailbox: Mailbox, address: str) -> None:
    code = new_code(as_nobody, mailbox, address)

    assert outcome(verify(as_nobody, fresh_address(), code)) == (401, "code_invalid")
    assert verify(as_nobody, address, code).status_code == 200


def test_a_tenant_of_others_is_refused_and_makes_nobody(
    as_nobody: Client, mailbox: Mailbox, address: str, tenant: Tenant
) -> None:
    answers = [
        verify(as_nobody, address, new_code(as_nobody, mailbox, address), tenantId=name)
        for name in (tenant.id, "no-such-tenant")
    ]

    assert [outcome(answer) for answer in answers] == [(403, "not_a_member")] * 2
    assert answers[0].text == answers[1].text
    code = new_code(as_nobody, mailbox, address)
    assert "apiKey" in verify(as_nobody, address, code).json()["data"]["tenant"]


def test_a_code_is_used_up_by_a_sign_in_that_failed(
    as_nobody: Client, mailbox: Mailbox, address: str, tenant: Tenant
) -> None:
    code = new_code(as_nobody, mailbox, address)

    assert outcome(verify(as_nobody, address, code, tenantId=tenant.id)) == (403, "not_a_member")
    assert outcome(verify(as_nobody, address, code)) == (401, "code_invalid")


async def test_a_used_code_that_is_put_back_lives_no_longer_than_it_did(
    as_nobody: Client, mailbox: Mailbox, address: str, owner: asyncpg.Connection
) -> None:
    code = new_code(as_nobody, mailbox, address)
    mac = await owner.fetchval("SELECT mac FROM sign_in_codes WHERE subject = $1", address)
    assert verify(as_nobody, address, code).status_code == 200
    later = "INSERT INTO sign_in_codes VALUES ('email', $1, $2, 0, now() + interval '9 minutes')"
    await owner.execute(later, address, mac)

    assert outcome(verify(as_nobody, address, code)) == (401, "code_invalid")


@pytest.mark.parametrize(
    "bad",
    [
        "ann",
        "ann@",
        "@example.com",
        "ann@example",
        "ann example@example.com",
        "ann@exam ple.com",
        "ann@@example.com",
        "ann@example.com\nBcc: x@example.com",
        "ann@example.com\r\nDATA",
        "Ann <ann@example.com>",
        '"ann"@example.com',
        "ann@[127.0.0.1]",
        "ann@127.0.0.1",
        "ann@example.com, x@example.com",
        "ann@-example.com",
        "ann@example..com",
        ".ann@example.com",
        "ann.@example.com",
        "a..b@example.com",
        "ann@example.com.",
        "ann@ex\u00e4mple.com",
        "\u0430nn@example.com",
        "a" * 65 + "@example.com",
        "ann@" + "a" * 64 + ".com",
        "ann@example.com\x00",
        "ann@example.c",
    ],
)
def test_a_malformed_address_is_400_in_a_sentence(as_nobody: Client, mailbox: Mailbox, bad: str) -> None:
    before = len(mailbox.mails())

    answers = send(as_nobody, bad), verify(as_nobody, bad, "123456")

    assert [outcome(answer) for answer in answers] == [(400, "bad_email_address")] * 2
    assert answers[0].json()["error"] == "Not a valid e-mail address; write one such as name@example.com."
    assert mails_to_strangers(mailbox, before) == []


@pytest.mark.parametrize("bad", ["", "a@", None, 5, ["ann@example.com"], "a" * 250 + "@example.com"])
def test_a_malformed_address_is_400(as_nobody: Client, bad: Any) -> None:
    answer = send(as_nobody, bad)

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["email"])


# ---- who asks learns nothing


def all_but_moment(answer: httpx.Response) -> Any:
    """All that an answer says but the moment."""
    body = answer.json()
    left = body["data"].pop("expiresAt")
    assert 590 < seconds_until(left) <= 600
    headers = {name: value for name, value in answer.headers.items() if name not in OWN}
    return answer.status_code, body, headers


def seconds_until(moment: str) -> float:
    return (datetime.fromisoformat(moment) - datetime.now(UTC)).total_seconds()


def test_a_known_and_an_unknown_address_get_the_same_answer(
    as_nobody: Client, somebody: dict[str, Any], address: str
) -> None:
    known, unknown = send(as_nobody, address), send(as_nobody, fresh_address())

    assert all_but_moment(known) == all_but_moment(unknown)


def test_a_sixth_code_within_the_hour_is_not_sent_and_nobody_is_told(
    as_nobody: Client, mailbox: Mailbox, address: str
) -> None:
    answers = [send(as_nobody, address if number % 2 else address.upper()) for number in range(5)]
    eventually(lambda: mailbox.count(address), wanted=5)
    fifth = mailbox.mails(address)

    sixth = send(as_nobody, address)

    assert all_but_moment(sixth) == all_but_moment(answers[0])
    # A mail to another address has come; one to this would have come before it.
    last = fresh_address()
    new_code(as_nobody, mailbox, last)
    assert mailbox.mails(address) == fifth


def test_the_code_that_was_sent_last_works_although_a_sixth_was_asked_for(
    as_nobody: Client, mailbox: Mailbox, address: str
) -> None:
    code = [new_code(as_nobody, mailbox, address) for _ in range(5)][-1]
    assert send(as_nobody, address).status_code == 200

    assert verify(as_nobody, address, code).status_code == 200


def test_a_guess_takes_as_long_for_an_address_without_a_code(as_nobody: Client, mailbox: Mailbox) -> None:
    def apart() -> float:
        known, unknown = ([fresh_address() for _ in range(8)] for _ in range(2))
        for one in known:
            new_code(as_nobody, mailbox, one)
        return _apart(
            (_seconds(verify, as_nobody, one, "x"), _seconds(verify, as_nobody, other, "x"))
            for one, other in zip(known * 4, unknown * 4, strict=True)
        )

    # What one of them takes longer it takes each time; what a busy machine makes of a comparison it does not.
    assert any(abs(apart()) < 0.01 for _ in range(6))


def _seconds(act: Any, *given: Any) -> float:
    began = time.perf_counter()
    act(*given)
    return time.perf_counter() - began


def _apart(took: Iterable[tuple[float, float]]) -> float:
    """Measure how much longer the first of two usually takes, by turns: what slows the machine meets both."""
    return statistics.median(one - other for one, other in took)


@pytest.fixture
def three(as_nobody: Client, mailbox: Mailbox) -> list[str]:
    """The addresses of people who signed in by mail just now; each may be sent four more codes within the hour."""
    addresses = [fresh_address() for _ in range(3)]
    for one in addresses:
        assert verify(as_nobody, one, new_code(as_nobody, mailbox, one)).status_code == 200
    return addresses


@pytest.fixture
def hanging(mailbox: Mailbox) -> Iterator[Mailbox]:
    """The mail server while it answers nobody."""
    mailbox.be("hang")
    yield mailbox
    mailbox.be("accept")


def test_a_mail_server_that_hangs_delays_no_request(as_nobody: Client, three: list[str], hanging: Mailbox) -> None:
    took = [(_seconds(send, as_nobody, one), _seconds(send, as_nobody, fresh_address())) for one in three * 3]

    times = [seconds for pair in took for seconds in pair]
    assert statistics.median(times) < 1
    # Of the fifteen seconds that the mail server is given.
    assert max(times) < 10
    assert abs(_apart(took)) < 0.5
    # Everybody else is served as well, while mails wait.
    assert as_nobody.get("/ready").status_code == 200


# ---- deployments with another mail server, or with none


@pytest.fixture(scope="module")
def mute(service: Service) -> Iterator[Service]:
    """A deployment without any mail server, which takes three requests a minute and address."""
    small = {f"SERVICE_RATE_LIMIT_{name}": "3" for name in ("NONCE", "VERIFY", "CODES", "REFRESH")}
    with partner_of(service, SERVICE_TRUSTED_PROXIES="127.0.0.0/8", **small) as running:
        yield running


@pytest.fixture(scope="module")
def cut_off(service: Service) -> Iterator[Service]:
    """A deployment whose mail server is away."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with partner_of(service, SERVICE_SMTP_URL=f"smtp://127.0.0.1:{port}") as running:
        yield running


def client_of(service: Service, address: str = "127.0.0.1") -> Client:
    return Client(base_url=service.url, timeout=30, headers={"X-Forwarded-For": address})


def test_without_a_mail_server_the_answer_is_503_and_says_what_is_missing(mute: Service) -> None:
    with client_of(mute, "192.0.2.1") as client:
        answer = send(client, OTHER)

    assert outcome(answer) == (503, "email_not_configured")
    assert "SERVICE_SMTP_URL" in answer.json()["error"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/auth/nonce", None),
        ("POST", "/auth/verify", {"message": "x", "signature": "0xab"}),
        ("POST", "/auth/email/send", {"email": OTHER}),
        ("POST", "/auth/email/verify", {"email": OTHER, "code": "x"}),
        ("POST", "/auth/refresh", {"refreshToken": "x"}),
    ],
)
def test_public_routes_are_limited_by_client_address(mute: Service, method: str, path: str, body: Any) -> None:
    # Each route here has an address of its own, which no other test uses.
    place = f"198.51.100.{len(path)}"
    with client_of(mute, place) as client, client_of(mute, "203.0.113." + place.rpartition(".")[2]) as other:
        answers = [client.request(method, path, json=body) for _ in range(4)]
        elsewhere = other.request(method, path, json=body)

    assert 429 not in {answer.status_code for answer in (*answers[:3], elsewhere)}
    assert outcome(answers[3]) == (429, "rate_limited")
    assert 1 <= int(answers[3].headers["Retry-After"]) <= 60
    assert answers[0].headers["RateLimit-Limit"] == "3"


def test_sending_and_guessing_codes_count_together(mute: Service) -> None:
    with client_of(mute, "192.0.2.77") as client:
        answers = [send(client, OTHER), *(verify(client, OTHER, "x") for _ in range(3))]

    assert [answer.status_code for answer in answers] == [503, 401, 401, 429]


def test_a_mail_server_that_is_away_is_nobodys_business_but_the_operators(as_nobody: Client, cut_off: Service) -> None:
    with client_of(cut_off) as client:
        answer = send(client, ADDRESS)

    assert all_but_moment(answer) == all_but_moment(send(as_nobody, OTHER))
    line = eventually(lambda: [line for line in cut_off.logs().splitlines() if "not sent" in line])[0]
    assert "ConnectionRefusedError" in line
    assert ADDRESS not in cut_off.logs()


@pytest.mark.parametrize("mode", ["refuse", "busy", "close"])
def test_a_mail_that_is_not_taken_is_logged_without_what_it_says(
    service: Service, as_nobody: Client, mailbox: Mailbox, address: str, mode: Any
) -> None:
    before = service.logs().count('"not sent"')
    mailbox.be(mode)
    try:
        assert send(as_nobody, address).status_code == 200
        # Another test's mail may fail late, and its line come first.
        eventually(lambda: mailbox.has_refused(address) and service.logs().count('"not sent"') > before)
    finally:
        mailbox.be("accept")

    assert address not in service.logs()
    assert mailbox.count(address) == 0


@pytest.mark.long
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_mail_goes_encrypted_and_with_the_password_of_the_setting(
    service: Service, address: str, security: Any
) -> None:
    with (
        running_mail_server(security) as mailbox,
        partner_of(
            service,
            SERVICE_SMTP_URL=f"{mailbox.url}?from=custody@mail.test",
            SSL_CERT_FILE=str(mailbox.ca_file),
        ) as running,
        client_of(running) as client,
    ):
        code = new_code(client, mailbox, address)
        mail = mailbox.mail_for(address)

        assert (mail.encrypted, mail.login, mail.sender) == (True, LOGIN, "custody@mail.test")
        assert verify(client, address, code).status_code == 200


@pytest.mark.long
def test_a_server_that_we_do_not_trust_gets_neither_password_nor_mail(service: Service, address: str) -> None:
    with (
        running_mail_server("starttls") as mailbox,
        partner_of(service, SERVICE_SMTP_URL=mailbox.url) as running,
        client_of(running) as client,
    ):
        assert send(client, address).status_code == 200

        eventually(lambda: "SSLCertVerificationError" in running.logs())
        assert mailbox.mails() == []


@pytest.mark.long
def test_a_password_is_never_said_in_the_clear(service: Service, mailbox: Mailbox, address: str) -> None:
    # As if somebody between us and the server had taken its STARTTLS away.
    url = mailbox.url.replace("smtp://", f"smtp://{quote(LOGIN)}:{quote(PASSWORD)}@")
    with partner_of(service, SERVICE_SMTP_URL=url) as running, client_of(running) as client:
        assert send(client, address).status_code == 200

        eventually(lambda: '"not sent"' in running.logs())
        assert mailbox.count(address) == 0


def test_a_mail_sign_in_and_a_wallet_sign_in_are_two_people(person: Person, somebody: dict[str, Any]) -> None:
    assert person.id != somebody["user"]["id"]
