"""Recovery codes over HTTP."""

import re
from collections import Counter
from contextlib import closing

import asyncpg

from tests.fixtures.people import Person, sign_in
from tests.fixtures.server import Service
from tests.outside.authenticator import Authenticator
from tests.routes.auth.factors import at_once, refusal

STEP_UP = "/auth/mfa/recovery-codes/step-up"


def test_ten_codes_come_with_the_first_factor(person: Person) -> None:
    codes = person.enrol_totp()["recoveryCodes"]

    assert len(set(codes)) == 10
    assert all(re.fullmatch(r"[2-9a-hjkmnp-z]{5}-[2-9a-hjkmnp-z]{5}", code) for code in codes)


def test_a_code_steps_up_a_session_that_has_shown_nothing(service: Service, person: Person) -> None:
    codes = person.enrol_totp()["recoveryCodes"]
    with closing(sign_in(service, person.wallet)) as later:
        assert later.session["mfa"] == {"verifiedAt": None, "methods": ["recovery", "totp"]}
        answer = later.take(later.ok("POST", STEP_UP, {"code": codes[0]}))

        assert answer["mfa"]["verifiedAt"]
        assert "recoveryCodes" not in answer
        assert later.ok("GET", "/auth/mfa")["recoveryCodesLeft"] == 9
        assert later.ok("DELETE", "/auth/mfa/totp") == {"deleted": "totp"}


def test_a_code_works_once(person: Person) -> None:
    code = person.enrol_totp()["recoveryCodes"][0]

    assert person.post(STEP_UP, json={"code": code}).status_code == 200
    assert refusal(person.post(STEP_UP, json={"code": code})) == (401, "code_invalid")


def test_of_one_code_twice_at_once_one_works(person: Person) -> None:
    code = person.enrol_totp()["recoveryCodes"][0]
    answers = at_once(4, lambda _: person.post(STEP_UP, json={"code": code}))

    assert Counter(answer.status_code for answer in answers) == {200: 1, 401: 3}


def test_a_code_counts_however_it_is_typed(person: Person) -> None:
    codes = person.enrol_totp()["recoveryCodes"]
    for typed in (codes[0].upper(), codes[1].replace("-", ""), f" {codes[2].replace('-', ' ')} "):
        assert person.post(STEP_UP, json={"code": typed}).status_code == 200
    for code, hyphen in zip(codes[3:], ("\u2010", "\u2011", "\u2013", "\u2014", "\u2212", "\u00a0"), strict=False):
        assert person.post(STEP_UP, json={"code": code.replace("-", hyphen)}).status_code == 200
    half = codes[9].partition("-")[0]
    assert refusal(person.post(STEP_UP, json={"code": f"{half}-"})) == (401, "code_invalid")


def test_a_second_set_under_one_idempotency_key_is_another_one(person: Person) -> None:
    key = {"Idempotency-Key": "k" * 12}
    person.enrol_totp()
    person.recovery_codes = person.post("/auth/mfa/recovery-codes", json={}, headers=key).json()["data"][
        "recoveryCodes"
    ]
    first = set(person.recovery_codes)
    person.step_up()
    second = person.post("/auth/mfa/recovery-codes", json={}, headers=key)

    assert second.status_code == 200
    assert not first & set(second.json()["data"]["recoveryCodes"])


def test_new_codes_end_the_old_ones(person: Person) -> None:
    old = person.enrol_totp()["recoveryCodes"][0]
    new = person.ok("POST", "/auth/mfa/recovery-codes", {})["recoveryCodes"]

    assert len(set(new)) == 10
    assert refusal(person.post(STEP_UP, json={"code": old})) == (401, "code_invalid")
    assert person.post(STEP_UP, json={"code": new[0]}).status_code == 200


def test_there_are_none_without_a_factor(person: Person) -> None:
    assert refusal(person.post("/auth/mfa/recovery-codes", json={})) == (409, "no_factor")


def test_they_go_with_the_last_factor(service: Service, person: Person) -> None:
    person.enrol_totp()
    options = person.ok("POST", "/auth/passkeys/register/options", {})
    answer = Authenticator(f"http://localhost:{service.port}").create(options)
    passkey = person.ok("POST", "/auth/passkeys/register/verify", {"credential": answer})["id"]

    person.step_up()
    person.ok("DELETE", "/auth/mfa/totp")
    assert person.ok("GET", "/auth/mfa")["recoveryCodesLeft"] == 9
    person.step_up()
    person.ok("DELETE", f"/auth/passkeys/{passkey}")
    assert person.ok("GET", "/auth/mfa")["recoveryCodesLeft"] == 0
    assert refusal(person.post(STEP_UP, json={"code": person.recovery_codes[0]})) == (401, "code_invalid")


def test_no_new_codes_come_while_some_are_left(person: Person) -> None:
    first = person.enrol_totp()
    person.ok("DELETE", "/auth/mfa/totp")
    again = person.enrol_totp()

    assert len(first["recoveryCodes"]) == len(again["recoveryCodes"]) == 10
    assert not set(first["recoveryCodes"]) & set(again["recoveryCodes"])


def test_of_twenty_guesses_at_once_five_are_looked_at(person: Person) -> None:
    person.enrol_totp()
    answers = at_once(20, lambda number: person.post(STEP_UP, json={"code": f"aaaaa-aaa{number:02d}"}))

    assert Counter(answer.status_code for answer in answers) == {401: 5, 429: 15}


async def test_a_code_that_was_moved_to_another_person_is_wrong(
    service: Service, person: Person, owner: asyncpg.Connection
) -> None:
    person.enrol_totp()
    with closing(sign_in(service)) as thief:
        code = thief.enrol_totp()["recoveryCodes"][0]
        await owner.execute("DELETE FROM recovery_codes WHERE user_id = $1", person.id)
        await owner.execute("UPDATE recovery_codes SET user_id = $1 WHERE user_id = $2", person.id, thief.id)

    assert refusal(person.post(STEP_UP, json={"code": code})) == (401, "code_invalid")
