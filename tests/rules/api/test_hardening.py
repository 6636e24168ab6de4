"""Signed requests and idempotency keys: what of a change is checked before anything is done, and what is hashed."""

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from sanic import Request
from sanic.compat import Header
from sanic.response import HTTPResponse

from api.http import idempotency
from api.http.authorization import AuthorizationAmbiguous, AuthorizationMalformed
from api.http.hardening import IdempotencyKeyRequired, RequestTimeRequired, SignatureRequired, check
from api.http.idempotency import BadIdempotencyKey, IdempotencyInFlight, InFlight, counters, with_key
from api.http.single_headers import HeaderMalformed
from api.routes import endpoints
from custody.idempotency.counts import Counter, Counts
from custody.identity.request_signature import RequestExpired, RequestStale
from custody.kit.callers import AgentCaller, Caller, Origin, PlatformCaller, Proof, TenantCaller
from custody.kit.errors import CustodyError
from custody.protocol.identity.credentials import CheckRequestSignature

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
AT = str(int(NOW.timestamp()))
ROUTES = {f"{one.method} {one.contract_path}": one for one in endpoints()}
CREATE, SIGN, READ = ROUTES["POST /agents"], ROUTES["POST /vault/{agentId}/sign"], ROUTES["GET /agents"]
UNSIGNED = next(one for one in ROUTES.values() if one.unsigned)
SIGNER, QUORUM = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
ORIGIN = Origin("request")
TENANT = TenantCaller(proof=Proof("tenant_key", "key"), origin=ORIGIN, tenant="acme", principal="tenant-key:abc")
AGENT = AgentCaller(proof=Proof("agent", "token"), origin=ORIGIN, tenant="acme", agent="payer")
OPERATOR = PlatformCaller(proof=Proof("platform_key", "key"), origin=ORIGIN, key_prefix="pk_abc", scopes=None)
SIGNED = {"x-service-signature": "sig", "idempotency-key": "12345678"}
SHOWN = {"x-service-signer-id": SIGNER, "x-service-signature": "sig", "idempotency-key": "12345678"}


def request(*headers: tuple[str, str], path: bytes = b"/agents?a=b", body: bytes = b"{}") -> Any:
    found: Any = Request(path, Header(headers), "1.1", "POST", None, None)  # type: ignore[arg-type]
    found.body = body
    return found


@dataclass
class Demands:
    """The demands of a deployment: times, and signatures."""

    require_request_expiry: bool = False
    require_auth_signature: bool = False


@dataclass
class Asked:
    """A worker that is asked, and refuses where it is to."""

    refusal: CustodyError | None = None
    messages: list[tuple[Any, Caller]] = field(default_factory=list)

    @property
    def workers(self) -> "Asked":
        return self

    async def ask(self, message: Any, caller: Caller) -> None:
        self.messages.append((message, caller))
        if self.refusal is not None:
            raise self.refusal


async def run_check(
    headers: dict[str, str], *, caller: Caller = TENANT, endpoint: Any = CREATE, **demands: bool
) -> tuple[Caller, list[Any]]:
    ports: Any = Asked()
    found = await check(ports, Demands(**demands), endpoint, request(*headers.items()), caller, NOW)  # type: ignore[arg-type]
    return found, ports.messages


async def test_a_plain_change_is_let_by_where_nothing_is_demanded() -> None:
    assert await run_check({}) == (TENANT, [])


@pytest.mark.parametrize(
    ("headers", "demands", "refusal"),
    [
        ({}, {"require_request_expiry": True}, RequestTimeRequired),
        ({}, {"require_auth_signature": True}, SignatureRequired),
        ({"x-service-request-timestamp": "1"}, {}, RequestStale),
        ({"x-service-request-expires-at": "1"}, {}, RequestExpired),
        ({"x-service-request-timestamp": "1"}, {"require_request_expiry": True}, RequestStale),
        ({"x-service-request-expires-at": "1"}, {"require_request_expiry": True}, RequestExpired),
        ({"x-service-signature": "sig"}, {}, IdempotencyKeyRequired),
        ({"x-service-signature": "s" * 1025, "idempotency-key": "12345678"}, {}, HeaderMalformed),
        ({"x-service-signature": "ß", "idempotency-key": "12345678"}, {}, HeaderMalformed),
    ],
)
async def test_a_request_that_is_not_as_it_must_be_is_refused_before_anybody_is_asked(
    headers: dict[str, str], demands: dict[str, Any], refusal: type[CustodyError]
) -> None:
    with pytest.raises(refusal):
        await run_check(headers, **demands)


@pytest.mark.parametrize("name", ["x-service-request-timestamp", "x-service-request-expires-at"])
async def test_one_time_is_enough_where_one_is_demanded(name: str) -> None:
    later = str(int(AT) + 30) if name.endswith("at") else AT
    assert await run_check({name: later}, require_request_expiry=True) == (TENANT, [])


NAMES = (
    "x-service-request-timestamp",
    "x-service-request-expires-at",
    "x-service-signature",
    "x-service-signing-key-id",
    "x-service-signer-id",
    "idempotency-key",
)


@pytest.mark.parametrize("name", NAMES)
async def test_a_header_that_came_twice_is_refused(name: str) -> None:
    once = {one: AT for one in NAMES if one != "x-service-request-expires-at"}
    twice = request(*once.items(), (name, AT), (name, "2"))
    with pytest.raises(HeaderMalformed):
        await check(Asked(), Demands(), CREATE, twice, TENANT, NOW)  # type: ignore[arg-type]


async def test_a_signature_is_checked_by_a_worker_over_all_of_the_request() -> None:
    later = str(int(AT) + 30)
    headers = SIGNED | {
        "x-service-request-timestamp": AT,
        "x-service-request-expires-at": later,
        "x-service-signing-key-id": "key",
        "x-service-signer-id": SIGNER,
    }
    caller, asked = await run_check(headers, require_auth_signature=True, require_request_expiry=True)

    message = CheckRequestSignature(
        method="POST",
        path="/agents?a=b",
        timestamp=AT,
        expires_at=later,
        idempotency_key="12345678",
        body_sha256=hashlib.sha256(b"{}").hexdigest(),
        signature="sig",
        key_id="key",
        signer_id=SIGNER,
    )
    assert (caller, asked) == (TENANT, [(message, TENANT)])


async def test_the_longest_signature_is_checked_like_any() -> None:
    ports, longest = Asked(), SIGNED | {"x-service-signature": "s" * 1024}
    await check(ports, Demands(), CREATE, request(*longest.items()), TENANT, NOW)  # type: ignore[arg-type]
    [(message, _)] = ports.messages
    assert message.signature == "s" * 1024


async def test_a_refusal_of_the_worker_is_the_answer() -> None:
    with pytest.raises(SignatureRequired):
        await check(Asked(SignatureRequired()), Demands(), CREATE, request(*SIGNED.items()), TENANT, NOW)  # type: ignore[arg-type]


async def test_a_route_that_may_come_unsigned_may_but_what_is_there_is_checked() -> None:
    assert await run_check({}, endpoint=UNSIGNED, require_auth_signature=True) == (TENANT, [])
    _, asked = await run_check(SIGNED, endpoint=UNSIGNED)
    assert len(asked) == 1


async def test_a_signer_s_authorisation_goes_with_the_caller_and_no_worker_is_asked_now() -> None:
    times = {"x-service-request-timestamp": AT, "x-service-request-expires-at": str(int(AT) + 30)}
    caller, asked = await run_check(SHOWN | times, caller=AGENT, endpoint=SIGN, require_auth_signature=True)

    assert asked == []
    shown = caller.authorization
    assert shown is not None
    assert (shown.timestamp, shown.expires_at) == tuple(times.values())
    assert (shown.method, shown.path, shown.body, shown.idempotency_key) == ("POST", "/agents?a=b", b"{}", "12345678")
    assert [(one.signer, one.signature, one.secret) for one in shown.shown] == [(SIGNER, "sig", None)]


SECRET = {"x-service-signer-id": SIGNER, "x-service-signer-secret": "secret"}
MEMBERS = [{"signerId": SIGNER, "signature": "sig"}]
OF_QUORUM = {
    "x-service-key-quorum-id": QUORUM,
    "x-service-key-quorum-signatures": msgspec.json.encode(MEMBERS).decode(),
    "idempotency-key": "12345678",
}


@pytest.mark.parametrize(
    ("headers", "demands", "refusal"),
    [
        ({name: value for name, value in SHOWN.items() if name != "idempotency-key"}, {}, IdempotencyKeyRequired),
        ({name: value for name, value in OF_QUORUM.items() if name != "idempotency-key"}, {}, IdempotencyKeyRequired),
        (SECRET, {"require_auth_signature": True}, SignatureRequired),
        (SECRET | {"x-service-signature": "sig"}, {}, AuthorizationAmbiguous),
        (SHOWN | {"x-service-signing-key-id": "key"}, {}, AuthorizationAmbiguous),
        (SHOWN | {"x-service-key-quorum-id": QUORUM}, {}, AuthorizationAmbiguous),
        (OF_QUORUM | {"x-service-signature": "sig"}, {}, AuthorizationAmbiguous),
        (OF_QUORUM | {"x-service-signer-secret": "secret"}, {}, AuthorizationAmbiguous),
        (OF_QUORUM | {"x-service-key-quorum-id": "no uuid"}, {}, AuthorizationMalformed),
        (OF_QUORUM | {"x-service-key-quorum-signatures": "[]"}, {}, AuthorizationMalformed),
        (OF_QUORUM | {"x-service-key-quorum-signatures": '[{"a":1}]'}, {}, AuthorizationMalformed),
        (SHOWN | {"x-service-signer-id": "no uuid"}, {}, AuthorizationMalformed),
        ({"x-service-signer-id": SIGNER}, {}, AuthorizationMalformed),
        ({"x-service-signer-secret": "secret"}, {}, AuthorizationMalformed),
        ({"x-service-key-quorum-id": QUORUM}, {}, AuthorizationMalformed),
    ],
)
async def test_an_authorisation_of_the_wrong_form_is_refused(
    headers: dict[str, str], demands: dict[str, Any], refusal: type[CustodyError]
) -> None:
    with pytest.raises(refusal) as refused:
        await run_check(headers, caller=AGENT, endpoint=SIGN, **demands)
    assert type(refused.value) is refusal


async def test_a_secret_and_a_quorum_authorise_too() -> None:
    by_secret, _ = await run_check(SECRET, caller=AGENT, endpoint=SIGN)
    by_quorum, _ = await run_check(OF_QUORUM, caller=AGENT, endpoint=SIGN, require_auth_signature=True)

    assert by_secret.authorization is not None
    assert by_quorum.authorization is not None
    assert [one.secret for one in by_secret.authorization.shown] == ["secret"]
    assert by_quorum.authorization.quorum == QUORUM
    assert [(one.signer, one.signature) for one in by_quorum.authorization.shown] == [(SIGNER, "sig")]


async def test_an_authorisation_is_taken_beside_an_agent_s_token_and_where_a_route_takes_one() -> None:
    with pytest.raises(AuthorizationAmbiguous):
        await run_check(SHOWN, caller=TENANT, endpoint=SIGN)
    with pytest.raises(AuthorizationMalformed):
        await run_check(SHOWN | {"x-service-signer-secret": "secret"})
    # A key that nobody knows, as of any signature.
    assert len((await run_check(SHOWN))[1]) == 1


def key_of(caller: Caller = TENANT, **changed: Any) -> Any:
    endpoint = changed.pop("endpoint", CREATE)
    key = changed.pop("key", "12345678")
    return with_key(caller, request(("idempotency-key", key), **changed), endpoint).idempotency


def test_a_key_is_kept_with_its_route_and_a_fingerprint_of_all_that_was_asked() -> None:
    first = key_of()
    assert (first.route, first.key_hash) == ("POST /agents", hashlib.sha256(b"12345678").digest())
    assert key_of() == first
    parts = (b"/agents", b"a=b", b"{}")
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    assert first.fingerprint == hmac.digest(b"12345678", framed, "sha256")

    others = [
        key_of(body=b"[]"),
        key_of(path=b"/agents?a=c"),
        key_of(path=b"/agents"),
        key_of(path=b"/agentsa=?b"),
        key_of(path=b"/agents?a=", body=b"b{}"),
        key_of(key="12345679"),
    ]
    assert len({one.fingerprint for one in (first, *others)}) == 1 + len(others)


@pytest.mark.parametrize("key", ["1234567", "1" * 256, "1234567\x7f", "1234567\n", "1234567ß", ""])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    with pytest.raises(BadIdempotencyKey):
        key_of(key=key)


@pytest.mark.parametrize("key", ["1" * 8, "1" * 255, "~ ~ ~ ~ "])
def test_a_key_of_printable_characters_is_taken(key: str) -> None:
    assert key_of(key=key) is not None


def test_a_request_without_a_key_and_a_read_have_none_and_two_are_refused() -> None:
    assert with_key(TENANT, request(), CREATE) is TENANT
    assert with_key(TENANT, request(("idempotency-key", "x")), READ) is TENANT
    with pytest.raises(BadIdempotencyKey):
        with_key(TENANT, request(("idempotency-key", "1" * 8), ("idempotency-key", "1" * 8)), CREATE)


def with_this_key(caller: Caller, key: str = "12345678", endpoint: Any = CREATE) -> Caller:
    return with_key(caller, request(("idempotency-key", key)), endpoint)


def test_a_twin_is_refused_while_the_first_is_worked_on_and_not_after() -> None:
    held = InFlight()
    with held.hold(with_this_key(TENANT), CREATE):
        with pytest.raises(IdempotencyInFlight), held.hold(with_this_key(TENANT), CREATE):
            pass
        # It was not the twin's to let go.
        with pytest.raises(IdempotencyInFlight), held.hold(with_this_key(TENANT), CREATE):
            pass
    with held.hold(with_this_key(TENANT), CREATE):
        pass
    with pytest.raises(KeyError), held.hold(with_this_key(TENANT), CREATE):
        raise KeyError
    with held.hold(with_this_key(TENANT), CREATE):
        pass


def test_a_twin_is_told_to_come_again_in_a_second() -> None:
    assert IdempotencyInFlight().retry_after == 1


def test_another_key_caller_or_route_is_no_twin() -> None:
    held = InFlight()
    other = msgspec.structs.replace(TENANT, tenant="other")
    person = msgspec.structs.replace(TENANT, principal="user:ann")
    agents = [msgspec.structs.replace(AGENT, proof=Proof("agent", token)) for token in ("one", "two")]
    operators = [OPERATOR, msgspec.structs.replace(OPERATOR, key_prefix="pk_other")]
    put = ROUTES["PUT /agents/{agentId}/policies"]
    with (
        held.hold(with_this_key(TENANT), CREATE),
        held.hold(with_this_key(TENANT, "87654321"), CREATE),
        held.hold(with_this_key(TENANT, endpoint=put), put),
        held.hold(with_this_key(other), CREATE),
        held.hold(with_this_key(person), CREATE),
        held.hold(with_this_key(agents[0]), CREATE),
        held.hold(with_this_key(agents[1]), CREATE),
        held.hold(with_this_key(operators[0]), CREATE),
        held.hold(with_this_key(operators[1]), CREATE),
        held.hold(TENANT, CREATE),
        held.hold(TENANT, CREATE),
        held.hold(None, CREATE),
        held.hold(with_this_key(AGENT, endpoint=SIGN), SIGN),
        held.hold(with_this_key(AGENT, endpoint=SIGN), SIGN),
    ):
        for one in (TENANT, other, person, *agents, *operators):
            with pytest.raises(IdempotencyInFlight), held.hold(with_this_key(one), CREATE):
                pass


DONE = ["observed", "reserved", "completed"]
FREED = ["observed", "reserved", "released_on_error"]


@pytest.mark.parametrize(
    ("status", "code", "flags", "counted"),
    [
        (201, None, {}, DONE),
        (403, "policy_denied", {"stored": True}, DONE),
        (403, "policy_denied", {}, FREED),
        (400, None, {}, FREED),
        (399, None, {}, DONE),
        (409, "idempotency_mismatch", {}, ["observed", "conflicts"]),
        (409, "idempotency_in_flight", {}, ["observed", "in_flight_conflicts"]),
        (409, "idempotency_secret_shown", {}, ["observed", "suppressed_auth_responses"]),
        (400, "bad_idempotency_key", {}, ["observed", "invalid_keys"]),
        (201, None, {"replayed": True}, ["observed", "replayed"]),
        (500, None, {}, FREED),
        (500, None, {"stored": True}, FREED),
        (503, None, {}, ["observed", "reserved", "store_errors"]),
    ],
)
def test_a_request_with_a_key_is_counted_by_what_came_of_it(
    status: int, code: str | None, flags: dict[str, bool], counted: list[str]
) -> None:
    assert counters(CREATE, status, code, **({"replayed": False, "stored": False} | flags)) == counted
    assert counters(READ, status, code, replayed=True, stored=True) == ["observed", "skipped_unsafe_context"]


def test_an_answer_that_shows_a_secret_is_counted_as_kept_back() -> None:
    shows = next(one for one in ROUTES.values() if one.shows_secret and one.hardened)
    assert counters(shows, 201, None, replayed=False, stored=False) == [*DONE, "suppressed_auth_responses"]


class Counted(Counts):
    """Counts, as they were added."""

    def __init__(self) -> None:
        super().__init__()
        self.added: list[tuple[str, str]] = []

    def add(self, tenant: str, counter: Counter, n: int = 1) -> None:
        self.added.append((tenant, counter))


def counted_of(answer: HTTPResponse, endpoint: Any = CREATE, *, key: str | None = "12345678", **said: Any) -> Any:
    asked, counts = request(*([] if key is None else [("idempotency-key", key)])), Counted()
    vars(asked.ctx).update(said)
    idempotency.count(counts, endpoint, asked, answer)
    assert {tenant for tenant, _ in counts.added} <= {"acme"}
    return [counter for _, counter in counts.added]


def test_the_tenant_that_asked_is_counted_and_no_stranger() -> None:
    made, again = HTTPResponse(status=201), HTTPResponse(status=201, headers={"Idempotency-Replayed": "true"})
    denied = HTTPResponse(status=403)
    acme = {"tenant": "acme"}
    assert counted_of(made, **acme) == DONE
    assert counted_of(again, **acme) == ["observed", "replayed"]
    assert counted_of(denied, **acme) == FREED
    assert counted_of(denied, **acme, stored=True) == DONE
    assert counted_of(denied, **acme, code="idempotency_mismatch") == ["observed", "conflicts"]
    assert counted_of(made, READ, **acme) == counted_of(made, key=None, **acme) == counted_of(made) == []
