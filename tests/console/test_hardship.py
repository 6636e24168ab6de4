"""The client's handling of answers that it should not get, over a real wire."""

import asyncio
import contextlib
import gzip
import zlib
from collections.abc import AsyncIterator
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from console.wire import failures
from console.wire.api_client import MAX_ANSWER_BYTES, ApiClient
from console.wire.credentials import Session, TenantKey
from console.wire.failures import AnswerLost, Away, Failure, Malformed, Patience
from console.wire.tokens import Tokens, TokenStore
from tests.outside import odd_api
from tests.outside.loopback import HELD_BYTES
from tests.outside.odd_api import Deed, OddApi, answers, refuses, succeeds
from words.texts.moments import local_now

KEY = "key-that-nobody-else-may-see"
# Only what must run out is short, each limit by itself: any other answer may take its time.
HURRY = {"silent": Patience(silence=0.15), "drips": Patience(answer=0.3)}
# Sooner than a longer limit would end what a short one should have ended.
SECONDS = 20


class Thing(msgspec.Struct):
    """A shape as the screens have them."""

    id: str
    count: int
    parts: list[dict[str, str]] = []


@pytest.fixture
async def odd() -> AsyncIterator[OddApi]:
    async with odd_api.odd_api("http://127.0.0.1:9") as api:
        yield api


@pytest.fixture
async def client(odd: OddApi) -> AsyncIterator[ApiClient]:
    client = ApiClient(odd.url, TenantKey(KEY))
    yield client
    await client.close()


async def failure_of(client: ApiClient, method: str = "GET") -> Failure:
    with pytest.raises(Failure) as raised:
        async with asyncio.timeout(SECONDS):
            await (client.get("/thing", Thing) if method == "GET" else client.send(method, "/thing", Thing))
    return raised.value


def envelope(data: bytes) -> Deed:
    return answers(200, b'{"ok": true, "data": ' + data + b"}")


ODD: dict[str, tuple[Deed, type[Failure], str]] = {
    "silent": (odd_api.says_nothing, Away, "did not respond in time"),
    "drips": (odd_api.drips, Away, "did not respond in time"),
    "hangs up": (odd_api.hangs_up, Away, "broke off the response"),
    "cut": (odd_api.cuts, Away, "broke off the response"),
    "400": (refuses(400, "limit is too large"), failures.Answered, "limit is too large"),
    "401": (refuses(401, "who are you"), failures.SignedOut, "who are you"),
    "403": (refuses(403, "not yours"), failures.Forbidden, "not yours"),
    "403 mfa": (refuses(403, "show it", "mfa_required"), failures.MfaRequired, "show it"),
    "404": (refuses(404, "no such thing"), failures.Absent, "no such thing"),
    "409": (refuses(409, "somebody was first", "approval_resolved"), failures.Conflicted, "somebody was first"),
    "423": (refuses(423, "frozen", "frozen"), failures.Answered, "frozen"),
    "429": (refuses(429, "too many"), failures.TooFast, "too many"),
    "500": (refuses(500, "oh", X_Request_Id="req-7"), failures.Faulty, "oh (request req-7)"),
    "500 page": (
        answers(500, b"<h1>no</h1>", X_Request_Id="req-8"),
        failures.Faulty,
        "responded with status 500. (request req-8)",
    ),
    "502": (refuses(502, "no node", "rpc_unavailable"), failures.Faulty, "no node"),
    "502 page": (
        answers(502, b"<h1>Bad Gateway</h1>"),
        Away,
        "responded with 502: the service behind it is unavailable",
    ),
    "503 page": (answers(503, b""), Away, "responded with 503: the service behind it is unavailable"),
    "200 page": (answers(200, b"<h1>Sign in to the hotel</h1>"), Malformed, "but not like this service"),
    "no words": (answers(400, {"ok": False, "error": {"a": [1]}, "data": [2]}), failures.Answered, "status 400"),
    "half": (answers(200, b'{"ok": true, "data": {'), Malformed, "not like this"),
    "not utf-8": (envelope(b'"\xff\xfe"'), Malformed, "not like this"),
    "surrogate": (envelope(b'"\\ud800"'), Malformed, "not like this"),
    "control": (envelope(b'{"id": "\x1b[2J", "count": 1}'), Malformed, "not like this"),
    "deep": (envelope(b"[" * 100_000), Malformed, "not like this"),
    "deep, whole": (envelope(b"[" * 5_000 + b"]" * 5_000), Malformed, ""),
    "endless number": (envelope(b"9" * 5_000), Malformed, "not like this"),
    "infinite": (envelope(b"1e400"), Malformed, "not like this"),
    "array": (answers(200, [1, 2]), Malformed, "not like this"),
    "ok is a word": (answers(200, {"ok": "yes", "data": {}}), Malformed, "not like this"),
    "no data": (answers(200, {"ok": True}), Malformed, "cannot be parsed"),
    "null": (succeeds(None), Malformed, "cannot be parsed"),
    "missing": (succeeds({"id": "a"}), Malformed, "cannot be parsed"),
    "other kind": (succeeds({"id": 7, "count": 1}), Malformed, "cannot be parsed"),
    "null inside": (succeeds({"id": "a", "count": None}), Malformed, "cannot be parsed"),
    "object for list": (succeeds({"id": "a", "count": 1, "parts": {}}), Malformed, "cannot be parsed"),
    "huge number": (succeeds({"id": "a", "count": 1e300}), Malformed, "cannot be parsed"),
    "gzip": (answers(200, gzip.compress(b"[]"), Content_Encoding="gzip"), Malformed, "compressed"),
    "bomb": (answers(200, zlib.compress(b" " * 2**24), Content_Encoding="deflate"), Malformed, "compressed"),
    "ok but 500": (answers(500, {"ok": True, "data": {"id": "a", "count": 1}}), failures.Faulty, "status 500"),
}


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_answer_is_a_failure_with_a_sentence(odd: OddApi, client: ApiClient, name: str) -> None:
    deed, kind, words = ODD[name]
    client.patience = HURRY.get(name, client.patience)
    odd.does(deed)

    failure = await failure_of(client)

    assert (type(failure), words in failure.sentence) == (kind, True), failure.sentence
    assert failure.sentence.isprintable()
    assert len(failure.sentence) < 700


@pytest.mark.parametrize("name", ["silent", "drips", "hangs up", "cut", "502 page"])
async def test_a_change_whose_answer_is_lost_is_called_lost(odd: OddApi, client: ApiClient, name: str) -> None:
    client.patience = HURRY.get(name, client.patience)
    odd.does(ODD[name][0])

    assert type(await failure_of(client, "POST")) is AnswerLost


async def test_a_change_that_was_never_sent_is_not_called_lost(odd: OddApi, client: ApiClient) -> None:
    await odd.refuse()

    failure = await failure_of(client, "POST")

    assert type(failure) is Away
    assert failure.sentence == f"{odd.url} cannot be reached."


async def test_an_answer_without_an_end_is_not_collected(odd: OddApi, client: ApiClient) -> None:
    odd.does(odd_api.floods)

    failure = await failure_of(client)

    assert failure.sentence == "The response is too long for this console."
    assert odd.sent < MAX_ANSWER_BYTES + HELD_BYTES


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        ("0", 1),
        ("-3", 1),
        ("", 1),
        ("soon", 1),
        ("٣", 1),
        ("9" * 4999, 1),
        ("99999999", 900),
        ("Wed, 01 Jan 2020 00:00:30 GMT", 30),
        ("Tue, 31 Dec 2019 00:00:00 GMT", 1),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 900),
    ],
)
async def test_how_long_to_wait_is_read_in_both_forms_and_has_a_bound(
    odd: OddApi, client: ApiClient, value: str, seconds: int
) -> None:
    odd.does(refuses(429, "too many", Date="Wed, 01 Jan 2020 00:00:00 GMT", Retry_After=value))

    failure = await failure_of(client)

    assert isinstance(failure, failures.TooFast)
    assert failure.retry_after == seconds


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_never_followed(odd: OddApi, client: ApiClient, status: int) -> None:
    async with odd_api.odd_api("http://127.0.0.1:9") as elsewhere:
        odd.does(answers(status, b"", Location=f"{elsewhere.url}/thing"))

        failure = await failure_of(client)

    assert isinstance(failure, Malformed)
    assert elsewhere.heard == []


async def test_a_cookie_is_not_kept(odd: OddApi, client: ApiClient) -> None:
    odd.does(succeeds({"id": "a", "count": 1}, Set_Cookie="session=theirs; Path=/"))

    await client.get("/thing", Thing)
    await client.get("/thing", Thing)

    assert [one.headers.get("cookie") for one in odd.heard] == [None, None]


async def test_nothing_is_asked_for_compressed(odd: OddApi, client: ApiClient) -> None:
    odd.does(succeeds({"id": "a", "count": 1}))

    await client.get("/thing", Thing)

    assert odd.heard[0].headers["accept-encoding"] == "identity"


async def test_a_proxy_of_the_environment_does_not_see_what_is_for_this_machine(
    odd: OddApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.does(succeeds({"id": "a", "count": 1}))
    async with odd_api.odd_api("http://127.0.0.1:9") as proxy:
        proxy.does(succeeds({"id": "from the proxy", "count": 1}))
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        client = ApiClient(odd.url, TenantKey(KEY))

        assert (await client.get("/thing", Thing)).id == "a"

        assert proxy.heard == []
        await client.close()


@pytest.mark.parametrize(
    ("date", "hours"),
    [
        (format_datetime(local_now() + timedelta(hours=20), usegmt=True), 20),
        ("Thu, 01 Jan 2037 00:00:00 GMT", 0),
        ("Sun, 99 Foo 2037", 0),
        ("", 0),
        ("٣", 0),
    ],
    ids=["theirs", "years-off", "no-day", "none", "no-date"],
)
async def test_the_clock_is_the_services_where_it_has_one(
    odd: OddApi, client: ApiClient, date: str, hours: int
) -> None:
    odd.does(succeeds({"id": "a", "count": 1}, Date=date))

    await client.get("/thing", Thing)

    assert abs(client.now() - local_now() - timedelta(hours=hours)) < timedelta(minutes=20)


async def test_a_gateways_clock_counts_for_nothing(odd: OddApi, client: ApiClient) -> None:
    odd.does(answers(503, b"<h1>away</h1>", Date=format_datetime(local_now() + timedelta(hours=20), usegmt=True)))

    await failure_of(client)

    assert client.now() - local_now() < timedelta(minutes=20)


@pytest.mark.parametrize("total", ["٣", "9" * 4999, "-1", "many", ""])
async def test_a_count_that_is_none_is_not_believed(odd: OddApi, client: ApiClient, total: str) -> None:
    odd.does(succeeds([{"id": "a", "count": 1}], X_Total_Count=total))

    assert (await client.get_page("/thing", Thing)).total == 1


async def test_the_last_of_two_equal_names_counts(odd: OddApi, client: ApiClient) -> None:
    odd.does(envelope(b'{"id": "a", "id": "b", "count": 1}'))

    assert (await client.get("/thing", Thing)).id == "b"


@pytest.mark.parametrize("size", [1, 20_000])
async def test_text_is_made_harmless_however_large_the_answer_is(odd: OddApi, client: ApiClient, size: int) -> None:
    odd.does(succeeds({"id": "\x1b[2J\u202e", "count": 1, "parts": [{"\x07": "\x7f"}] * size}))

    thing = await client.get("/thing", Thing)

    assert thing.id == "\\x1b[2J<U+202E>"
    assert thing.parts == [{"\\x07": "\\x7f"}] * size


async def test_the_credential_is_in_nothing_that_is_shown(odd: OddApi, client: ApiClient) -> None:
    odd.does(answers(200, b"<h1>"))
    raised = [await failure_of(client)]
    await odd.refuse()
    raised.append(await failure_of(client, "POST"))

    shown = "".join(f"{one!r} {one} {one.__cause__} {one.__dict__}" for one in raised)
    shown += f"{client!r} {client.credential!r}"

    assert KEY not in shown


READ_ONLY_MAY = {
    "/auth/device/code": True,
    "/auth/device/token": True,
    "/auth/logout": True,
    "/vault/buyer/simulate": True,
    "/secrets/routes/explain": True,
    "/auth/mfa/totp/enroll": False,
    "/auth/mfa/totp/verify": False,
    "/auth/mfa/recovery-codes": False,
    "/auth/sessions/s": False,
    "/approvals/a/approve": False,
    "/agents/auth/logout": False,
}


@pytest.mark.parametrize("path", READ_ONLY_MAY)
async def test_read_only_sends_nothing_but_what_signs_in_or_out_or_only_asks(
    odd: OddApi, client: ApiClient, path: str
) -> None:
    odd.does(succeeds({"id": "a", "count": 1}))
    client.read_only = True

    with contextlib.suppress(failures.ReadOnly):
        await client.send("POST", path, Thing)

    assert [one.path for one in odd.heard] == ([path] if READ_ONLY_MAY[path] else [])


async def test_read_only_shows_a_second_factor_and_sets_none_up(odd: OddApi, client: ApiClient, tmp_path: Path) -> None:
    store = TokenStore(tmp_path, "default", odd.url)
    tokens = Tokens("token", "refresh", local_now() + timedelta(hours=1), "u", "t")
    store.write(tokens)
    client.credential, client.read_only = Session(store, tokens), True
    answer = {"token": "new", "refreshToken": "r", "expiresIn": 900, "user": {"id": "u"}, "tenant": {"id": "t"}}
    odd.does(succeeds(answer))

    with pytest.raises(failures.ReadOnly):
        await client.confirm_authenticator("123456")
    assert odd.heard == []

    await client.step_up("totp", "123456")
    assert [one.path for one in odd.heard] == ["/auth/mfa/totp/step-up"]
    assert client.credential.headers() == {"Authorization": "Bearer new"}


async def test_cancelled_requests_do_not_exhaust_the_connections(odd: OddApi, client: ApiClient) -> None:
    odd.does(odd_api.says_nothing)
    for _ in range(30):
        given_up = asyncio.ensure_future(client.get("/thing", Thing))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
    odd.does(succeeds({"id": "a", "count": 1}))

    assert (await client.get("/thing", Thing)).id == "a"


async def test_the_listener_hears_when_the_service_goes_and_comes(odd: OddApi, client: ApiClient) -> None:
    heard: list[Any] = []
    client.listener = heard.append
    for deed in (odd_api.hangs_up, refuses(500, "oh"), answers(503, b""), succeeds({})):
        odd.does(deed)
        await failure_of(client)

    assert [type(one) for one in heard] == [Away, type(None), Away, type(None)]
