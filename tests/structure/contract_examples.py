"""Writes the examples of the contract from what clients of tests sent and got: `make examples`.

Of each operation the body and the answers that say most in little room are taken, and of each error the shortest
answer; ids, times and secrets in them are made up (`tests/fixtures/placeholders.py`).
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from api.http import openapi
from api.http.contract import examples
from api.http.contract.codes import meanings
from api.routes import endpoints
from tests.fixtures.exchanges import JSON, Exchange
from tests.fixtures.held_contract import Place, misfit
from tests.fixtures.listed_codes import contract
from tests.fixtures.placeholders import replace_values

# Pages for people, and a stream, which has no end; the contract itself.
UNSHOWN = {"text/html", "text/event-stream"}
ITSELF = {openapi.CONTRACT, openapi.PLAIN, openapi.EVENTS}
_REFUSAL = {"$ref": "#/components/schemas/Error"}
# Beyond so many bytes an example hides what it shows.
_ROOM = 1_500


def places() -> dict[str, Place]:
    """Every operation of the committed contract, but those that answer with a form of it."""
    return {
        f"{method.upper()} {path}": Place(path, method, operation, {})
        for path, item in contract()["paths"].items()
        for method, operation in item.items()
        if path not in ITSELF
    }


def kept_in(folder: Path) -> Iterator[Exchange]:
    """All that was kept there."""
    read = msgspec.json.Decoder(Exchange).decode
    for file in sorted(folder.glob("*.jsonl")):
        yield from (read(line) for line in file.read_bytes().splitlines())


def best_of(exchanges: Iterable[Exchange]) -> examples.Kept:
    """The examples: the body and the answers of each operation, and the answer of each error."""
    known = places()
    own = {
        int(status): {name for name, place in known.items() if _is_own(place, status)}
        for status in {status for place in known.values() for status in place.operation["responses"]}
    }
    bodies, answers = defaultdict[str, list[Any]](list), defaultdict[tuple[str, str, str], list[Any]](list)
    refusals = defaultdict[tuple[str, str], list[Any]](list)
    for one in exchanges:
        if one.code is not None and one.operation not in own.get(one.status, ()):
            refusals[str(one.status), one.code].append(one.answered)
        if (
            (one.code is None or one.operation in own.get(one.status, ()))
            and one.answered is not None
            and one.media not in UNSHOWN
        ):
            answers[one.operation, str(one.status), one.media].append(one.answered)
        if one.status < 304 and one.sent is not None:
            bodies[one.operation].append(one.sent)
    found = examples.Kept({}, {}, {})
    for (operation, status, media), got in sorted(answers.items()):
        if (place := known.get(operation)) is not None:
            for example in _best(got, place, media, status):
                at = found.answers.setdefault(place.operation["operationId"], {})
                at[status if media == JSON else f"{status} {media}"] = example
    for operation, place in known.items():
        name, media = place.operation["operationId"], _media_of_body(place)
        sent = [] if name in examples.BODIES else [_as_taught(one, place, media) for one in bodies[operation]]
        for example in _best(sent, place, media, None):
            found.bodies[name] = example
    for (status, code), got in sorted(refusals.items()):
        found.refusals.setdefault(status, {})[code] = replace_values(min(got, key=_length))
    _say_what_nobody_met(found)
    return found


def _is_own(place: Place, status: str) -> bool:
    """Say whether an answer that is no success has more to it than every refusal has."""
    schema = place.operation["responses"].get(status, {}).get("content", {}).get(JSON, {}).get("schema", _REFUSAL)
    return int(status) >= 400 and schema != _REFUSAL


def _as_taught(body: Any, place: Place, media: str) -> Any:
    """The body with each field by the name that is taught."""
    schema = place.operation.get("requestBody", {}).get("content", {}).get(media, {}).get("schema", {})
    if not isinstance(body, dict) or "$ref" not in schema:
        return body
    fields = contract()["components"]["schemas"][schema["$ref"].rpartition("/")[2]].get("properties", {})
    return {fields.get(name, {}).get("x-service-same-as", name): one for name, one in body.items()}


def _say_what_nobody_met(found: examples.Kept) -> None:
    """A status of which no client of a test met any code, such as 500, is shown with what its first code means."""
    meaning, shared = meanings(endpoints()), contract()["components"]["responses"]
    for place in places().values():
        for status, said in place.operation["responses"].items():
            answer = shared[said["$ref"].rpartition("/")[2]] if "$ref" in said else said
            codes, known = answer.get(examples.CODES, ()), found.refusals.get(status, {})
            if int(status) >= 400 and codes and known.keys().isdisjoint(codes):
                refusal = {"ok": False, "error": meaning[codes[0]][1], "data": {"code": codes[0]}}
                found.refusals.setdefault(status, {})[codes[0]] = refusal


def _media_of_body(place: Place) -> str:
    return next(iter(place.operation.get("requestBody", {}).get("content", {})), JSON)


def _best(given: list[Any], place: Place, media: str, status: str | None) -> list[Any]:
    """Of those that fit the contract the one that is most worth showing; none where none fits."""
    shown = sorted((replace_values(_short(one)) for one in given), key=_worth)
    # A body fits the form that has fewer names, and so both.
    return [one for one in shown if misfit(place, media, one, status, in_plain=status is None) is None][:1]


def _short(value: Any) -> Any:
    """The same with lists of few items."""
    if isinstance(value, dict):
        return {name: _short(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_short(one) for one in value[: 1 if value and isinstance(value[0], dict) else 3]]
    return value


def _worth(value: Any) -> tuple[bool, bool, int, tuple[int, bytes]]:
    """First comes what is short and plain, then what says more, then what is shorter."""
    size, text = _length(value)
    return size > _ROOM, not text.isascii() or b"\\u" in text, -len(set(_names(value))), (size, text)


def _length(value: Any) -> tuple[int, bytes]:
    text = msgspec.json.encode(value, order="sorted")
    return len(text), text


def _names(value: Any) -> Iterator[str]:
    """Every name under which something is said."""
    if isinstance(value, dict):
        for name, one in value.items():
            if one not in (None, [], {}, ""):
                yield name
                yield from _names(one)
    elif isinstance(value, list):
        for one in value:
            yield from _names(one)


def lines_of(kept: examples.Kept) -> str:
    """The file: an example a line, so that a change shows which."""
    parts = (
        f' "{name}": {{\n' + ",\n".join(f'  "{key}": {_json(one)}' for key, one in _in_order(part).items()) + "\n }"
        for name, part in msgspec.structs.asdict(kept).items()
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _in_order(part: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(part.items()))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def still_fitting(before: examples.Kept, new: examples.Kept) -> examples.Kept:
    """Join what there was, as far as the contract takes it, and what is new beside it."""
    of = {place.operation["operationId"]: place for place in places().values()}
    for name, body in before.bodies.items():
        if name in of and misfit(of[name], _media_of_body(of[name]), body, in_plain=True) is None:
            new.bodies[name] = body
    for name, answers in before.answers.items():
        for key, answer in answers.items():
            status, _, media = key.partition(" ")
            if name in of and misfit(of[name], media or JSON, answer, status) is None:
                new.answers.setdefault(name, {})[key] = answer
    for status, refusals in before.refusals.items():
        new.refusals[status] = new.refusals.get(status, {}) | refusals
    return new


if __name__ == "__main__":
    found = best_of(kept_in(Path(sys.argv[1])))
    if sys.argv[2:] == ["--missing"]:
        found = still_fitting(msgspec.json.decode(examples.FILE.read_bytes(), type=examples.Kept), found)
    examples.FILE.write_text(lines_of(found))
    print(f"{examples.FILE}: {examples.FILE.stat().st_size:,} bytes")
