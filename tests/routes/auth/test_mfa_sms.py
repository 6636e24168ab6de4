"""Codes by text message over HTTP, through a real sms_gateway."""

import itertools
from collections import Counter
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from ops import places
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.people import Person, sign_in
from tests.fixtures.server import Service
from tests.outside.sms_gateway import SmsGateway
from tests.routes.auth.factors import at_once, put_blanks, refusal

ENROL, VERIFY, SEND, STEP_UP = (f"/auth/mfa/sms/{name}" for name in ("enroll", "verify", "send", "step-up"))
_numbers = itertools.count(41_790_000_000)


@pytest.fixture
def phone() -> str:
    """A number of this test's own."""
    return _phone()


def test_a_number_becomes_a_factor_by_its_code(person: Person, sms_gateway: SmsGateway, phone: str) -> None:
    answer = _enrol(person, sms_gateway, phone)

    assert answer["mfa"]["methods"] == ["recovery", "sms"]
    assert answer["mfa"]["verifiedAt"]
    assert len(answer["recoveryCodes"]) == 10
    shown = person.ok("GET", "/auth/mfa")["methods"]
    assert [(method["kind"], method["hint"]) for method in shown] == [("sms", f"***{phone[-2:]}")]


def test_a_sent_code_steps_up_once(service: Service, person: Person, sms_gateway: SmsGateway, phone: str) -> None:
    _enrol(person, sms_gateway, phone)
    with closing(sign_in(service, person.wallet)) as later:
        assert list(later.ok("POST", SEND, {})) == ["expiresAt"]
        code = sms_gateway.code_for(phone, after=1)

        assert later.ok("POST", STEP_UP, {"code": put_blanks(code, "\u00a0")})["mfa"]["verifiedAt"]
        assert refusal(later.post(STEP_UP, json={"code": code})) == (401, "code_invalid")


def test_of_one_code_twice_at_once_one_works(person: Person, sms_gateway: SmsGateway, phone: str) -> None:
    _enrol(person, sms_gateway, phone)
    person.ok("POST", SEND, {})
    code = sms_gateway.code_for(phone, after=1)
    answers = at_once(4, lambda _: person.post(STEP_UP, json={"code": code}))

    assert Counter(answer.status_code for answer in answers) == {200: 1, 401: 3}


def test_a_newer_code_ends_the_one_before(person: Person, sms_gateway: SmsGateway, phone: str) -> None:
    _enrol(person, sms_gateway, phone)
    codes = []
    for number in (1, 2):
        person.ok("POST", SEND, {})
        codes.append(sms_gateway.code_for(phone, after=number))

    if codes[0] != codes[1]:
        assert refusal(person.post(STEP_UP, json={"code": codes[0]})) == (401, "code_invalid")
    assert person.post(STEP_UP, json={"code": codes[1]}).status_code == 200


def test_the_code_for_a_new_number_is_none_for_stepping_up(person: Person, sms_gateway: SmsGateway, phone: str) -> None:
    _enrol(person, sms_gateway, phone)
    person.ok("POST", ENROL, {"phone": phone})

    assert refusal(person.post(STEP_UP, json={"code": sms_gateway.code_for(phone, after=1)})) == (401, "code_invalid")


def test_the_code_for_stepping_up_confirms_no_new_number(person: Person, sms_gateway: SmsGateway, phone: str) -> None:
    _enrol(person, sms_gateway, phone)
    person.ok("POST", ENROL, {"phone": phone})
    person.ok("POST", SEND, {})
    first, second = sms_gateway.code_for(phone, after=1), sms_gateway.code_for(phone, after=2)

    if first != second:
        assert refusal(person.post(VERIFY, json={"code": second})) == (401, "code_invalid")


def test_a_code_for_another_number_confirms_nothing(person: Person, sms_gateway: SmsGateway, phone: str) -> None:
    other = _phone()
    person.ok("POST", ENROL, {"phone": phone})
    person.ok("POST", ENROL, {"phone": other})
    codes = sms_gateway.code_for(phone), sms_gateway.code_for(other)

    if codes[0] != codes[1]:
        assert refusal(person.post(VERIFY, json={"code": codes[0]})) == (401, "code_invalid")
    assert person.post(VERIFY, json={"code": codes[1]}).status_code == 200


def test_a_new_number_takes_the_place_of_the_old(person: Person, sms_gateway: SmsGateway, phone: str) -> None:
    _enrol(person, sms_gateway, phone)
    answer = _enrol(person, sms_gateway, other := _phone())
    person.ok("POST", SEND, {})

    assert "recoveryCodes" not in answer
    assert sms_gateway.code_for(other, after=1)
    assert sms_gateway.count(phone) == 1


def test_of_twenty_guesses_at_once_five_are_looked_at(person: Person, sms_gateway: SmsGateway, phone: str) -> None:
    _enrol(person, sms_gateway, phone)
    person.ok("POST", SEND, {})
    wrong = f"{(int(sms_gateway.code_for(phone, after=1)) + 1) % 1_000_000:06d}"
    answers = at_once(20, lambda _: person.post(STEP_UP, json={"code": wrong}))

    assert Counter(answer.status_code for answer in answers) == {401: 5, 429: 15}


async def test_a_code_ends_after_ten_minutes(
    person: Person, sms_gateway: SmsGateway, phone: str, owner: asyncpg.Connection
) -> None:
    _enrol(person, sms_gateway, phone)
    person.ok("POST", SEND, {})
    await _move(owner, "sign_in_codes", f"step-up:{person.id}:{phone}", 600)

    assert refusal(person.post(STEP_UP, json={"code": sms_gateway.code_for(phone, after=1)})) == (401, "code_invalid")


async def test_five_messages_an_hour_and_who_wants_another_is_told(
    person: Person, sms_gateway: SmsGateway, phone: str, owner: asyncpg.Connection
) -> None:
    _enrol(person, sms_gateway, phone)
    answers = [person.post(SEND, json={}) for _ in range(6)]
    sms_gateway.code_for(phone, after=5)

    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert 3500 < int(answers[-1].headers["Retry-After"]) <= 3600
    await _move(owner, "attempts", f"sms-send:{person.id}", 3600)
    person.ok("POST", SEND, {})
    assert sms_gateway.code_for(phone, after=6)
    assert sms_gateway.count(phone) == 7


def test_enrolling_takes_no_message_from_stepping_up(person: Person, sms_gateway: SmsGateway, phone: str) -> None:
    _enrol(person, sms_gateway, phone)
    for _ in range(4):
        person.ok("POST", ENROL, {"phone": _phone()})
    assert refusal(person.post(ENROL, json={"phone": _phone()})) == (429, "too_many_attempts")

    person.ok("POST", SEND, {})
    assert sms_gateway.code_for(phone, after=1)


def test_a_stranger_s_number_is_not_rung_without_end(service: Service, sms_gateway: SmsGateway, phone: str) -> None:
    statuses = []
    for _ in range(3):
        with closing(sign_in(service)) as stranger:
            statuses += [stranger.post(ENROL, json={"phone": phone}).status_code for _ in range(3)]
    with closing(sign_in(service)) as last:
        last.ok("POST", ENROL, {"phone": (mark := _phone())})
    sms_gateway.code_for(mark)

    assert statuses == [200] * 5 + [429] * 4
    assert sms_gateway.count(phone) == 5


def test_its_owner_s_codes_come_although_strangers_tried(
    service: Service, person: Person, sms_gateway: SmsGateway, phone: str
) -> None:
    _enrol(person, sms_gateway, phone)
    with closing(sign_in(service)) as stranger:
        for _ in range(5):
            stranger.post(ENROL, json={"phone": phone})
    sms_gateway.code_for(phone, after=4)
    person.ok("POST", SEND, {})

    assert sms_gateway.code_for(phone, after=5)


async def test_a_number_that_was_changed_in_the_database_is_no_factor(
    person: Person, sms_gateway: SmsGateway, phone: str, owner: asyncpg.Connection
) -> None:
    _enrol(person, sms_gateway, phone)
    await owner.execute("UPDATE factors SET subject = $2 WHERE user_id = $1", person.id, mine := _phone())

    assert refusal(person.post(SEND, json={})) == (503, "sealed_value_tampered")
    assert sms_gateway.count(mine) == 0


@pytest.mark.parametrize("number", ["1234567", "+0123456789", "+41 79 000 00 00", "+4179000000x", "+41790000000\n"])
def test_a_malformed_telephone_number_is_refused(person: Person, number: str) -> None:
    assert person.post(ENROL, json={"phone": number}).status_code == 400


def test_nothing_is_sent_to_who_has_no_number(person: Person) -> None:
    assert refusal(person.post(SEND, json={})) == (404, "factor_absent")
    assert refusal(person.post(VERIFY, json={"code": "123456"})) == (409, "enrolment_absent")
    assert refusal(person.post(STEP_UP, json={"code": "123456"})) == (401, "code_invalid")


def test_a_number_is_added_only_after_a_recent_second_factor(
    service: Service, person: Person, sms_gateway: SmsGateway
) -> None:
    person.enrol_totp()
    with closing(sign_in(service, person.wallet)) as later:
        for path, body in ((ENROL, {"phone": (phone := _phone())}), (VERIFY, {"code": "123456"})):
            assert refusal(later.post(path, json=body)) == (403, "mfa_required")

    assert sms_gateway.count(phone) == 0


def test_a_deployment_without_a_gateway_says_so(postgres_home: places.Home, worker_id: str) -> None:
    calls = ((ENROL, {"phone": _phone()}), (VERIFY, {"code": "1"}), (SEND, {}), (STEP_UP, {"code": "1"}))
    with (
        deploy(database_apart(postgres_home, f"{worker_id}_silent")) as service,
        closing(sign_in(service)) as somebody,
    ):
        for path, body in calls:
            assert refusal(somebody.post(path, json=body)) == (503, "sms_not_configured")


def _phone() -> str:
    return f"+{next(_numbers)}"


def _enrol(person: Person, sms_gateway: SmsGateway, phone: str) -> dict[str, Any]:
    person.ok("POST", ENROL, {"phone": phone})
    return person.take(person.ok("POST", VERIFY, {"code": sms_gateway.code_for(phone)}))


async def _move(owner: asyncpg.Connection, table: str, subject: str, seconds: int) -> None:
    column = "ends_at" if table == "attempts" else "expires_at"
    moved = await owner.execute(
        f"UPDATE {table} SET {column} = {column} - make_interval(secs => $2) WHERE subject = $1", subject, seconds
    )
    assert moved == "UPDATE 1"
