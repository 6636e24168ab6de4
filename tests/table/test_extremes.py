"""Numbers and times at the edge of what a field, a frame or a column holds: none of them causes an internal error.

Generated from the declarations, so that a new parameter is tried without anybody thinking of it.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from api.http.endpoint import Endpoint
from tests.fixtures.each import each
from tests.table.mounts import each_once
from tests.table.world import World

NUMBERS = [edge + step for edge in (2**31, 2**32, 2**53, 2**63) for step in (-1, 0, 1)] + [-1, -(2**63), 10**30]
TIMES = [
    "0001-01-01T00:00:00+14:00",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999-14:00",
    "9999-12-31T23:59:59Z",
    "10000-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2016-12-31T23:59:60Z",
    "2026-01-01T24:00:00Z",
    "-0001-01-01T00:00:00Z",
    "2026-01-01T00:00:00+23:59",
    "2026-W01-1",
    "20260101",
    "infinity",
]
WITH_QUERY = [one for one in each_once() if one.query is not None]
WITH_BODY = [one for one in each_once() if one.body is not None]


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


def odd(endpoint: Endpoint) -> Iterator[tuple[str, str]]:
    """Each parameter with each odd value that its kind may stumble over."""
    for field in msgspec.structs.fields(endpoint.query):
        values: list[Any] = NUMBERS if "int" in str(field.type) else TIMES
        if field.type is not bool:
            yield from ((field.encode_name, quote(str(value))) for value in values)


@each("endpoint", WITH_QUERY, ids=name)
def test_no_parameter_causes_an_internal_error(world: World, endpoint: Endpoint) -> None:
    call, caller = world.call(endpoint), world.caller(endpoint)
    path, _, query = call.path.partition("?")
    others = f"&{query}" if query else ""

    statuses = {
        f"{key}={value}": caller.request(call.method, f"{path}?{key}={value}{others}", json=call.json).status_code
        for key, value in odd(endpoint)
        if f"{key}=" not in query
    }

    assert {sent: status for sent, status in statuses.items() if status >= 500} == {}


def leaves(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The places of a body where a number or a time stands."""
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in inner:
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, key))
        elif isinstance(value, int) and not isinstance(value, bool):
            yield (*path, key), NUMBERS
        elif isinstance(value, str) and str(key).endswith(("At", "from", "to", "days")):
            yield (*path, key), TIMES


def optional(endpoint: Endpoint) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The numbers that a body may have at its top, whether a good one has them or not."""
    if isinstance(endpoint.body, type) and issubclass(endpoint.body, msgspec.Struct):
        for field in msgspec.structs.fields(endpoint.body):
            if "int" in str(field.type):
                yield (field.encode_name,), NUMBERS


def with_change(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The same body with another value at one place."""
    copy = msgspec.json.decode(msgspec.json.encode(content))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


@each("endpoint", WITH_BODY, ids=name)
def test_no_field_causes_an_internal_error(world: World, endpoint: Endpoint) -> None:
    given = world.call(endpoint).json
    places = dict(leaves(given)) | (dict(optional(endpoint)) if isinstance(given, dict) else {})
    tries = [(path, value) for path, values in places.items() for value in values if -(2**63) <= _size(value) < 2**64]

    statuses, call = {}, world.call(endpoint)
    for path, value in tries:
        answer = call.send(world.caller(endpoint), json=with_change(given, path, value))
        statuses[f"{path} {value}"] = answer.status_code
        if answer.is_success:
            # It may have used up what the request was about.
            call = world.call(endpoint)

    assert {sent: status for sent, status in statuses.items() if status >= 500} == {}


def _size(value: Any) -> int:
    # Our clients cannot write larger ones: the api refuses what has more than 64 bits, tests/table/test_bodies.py.
    return value if isinstance(value, int) else 0
