"""Every body and answer of the contract has an example that it takes, and nothing of a test's deployment is in one."""

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec
import pyotp
from solders.keypair import Keypair

from api.http.contract import examples
from custody.kit import tokens
from tests.fixtures.each import each
from tests.fixtures.held_contract import Place, misfit
from tests.fixtures.listed_codes import contract
from tests.fixtures.placeholders import replace_values
from tests.structure.contract_examples import UNSHOWN, lines_of, places

KEPT = msgspec.json.decode(examples.FILE.read_bytes(), type=examples.Kept)
PLACES = places()
# What no test got whose exchanges were kept last time: here is nothing to show yet. These may only become fewer.
UNSEEN = {
    # A body that arrives so slowly takes a test half a minute.
    "POST /auth/device/code 408 application/json",
    "POST /auth/device/token 408 application/json",
}


def bodies_and_answers(place: Place) -> Iterator[tuple[str | None, str, list[Any]]]:
    """Every body and answer of an operation: the status of an answer, what it is, and its examples."""
    for media, said in place.operation.get("requestBody", {}).get("content", {}).items():
        yield None, media, of_media(said)
    for status, answer in place.operation["responses"].items():
        for media, said in follow(answer).get("content", {}).items():
            if media not in UNSHOWN:
                yield status, media, of_media(said)


def of_media(said: dict[str, Any]) -> list[Any]:
    many = [follow(one)["value"] for one in said.get("examples", {}).values()]
    return [said["example"], *many] if "example" in said else many


def follow(node: dict[str, Any]) -> dict[str, Any]:
    _, part, kind, name = node["$ref"].split("/") if "$ref" in node else ("", "", "", "")
    return contract()[part][kind][name] if name else node


@each("operation", PLACES)
def test_every_body_and_answer_has_an_example_that_its_schema_takes(operation: str) -> None:
    place = PLACES[operation]
    found = list(bodies_and_answers(place))

    missing = {f"{operation} {status or 'body'} {media}" for status, media, given in found if not given}
    assert missing == {one for one in UNSEEN if one.startswith(f"{operation} ")}
    problems = [
        misfit(place, media, one, status, in_plain=in_plain)
        for status, media, given in found
        for one in given
        for in_plain in (True, False)
    ]
    assert set(problems) <= {None}


def test_an_answer_with_a_code_shows_one_of_its_status() -> None:
    wrong = [
        f"{operation} {status}: {code}"
        for operation, place in PLACES.items()
        for status, answer in place.operation["responses"].items()
        for said in follow(answer).get("content", {}).values()
        for code in said.get("examples", {})
        if code not in follow(answer)[examples.CODES]
    ]

    assert wrong == []


def test_kept_examples_have_nothing_left_to_replace() -> None:
    many = [*KEPT.answers.values(), *KEPT.refusals.values()]
    values = [*KEPT.bodies.values(), *(one for part in many for one in part.values())]

    assert [(one, again) for one in values if (again := replace_values(one)) != one] == []
    assert lines_of(KEPT) == examples.FILE.read_text()
    assert examples.FILE.stat().st_size < 400_000


@each(
    "secret",
    [
        tokens.new_api_key("ck_live"),
        tokens.new_nonce(),
        tokens.new_random(),
        str(uuid.uuid4()),
        pyotp.random_base32(),
        "0x" + "c0ffee" * 11,
        str(Keypair()),
        str(Keypair().pubkey()),
        "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJlLW9mLXNvbWVib2R5",
        "person-0123456789ab@example.com",
        "tenant-0a1b2c3d4e5f",
        "2026-11-29T00:31:22.123456Z",
    ],
    ids=["key", "nonce", "random", "uuid", "base32", "hex", "keypair", "address", "jwt", "mail", "tenant", "time"],
)
def test_values_of_one_run_are_replaced_wherever_they_stand(secret: str) -> None:
    kept = {"a": [f"before {secret}, after", secret], secret: 1_796_000_000}

    once = replace_values(kept)

    assert secret[4:] not in msgspec.json.encode(once).decode()
    assert replace_values(once) == once
    assert "1796000000" not in str(once)
