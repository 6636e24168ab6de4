"""Passkeys over HTTP: registered, listed, removed, and signed in with. The authenticator tells the truth here."""

from collections import Counter
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from tests.fixtures.people import Person, sign_in
from tests.fixtures.server import Service
from tests.outside.authenticator import Authenticator, base64, unbase64
from tests.routes.auth.factors import actions, at_once, refusal

NEW, ADD = "/auth/passkeys/register/options", "/auth/passkeys/register/verify"
ASK, LOGIN = "/auth/passkeys/login/options", "/auth/passkeys/login/verify"
SHOW, STEP_UP = "/auth/mfa/passkey/options", "/auth/mfa/passkey/step-up"


def test_a_passkey_is_registered_and_listed(person: Person, device: Authenticator) -> None:
    made = register(person, device, name="Laptop")

    assert len(made.pop("recoveryCodes")) == 10
    assert {"name": "Laptop", "transports": ["internal"]}.items() <= made.items()
    assert sorted(made) == ["createdAt", "id", "name", "transports"]
    assert person.ok("GET", "/auth/passkeys") == [made | {"lastUsedAt": None}]
    assert person.ok("GET", "/auth/mfa")["methods"] == [{"kind": "passkey", "confirmedAt": made["createdAt"]}]


def test_options_for_registration(person: Person, device: Authenticator) -> None:
    options = person.ok("POST", NEW, {})

    assert options["rp"] == {"name": "Custody", "id": "localhost"}
    assert unbase64(options["user"]["id"]).hex() == person.id.replace("-", "")
    assert options["user"]["name"] == person.wallet.address
    assert options["attestation"] == "none"
    chosen = {"residentKey": "required", "requireResidentKey": True, "userVerification": "required"}
    assert options["authenticatorSelection"] == chosen
    assert [each["alg"] for each in options["pubKeyCredParams"]] == [-7, -8, -257]
    assert options["excludeCredentials"] == []


def test_a_device_is_told_which_passkeys_there_are(person: Person, device: Authenticator, fresh: Person) -> None:
    register(person, device)
    log_in(fresh, device)

    known = {"id": base64(device.passkeys[0].id), "type": "public-key"}
    assert fresh.ok("POST", NEW, {})["excludeCredentials"] == [known]
    shown = fresh.ok("POST", SHOW, {})
    assert shown["allowCredentials"] == [known]
    assert shown["userVerification"] == "required"


def test_options_for_sign_in_name_nobody(person: Person, device: Authenticator, fresh: Person) -> None:
    register(person, device)
    options = fresh.ok("POST", ASK, {})

    assert options.pop("challenge")
    assert options == {"rpId": "localhost", "timeout": 300_000, "allowCredentials": [], "userVerification": "preferred"}


def test_a_verified_sign_in_counts_as_mfa(person: Person, device: Authenticator, fresh: Person) -> None:
    register(person, device)
    session = log_in(fresh, device)

    assert (fresh.id, fresh.tenant, session["provider"]) == (person.id, person.tenant, "passkey")
    assert session["mfa"]["verifiedAt"]
    assert fresh.ok("GET", "/auth/sessions")[0]["amr"] == ["passkey", "mfa"]
    assert len(fresh.ok("POST", "/auth/mfa/recovery-codes", {})["recoveryCodes"]) == 10
    assert fresh.ok("GET", "/auth/passkeys")[0]["lastUsedAt"]


def test_an_unverified_sign_in_does_not(person: Person, device: Authenticator, fresh: Person) -> None:
    register(person, device)
    session = log_in(fresh, device, user_verified=False)

    assert session["mfa"] == {"verifiedAt": None, "methods": ["passkey", "recovery"]}
    assert fresh.ok("GET", "/auth/sessions")[0]["amr"] == ["passkey"]
    assert refusal(fresh.post("/auth/mfa/recovery-codes", json={})) == (403, "mfa_required")


def test_sign_in_to_a_tenant_of_one_s_own(
    service: Service, person: Person, device: Authenticator, fresh: Person
) -> None:
    register(person, device)
    body = {"credential": device.get(fresh.ok("POST", ASK, {})), "tenantId": person.tenant}
    assert fresh.ok("POST", LOGIN, body)["tenant"]["id"] == person.tenant

    with closing(sign_in(service)) as other:
        body = {"credential": device.get(fresh.ok("POST", ASK, {})), "tenantId": other.tenant}
        assert refusal(fresh.post(LOGIN, json=body)) == (403, "not_a_member")


def test_a_verified_passkey_steps_up(service: Service, person: Person, device: Authenticator) -> None:
    register(person, device)
    with closing(sign_in(service, person.wallet)) as later:
        assert later.session["mfa"]["verifiedAt"] is None
        answer = later.ok("POST", STEP_UP, {"credential": device.get(later.ok("POST", SHOW, {}))})

    assert answer["mfa"]["verifiedAt"]
    assert answer["provider"] == "siwe"


async def test_an_unverified_one_does_not(person: Person, device: Authenticator, owner: asyncpg.Connection) -> None:
    passkey = register(person, device)["id"]
    answer = device.get(person.ok("POST", SHOW, {}), user_verified=False)

    assert refusal(person.post(STEP_UP, json={"credential": answer})) == (401, "user_unverified")
    assert await actions(owner, person) == [f"passkey.added {passkey}", "factor.refused passkey"]


def test_step_up_without_a_passkey_is_404(person: Person) -> None:
    assert refusal(person.post(SHOW, json={})) == (404, "factor_absent")


def test_a_removed_passkey_signs_nobody_in(person: Person, device: Authenticator, fresh: Person) -> None:
    passkey = register(person, device)["id"]
    log_in(fresh, device)

    assert fresh.ok("DELETE", f"/auth/passkeys/{passkey}") == {"deleted": passkey}
    assert fresh.ok("GET", "/auth/passkeys") == []
    answer = device.get(fresh.ok("POST", ASK, {}))
    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (401, "passkey_unknown")


def test_another_person_s_passkey_is_not_there(service: Service, person: Person, device: Authenticator) -> None:
    passkey = register(person, device)["id"]
    with closing(sign_in(service)) as other:
        assert refusal(other.delete(f"/auth/passkeys/{passkey}")) == (404, "passkey_absent")
        assert other.ok("GET", "/auth/passkeys") == []

    assert len(person.ok("GET", "/auth/passkeys")) == 1


def test_a_person_has_at_most_twenty(person: Person, device: Authenticator, fresh: Person) -> None:
    register(person, device)
    log_in(fresh, device)
    for _ in range(19):
        register(fresh, device)
        step_up(fresh, device)

    answer = device.create(fresh.ok("POST", NEW, {}))
    assert refusal(fresh.post(ADD, json={"credential": answer})) == (409, "too_many_passkeys")
    assert len(fresh.ok("GET", "/auth/passkeys")) == 20


def test_one_passkey_is_registered_once(service: Service, person: Person, device: Authenticator) -> None:
    first = device.create(person.ok("POST", NEW, {}))
    person.ok("POST", ADD, {"credential": first})
    with closing(sign_in(service)) as other:
        second = device.create(other.ok("POST", NEW, {}))
        # The attestation is signed by nobody, so it can be shown again with the page's new words.
        first["response"]["clientDataJSON"] = second["response"]["clientDataJSON"]

        assert refusal(other.post(ADD, json={"credential": first})) == (409, "passkey_taken")


def test_a_passkey_that_never_counts_signs_in_again_and_again(
    person: Person, device: Authenticator, fresh: Person
) -> None:
    register(person, device)
    for _ in range(3):
        log_in(fresh, device, sign_count=0)


@pytest.mark.parametrize("count", [0, 4, 5])
def test_a_count_that_does_not_grow_is_a_copy_s(
    person: Person, device: Authenticator, fresh: Person, count: int
) -> None:
    register(person, device)
    log_in(fresh, device, sign_count=5)
    answer = device.get(fresh.ok("POST", ASK, {}), sign_count=count)

    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (401, "passkey_cloned")
    log_in(fresh, device, sign_count=6)


def test_of_two_answers_with_one_count_one_is_a_copy_s(person: Person, device: Authenticator, fresh: Person) -> None:
    register(person, device)
    answers = [device.get(fresh.ok("POST", ASK, {}), sign_count=7) for _ in range(4)]
    given = at_once(4, lambda number: fresh.post(LOGIN, json={"credential": answers[number]}))

    assert Counter(answer.status_code for answer in given) == {200: 1, 401: 3}


async def test_a_person_who_was_deactivated_does_not_sign_in(
    person: Person, device: Authenticator, fresh: Person, owner: asyncpg.Connection
) -> None:
    register(person, device)
    await owner.execute("UPDATE users SET deactivated_at = now() WHERE id = $1", person.id)
    answer = device.get(fresh.ok("POST", ASK, {}))

    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (401, "deactivated")


def test_a_passkey_without_user_verification_is_not_registered(person: Person, device: Authenticator) -> None:
    answer = device.create(person.ok("POST", NEW, {}), user_verified=False)

    assert refusal(person.post(ADD, json={"credential": answer})) == (400, "passkey_refused")
    # They have no factor now that they could not show.
    assert person.post("/auth/mfa/totp/enroll", json={}).status_code == 200


def test_the_first_passkey_brings_codes_for_the_day_it_is_lost(person: Person, device: Authenticator) -> None:
    code = register(person, device)["recoveryCodes"][0]

    person.take(person.ok("POST", "/auth/mfa/recovery-codes/step-up", {"code": code}))
    assert "recoveryCodes" not in register(person, device)


async def test_five_wrong_answers_and_no_more_are_looked_at(
    person: Person, device: Authenticator, owner: asyncpg.Connection
) -> None:
    passkey = register(person, device)["id"]
    bad = {"credential": device.get(person.ok("POST", SHOW, {}), challenge="AAAA")}
    answers = [person.post(STEP_UP, json=bad) for _ in range(12)]

    assert Counter(answer.status_code for answer in answers) == {401: 5, 429: 7}
    assert await actions(owner, person) == [f"passkey.added {passkey}", *["factor.refused passkey"] * 5]


def test_a_right_answer_clears_the_count(person: Person, device: Authenticator) -> None:
    register(person, device)
    for _ in range(7):
        step_up(person, device)


def register(person: Person, device: Authenticator, **named: str) -> dict[str, Any]:
    """Register a new passkey of a device."""
    return dict(person.ok("POST", ADD, {"credential": device.create(person.ok("POST", NEW, {})), **named}))


def log_in(browser: Person, device: Authenticator, **lies: Any) -> dict[str, Any]:
    """Sign in with the device's newest passkey."""
    return browser.take(browser.ok("POST", LOGIN, {"credential": device.get(browser.ok("POST", ASK, {}), **lies)}))


def step_up(person: Person, device: Authenticator) -> None:
    """Show the device's newest passkey."""
    person.take(person.ok("POST", STEP_UP, {"credential": device.get(person.ok("POST", SHOW, {}))}))
