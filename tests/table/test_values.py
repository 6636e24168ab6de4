"""A text for no value is a value like any other, and times have one form: tried on every parameter of a query.

Generated from the contract, so that a new parameter is tried without anybody thinking of it.
"""

from typing import Any

import httpx
import jsonschema_rs
import msgspec
import pytest

from api.http import openapi
from api.http.endpoint import Endpoint
from api.routes import endpoints
from custody.kit.search_bounds import Bound
from tests.fixtures.each import each
from tests.table.world import World

NONE = ("null", "None", "", "undefined")
TIMES = ("2026-01-31", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456Z", "2026-01-31T12:00:00%2B01:00")
NO_TIMES = (
    "2026-01-31T12:00:00",
    "2026-01-31 12:00:00Z",
    "2026-02-30",
    "2026-W05-6",
    "20260131",
    "1769860800",
    "today",
)
_PATHS = openapi.document(endpoints(), "http://localhost:3200")["paths"]
_BOUND = msgspec.json.schema(Bound)["pattern"].replace(r"\Z", "$")


def parameters() -> list[Any]:
    """Every parameter of every query, with its shape, but those that are named by the caller."""
    return [
        pytest.param(endpoint, one, id=f"{endpoint.method} {endpoint.contract_path} {one['name']}")
        for endpoint in endpoints()
        for one in _PATHS[endpoint.contract_path][endpoint.method.lower()]["parameters"]
        if one.get("in") == "query" and not one["name"].endswith(".")
    ]


BOUNDS = [one for one in parameters() if one.values[1]["schema"].get("pattern") == _BOUND]


def admits(shape: dict[str, Any], text: str) -> bool:
    """Say whether the contract takes this text as a value."""
    return shape.get("type", "string") == "string" and bool(jsonschema_rs.is_valid(shape, text))


def send(world: World, endpoint: Endpoint, name: str, value: str) -> httpx.Response:
    """A good request, but for one parameter."""
    call, caller = world.call(endpoint), world.caller(endpoint)
    path, _, query = call.path.partition("?")
    others = [part for part in query.split("&") if part and not part.startswith(f"{name}=")]
    return caller.request(call.method, f"{path}?{'&'.join([*others, f'{name}={value}'])}", json=call.json)


# Beside the selector of a good request it is one too many.
OWN_CODES = {"bad_email_address", "bad_phone_number", "one_identity"}


@each(("endpoint", "parameter"), parameters())
def test_a_text_that_stands_for_none_is_a_value_or_is_refused(
    world: World, endpoint: Endpoint, parameter: dict[str, Any]
) -> None:
    name, shape = parameter["name"], parameter["schema"]

    for text in NONE:
        answer = send(world, endpoint, name, text)

        if admits(shape, text):
            # Nobody's name, as another word is: a list does not answer with everything.
            other = send(world, endpoint, name, f"{text}z" if text else "")
            assert answer.status_code == other.status_code, (text, answer.text)
            if answer.headers["content-type"] == "application/json":
                assert _count(answer) == _count(other), (text, answer.text)
        else:
            assert answer.status_code == 400, (text, answer.text)
            if answer.json()["data"]["code"] in OWN_CODES:
                continue
            assert answer.json()["data"]["fields"] == [name]
            assert parameter["required"] or answer.json()["error"].endswith(f"leave {name} out if you mean none.")


def _count(answer: httpx.Response) -> Any:
    data = answer.json()["data"]
    return len(data) if isinstance(data, list) else data.get("total", len(data.get("data", ())))


def test_every_parameter_that_bounds_a_time_has_the_one_form() -> None:
    names = {"from", "to", "since", "until", "before", "after"}
    timed = {
        one.id
        for one in parameters()
        if one.values[1]["name"].removeprefix("date").lower() in names
        and one.values[1]["schema"].get("type") == "string"
    }

    assert timed == {one.id for one in BOUNDS}
    assert len(timed) >= 8


@each(("endpoint", "parameter"), BOUNDS)
def test_a_time_is_a_date_or_has_a_zone(world: World, endpoint: Endpoint, parameter: dict[str, Any]) -> None:
    name = parameter["name"]

    taken = {text: send(world, endpoint, name, text).status_code for text in TIMES}
    refused = [send(world, endpoint, name, text) for text in NO_TIMES]

    assert set(taken.values()) == {200}, taken
    assert [answer.status_code for answer in refused] == [400] * len(NO_TIMES)
    assert {answer.json()["data"]["fields"][0] for answer in refused} == {name}
    assert all(f"{name} must be a date and time with a zone" in answer.json()["error"] for answer in refused)
