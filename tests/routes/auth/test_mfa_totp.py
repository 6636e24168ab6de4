"""Authenticator apps over HTTP: pyotp is the app."""

import base64
from collections import Counter
from contextlib import closing

import asyncpg
import pyotp
import pytest

from tests.fixtures.people import Person, sign_in
from tests.fixtures.server import Service
from tests.routes.auth.factors import BLANKS, at_once, code_at, put_blanks, refusal, wrong_code

VERIFY, STEP_UP = "/auth/mfa/totp/verify", "/auth/mfa/totp/step-up"


def test_apps_understand_the_seed(person: Person) -> None:
    shown = person.ok("POST", "/auth/mfa/totp/enroll", {})
    app = pyotp.parse_uri(shown["otpauthUri"])

    assert isinstance(app, pyotp.TOTP)
    assert (app.issuer, app.name, app.digits, app.interval) == ("Custody", person.wallet.address, 6, 30)
    assert app.secret == shown["secret"]
    assert len(base64.b32decode(shown["secret"])) == 20


def test_the_first_code_makes_it_a_factor_and_the_session_has_shown_it(person: Person) -> None:
    answer = person.enrol_totp()

    assert answer["mfa"]["methods"] == ["recovery", "totp"]
    assert answer["mfa"]["verifiedAt"]
    assert person.ok("GET", "/auth/sessions")[0]["amr"] == ["wallet", "totp", "mfa"]
    assert "X-Service" not in answer


def test_an_enrolment_that_is_not_confirmed_is_no_factor(person: Person) -> None:
    seed = person.ok("POST", "/auth/mfa/totp/enroll", {})["secret"]

    assert refusal(person.post(STEP_UP, json={"code": code_at(seed)})) == (401, "code_invalid")
    assert person.ok("GET", "/auth/mfa")["methods"] == []


def test_a_second_seed_takes_the_place_of_the_first(person: Person) -> None:
    first, second = (person.ok("POST", "/auth/mfa/totp/enroll", {})["secret"] for _ in range(2))

    assert refusal(person.post(VERIFY, json={"code": code_at(first)})) == (401, "code_invalid")
    assert person.post(VERIFY, json={"code": code_at(second)}).status_code == 200


def test_a_second_authenticator_needs_the_first_one_removed(person: Person) -> None:
    person.enrol_totp()

    assert refusal(person.post("/auth/mfa/totp/enroll", json={})) == (409, "factor_exists")


async def test_an_enrolment_ends_after_ten_minutes(person: Person, owner: asyncpg.Connection) -> None:
    seed = person.ok("POST", "/auth/mfa/totp/enroll", {})["secret"]
    await owner.execute(
        "UPDATE enrolments SET expires_at = expires_at - interval '600 seconds' WHERE user_id = $1", person.id
    )

    assert refusal(person.post(VERIFY, json={"code": code_at(seed)})) == (409, "enrolment_absent")


@pytest.mark.parametrize("ahead", [-1, 0, 1])
def test_a_clock_may_differ_by_half_a_minute(person: Person, ahead: int) -> None:
    seed = person.ok("POST", "/auth/mfa/totp/enroll", {})["secret"]
    # If a half minute ends between a code and its request, another code is shown.
    answers = (person.post(VERIFY, json={"code": code_at(seed, ahead)}).status_code for _ in range(2))

    assert 200 in answers


@pytest.mark.parametrize("ahead", [-10, -3, 3, 10])
def test_a_code_of_another_time_is_wrong(person: Person, ahead: int) -> None:
    seed = person.ok("POST", "/auth/mfa/totp/enroll", {})["secret"]

    assert refusal(person.post(VERIFY, json={"code": code_at(seed, ahead)})) == (401, "code_invalid")


@pytest.mark.parametrize(
    "code",
    [
        "x",
        "12345",
        "1234567",
        "abcdef",
        "\uff11\uff12\uff13\uff14\uff15\uff16",
        "-12345",
        "0x1234",
        "123-456",
        " ",
        "123 45",
    ],
)
def test_a_malformed_code_is_a_wrong_one(person: Person, code: str) -> None:
    person.enrol_totp()

    assert refusal(person.post(STEP_UP, json={"code": code})) == (401, "code_invalid")


@pytest.mark.parametrize("blank", BLANKS)
def test_a_code_counts_however_it_is_spaced(person: Person, blank: str) -> None:
    seed = person.ok("POST", "/auth/mfa/totp/enroll", {})["secret"]

    person.take(person.ok("POST", VERIFY, {"code": put_blanks(code_at(seed), blank)}))
    code = code_at(seed, 1)
    person.take(person.ok("POST", STEP_UP, {"code": put_blanks(code, blank)}))
    # With blanks in other places it is still the same code, and used up.
    assert refusal(person.post(STEP_UP, json={"code": f" {code}"})) == (401, "code_invalid")


@pytest.mark.parametrize("blank", BLANKS)
def test_a_wrong_code_is_wrong_however_it_is_spaced(person: Person, blank: str) -> None:
    person.enrol_totp()

    assert refusal(person.post(STEP_UP, json={"code": put_blanks(wrong_code(person.seed), blank)})) == (
        401,
        "code_invalid",
    )


def test_a_code_works_once(person: Person) -> None:
    person.enrol_totp()
    code = code_at(person.seed, 1)

    person.take(person.ok("POST", STEP_UP, {"code": code}))
    assert refusal(person.post(STEP_UP, json={"code": code})) == (401, "code_invalid")


def test_the_code_that_enrolled_works_for_nothing_else(person: Person) -> None:
    person.seed = person.ok("POST", "/auth/mfa/totp/enroll", {})["secret"]
    code = code_at(person.seed)
    person.take(person.ok("POST", VERIFY, {"code": code}))

    assert refusal(person.post(STEP_UP, json={"code": code})) == (401, "code_invalid")
    assert refusal(person.post(VERIFY, json={"code": code})) == (409, "enrolment_absent")


def test_no_older_code_works_after_a_newer_one(person: Person) -> None:
    person.enrol_totp()
    person.ok("POST", STEP_UP, {"code": code_at(person.seed, 1)})

    for steps in (0, -1):
        assert refusal(person.post(STEP_UP, json={"code": code_at(person.seed, steps)})) == (401, "code_invalid")


def test_of_one_code_twice_at_once_one_works(person: Person) -> None:
    person.enrol_totp()
    code = code_at(person.seed, 1)
    answers = at_once(4, lambda _: person.post(STEP_UP, json={"code": code}))

    assert Counter(answer.status_code for answer in answers) == {200: 1, 401: 3}


def test_of_twenty_guesses_at_once_five_are_looked_at(person: Person) -> None:
    person.enrol_totp()
    wrong = wrong_code(person.seed)
    answers = at_once(20, lambda _: person.post(STEP_UP, json={"code": wrong}))

    assert Counter(answer.status_code for answer in answers) == {401: 5, 429: 15}


async def test_after_five_guesses_even_the_right_code_waits_a_quarter_of_an_hour(
    person: Person, owner: asyncpg.Connection
) -> None:
    person.enrol_totp()
    for _ in range(5):
        person.post(STEP_UP, json={"code": wrong_code(person.seed)})
    code = code_at(person.seed, 1)
    refused = person.post(STEP_UP, json={"code": code})

    assert refusal(refused) == (429, "too_many_attempts")
    assert 850 < int(refused.headers["Retry-After"]) <= 900
    person.step_up()
    await owner.execute(
        "UPDATE attempts SET ends_at = ends_at - interval '900 seconds' WHERE subject = $1", f"totp:{person.id}"
    )
    assert person.post(STEP_UP, json={"code": code}).status_code == 200


def test_one_person_s_guesses_are_not_another_s(service: Service, person: Person) -> None:
    person.enrol_totp()
    for _ in range(6):
        person.post(STEP_UP, json={"code": wrong_code(person.seed)})
    with closing(sign_in(service)) as other:
        other.enrol_totp()
        assert other.post(STEP_UP, json={"code": code_at(other.seed, 1)}).status_code == 200


def test_a_right_code_clears_the_count(person: Person) -> None:
    person.enrol_totp()
    statuses = [person.post(STEP_UP, json={"code": wrong_code(person.seed)}).status_code for _ in range(4)]
    statuses.append(person.post(STEP_UP, json={"code": code_at(person.seed, 1)}).status_code)
    statuses += [person.post(STEP_UP, json={"code": wrong_code(person.seed)}).status_code for _ in range(6)]

    assert statuses == [401] * 4 + [200] + [401] * 5 + [429]


async def test_a_removed_authenticator_is_gone_with_its_seed(person: Person, owner: asyncpg.Connection) -> None:
    person.enrol_totp()

    assert person.ok("DELETE", "/auth/mfa/totp") == {"deleted": "totp"}
    assert refusal(person.post(STEP_UP, json={"code": code_at(person.seed, 1)})) == (401, "code_invalid")
    assert person.ok("GET", "/auth/mfa")["methods"] == []
    assert await owner.fetchval("SELECT count(*) FROM identity_sealed WHERE user_id = $1", person.id) == 0
    assert refusal(person.delete("/auth/mfa/totp")) == (404, "factor_absent")


async def test_a_seed_that_was_moved_to_another_person_does_not_open(
    service: Service, person: Person, owner: asyncpg.Connection
) -> None:
    person.enrol_totp()
    with closing(sign_in(service)) as thief:
        thief.enrol_totp()
        await owner.execute(
            "UPDATE identity_sealed s SET blob = o.blob FROM identity_sealed o WHERE o.user_id = $2 AND s.user_id = $1",
            person.id,
            thief.id,
        )
        answer = person.post(STEP_UP, json={"code": code_at(thief.seed, 1)})

    assert refusal(answer) == (503, "sealed_value_tampered")


async def test_a_seed_that_was_never_confirmed_does_not_open_as_one_that_was(
    person: Person, owner: asyncpg.Connection
) -> None:
    known = person.ok("POST", "/auth/mfa/totp/enroll", {})["secret"]
    blob = await owner.fetchval("SELECT blob FROM enrolments WHERE user_id = $1", person.id)
    person.enrol_totp()
    await owner.execute("UPDATE identity_sealed SET blob = $2 WHERE user_id = $1", person.id, blob)

    assert refusal(person.post(STEP_UP, json={"code": code_at(known, 1)})) == (503, "sealed_value_tampered")
