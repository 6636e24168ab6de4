"""Second factors over HTTP: what a person has, and who may change it."""

import asyncio
import base64
from contextlib import closing
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.people import Person, fresh_address, sign_in
from tests.fixtures.server import Service
from tests.outside.authenticator import Authenticator
from tests.outside.sms_gateway import SmsGateway
from tests.promises.searched import any_form, everything
from tests.routes.auth.factors import actions, code_at, refusal, wrong_code

CHANGES = [
    ("POST", "/auth/mfa/totp/enroll", {}),
    ("POST", "/auth/mfa/totp/verify", {"code": "123456"}),
    ("DELETE", "/auth/mfa/totp", None),
    ("POST", "/auth/mfa/recovery-codes", {}),
    ("POST", "/auth/passkeys/register/options", {}),
    ("POST", "/auth/passkeys/register/verify", {"credential": {}}),
    ("DELETE", "/auth/passkeys/00000000-0000-4000-8000-000000000000", None),
]


# For this transaction to end.
_SOMEBODY_WAITS = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid)"


def test_a_new_person_has_no_second_factor(person: Person) -> None:
    assert person.ok("GET", "/auth/mfa") == {"methods": [], "recoveryCodesLeft": 0, "verifiedAt": None}


def test_factors_are_listed(person: Person, service: Service) -> None:
    person.enrol_totp()
    _add_passkey(person, service)
    person.step_up()
    shown = person.ok("GET", "/auth/mfa")

    assert [method["kind"] for method in shown["methods"]] == ["passkey", "totp"]
    assert all(method["confirmedAt"] and "hint" not in method for method in shown["methods"])
    assert shown["recoveryCodesLeft"] == 9
    assert shown["verifiedAt"][:16] == person.session["mfa"]["verifiedAt"][:16]
    assert person.ok("GET", "/auth/session")["mfa"]["methods"] == ["passkey", "recovery", "totp"]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_factors_change_only_after_a_recent_second_factor(
    service: Service, person: Person, method: str, path: str, body: Any
) -> None:
    person.enrol_totp()
    with closing(sign_in(service, person.wallet)) as later:
        answer = later.request(method, path, json=body)

    assert answer.status_code == 403
    needed = {"action": "recoveryCodes", "methods": ["recovery", "totp"], "maxAgeSeconds": 300}
    assert answer.json()["data"] == {"code": "mfa_required", **needed}


def test_refused_changes_take_no_guess(service: Service, person: Person) -> None:
    person.enrol_totp()
    with closing(sign_in(service, person.wallet)) as later:
        for _ in range(6):
            assert refusal(later.post("/auth/mfa/totp/verify", json={"code": "123456"})) == (403, "mfa_required")

        assert later.post("/auth/mfa/totp/step-up", json={"code": code_at(person.seed, 1)}).status_code == 200


def test_a_passkey_alone_guards_the_factors_too(service: Service, person: Person) -> None:
    _add_passkey(person, service)

    assert refusal(person.post("/auth/mfa/totp/enroll", json={})) == (403, "mfa_required")


async def test_a_factor_added_meanwhile_guards_at_once(
    service: Service, person: Person, owner: asyncpg.Connection
) -> None:
    seed = person.ok("POST", "/auth/mfa/totp/enroll", {})["secret"]
    body = {"code": code_at(seed)}
    async with owner.transaction():
        confirming = await _send_held(owner, person, "/auth/mfa/totp/verify", body)
        await owner.execute("INSERT INTO factors VALUES ($1, 'sms', '+41790000000', '', 0, now())", person.id)
    answer = await confirming

    assert refusal(answer) == (403, "mfa_required")
    assert answer.json()["data"]["methods"] == ["sms"]


@pytest.mark.parametrize("kind", ["totp", "passkey"])
async def test_a_session_that_ends_meanwhile_changes_nothing(
    service: Service, person: Person, owner: asyncpg.Connection, kind: str
) -> None:
    path, body = _first_factor(person, service, kind)
    async with owner.transaction():
        confirming = await _send_held(owner, person, path, body)
        await owner.execute("UPDATE sessions SET revoked_at = now() WHERE user_id = $1", person.id)

    assert (await confirming).status_code == 401
    assert await owner.fetchval("SELECT mfa_methods($1)", person.id) == []


async def test_changes_of_factors_are_audited(service: Service, person: Person, owner: asyncpg.Connection) -> None:
    person.enrol_totp()
    passkey = _add_passkey(person, service)
    person.step_up()
    person.recovery_codes = person.ok("POST", "/auth/mfa/recovery-codes", {})["recoveryCodes"]
    assert person.post("/auth/mfa/totp/step-up", json={"code": wrong_code(person.seed)}).status_code == 401
    person.step_up()
    person.ok("DELETE", f"/auth/passkeys/{passkey}")
    person.step_up()
    person.ok("DELETE", "/auth/mfa/totp")

    assert await actions(owner, person) == [
        "factor.enrolled totp",
        f"passkey.added {passkey}",
        "factor.codes_made recovery",
        "factor.refused totp",
        f"passkey.removed {passkey}",
        "factor.removed totp",
    ]


@pytest.mark.parametrize("change", ["authenticator", "number", "codes", "passkey", "removal"])
def test_a_second_factor_verified_before_a_change_of_factors_is_void(
    service: Service, person: Person, sms_gateway: SmsGateway, change: str
) -> None:
    first = _add_passkey(person, service) if change in ("authenticator", "removal") else ""
    if first:
        person.step_up()
    if change != "authenticator":
        codes = person.recovery_codes if first else []
        person.enrol_totp()
        person.recovery_codes += codes
    with closing(sign_in(service, person.wallet)) as thief:
        # The attacker found a code.
        thief.recovery_codes = [person.recovery_codes.pop()]
        thief.step_up()
        _change(service, person, sms_gateway, change, first)

        assert refusal(thief.post("/auth/mfa/recovery-codes", json={})) == (403, "mfa_required")
        assert thief.ok("GET", "/auth/mfa")["verifiedAt"] is None
        following = thief.take(thief.refresh().json()["data"])
        assert following["mfa"]["verifiedAt"] is None
        assert refusal(thief.post("/auth/mfa/recovery-codes", json={})) == (403, "mfa_required")


def test_a_confirming_session_continues_and_other_changes_need_the_factor_again(
    service: Service, person: Person
) -> None:
    person.enrol_totp()
    person.recovery_codes = person.ok("POST", "/auth/mfa/recovery-codes", {})["recoveryCodes"]
    assert refusal(person.delete("/auth/mfa/totp")) == (403, "mfa_required")

    person.step_up()
    assert person.delete("/auth/mfa/totp").status_code == 200


@pytest.mark.parametrize("kind", ["totp", "recovery"])
async def test_fifty_wrong_guesses_a_week_and_no_right_one_clears_them(
    person: Person, owner: asyncpg.Connection, kind: str
) -> None:
    person.enrol_totp()
    path = {"totp": "/auth/mfa/totp/step-up", "recovery": "/auth/mfa/recovery-codes/step-up"}[kind]
    wrong = {"code": wrong_code(person.seed) if kind == "totp" else "aaaaa-aaaaa"}
    assert [person.post(path, json=wrong).status_code for _ in range(3)] == [401] * 3
    right = code_at(person.seed, 1) if kind == "totp" else person.recovery_codes.pop()
    person.take(person.ok("POST", path, {"code": right}))
    count = "SELECT count FROM attempts WHERE subject = $1"
    week = f"{kind}-week:{person.id}"
    assert await owner.fetchval(count, week) == 3

    await owner.execute("UPDATE attempts SET count = 49 WHERE subject = $1", week)
    answers = [person.post(path, json=wrong) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [401, 429]
    assert 6 * 86_400 < int(answers[1].headers["Retry-After"]) <= 7 * 86_400


async def test_rows_left_by_strangers_are_deleted_by_later_writes(
    service: Service, person: Person, owner: asyncpg.Connection
) -> None:
    old = "now() - interval '31 days'"
    left = (
        "SELECT (SELECT count(*) FROM attempts WHERE subject LIKE 'stranger:%'), "
        "(SELECT count(*) FROM sign_in_codes WHERE subject LIKE 'stranger-%'), "
        "(SELECT count(*) FROM enrolments WHERE user_id = ANY ($1)), "
        "(SELECT count(*) FROM sessions WHERE user_id = ANY ($1))"
    )
    # Counted before others see them: the scheduler deletes such rows as well.
    async with owner.transaction():
        made = await owner.fetch(
            f"INSERT INTO users (id, created_at) SELECT gen_random_uuid(), {old} FROM generate_series(1, 20) "
            "RETURNING id"
        )
        users = [row["id"] for row in made]
        for statement in (
            f"INSERT INTO attempts SELECT 'stranger:' || n, 1, {old} FROM generate_series(1, 20) n",
            f"INSERT INTO sign_in_codes SELECT 'email', 'stranger-' || n, '', 0, {old} FROM generate_series(1, 20) n",
        ):
            await owner.execute(statement)
        for statement in (
            f"INSERT INTO enrolments SELECT id, 'totp', NULL, NULL, '', {old} FROM unnest($1::uuid[]) id",
            "INSERT INTO sessions "
            "(id, user_id, tenant_id, provider, amr, mac, created_at, used_at, expires_at, revoked_at) "
            f"SELECT gen_random_uuid(), id, '{person.tenant}', 'siwe', '{{}}', '', {old}, {old}, now(), {old} "
            "FROM unnest($1::uuid[]) id",
        ):
            await owner.execute(statement, users)
        assert tuple(await owner.fetchrow(left, users)) == (20, 20, 20, 20)

    # Others of this database may have left some too, and each act clears twenty.
    for _ in range(5):
        with closing(sign_in(service)) as other:
            other.ok("POST", "/auth/mfa/totp/enroll", {})
            other.ok("POST", "/auth/email/send", {"email": fresh_address()})

    assert tuple(await owner.fetchrow(left, users)) == (0, 0, 0, 0)


async def test_no_secret_of_a_factor_is_in_a_table_or_log(
    service: Service, person: Person, owner: asyncpg.Connection
) -> None:
    person.enrol_totp()
    code = code_at(person.seed, 1)
    person.take(person.ok("POST", "/auth/mfa/totp/step-up", {"code": code}))
    codes = [*person.recovery_codes, *person.ok("POST", "/auth/mfa/recovery-codes", {})["recoveryCodes"]]
    person.post("/auth/mfa/recovery-codes/step-up", json={"code": codes[0]})
    person.ok("POST", "/auth/mfa/recovery-codes/step-up", {"code": codes[-1]})
    seed = base64.b32decode(person.seed)

    rows = b"\n".join(await everything(owner))
    for place in (service.logs().encode(), rows):
        assert not any_form(seed, place)
        assert not any_form(person.seed.encode(), place)
        assert [
            each for each in codes if any_form(each.encode(), place) or each.replace("-", "").encode() in place
        ] == []


def _first_factor(person: Person, service: Service, kind: str) -> tuple[str, dict[str, Any]]:
    """The request that would make one."""
    if kind == "totp":
        return "/auth/mfa/totp/verify", {"code": code_at(person.ok("POST", "/auth/mfa/totp/enroll", {})["secret"])}
    device = Authenticator(f"http://localhost:{service.port}")
    answer = device.create(person.ok("POST", "/auth/passkeys/register/options", {}))
    return "/auth/passkeys/register/verify", {"credential": answer}


def _add_passkey(person: Person, service: Service) -> str:
    made = person.ok("POST", *_first_factor(person, service, "passkey"))
    person.recovery_codes = made.get("recoveryCodes") or person.recovery_codes
    return str(made["id"])


def _change(service: Service, person: Person, sms_gateway: SmsGateway, change: str, passkey: str) -> None:
    if change == "authenticator":
        person.enrol_totp()
    elif change == "number":
        person.ok("POST", "/auth/mfa/sms/enroll", {"phone": (phone := f"+8821{int(person.id[:6], 16):08d}")})
        person.ok("POST", "/auth/mfa/sms/verify", {"code": sms_gateway.code_for(phone)})
    elif change == "codes":
        person.ok("POST", "/auth/mfa/recovery-codes", {})
    elif change == "passkey":
        _add_passkey(person, service)
    else:
        person.ok("DELETE", f"/auth/passkeys/{passkey}")


async def _send_held(
    owner: asyncpg.Connection, person: Person, path: str, body: Any
) -> "asyncio.Future[httpx.Response]":
    """Send a request that waits for the person's row, which the owner's transaction holds; give its answer to come."""
    await owner.execute("SELECT FROM users WHERE id = $1 FOR UPDATE", person.id)
    answer = asyncio.get_running_loop().run_in_executor(None, lambda: person.post(path, json=body))
    async with asyncio.timeout(60):
        while not await owner.fetchval(_SOMEBODY_WAITS):
            assert not answer.done(), answer.result().text
    return answer
