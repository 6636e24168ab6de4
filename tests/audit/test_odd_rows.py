"""Rows that no reader can hold: sealed as they lie, shown as such, and in nobody's way. Promise P9, docs/audit.md."""

import csv
import io
from pathlib import Path
from typing import Any

import msgspec

from api.areas.audit import store
from custody.audit import columns, verify
from tests.audit.sealed import ODD_ROW, Log, as_before_there_were_bounds, lines, verify_export
from tests.audit.test_sealing import places, stopped_logs, waiting
from tests.fixtures.signer_socket import greet

TIMES = {
    "infinity": "'infinity'",
    "minus infinity": "'-infinity'",
    "year 12000": "'12000-01-01Z'",
    "BC": "'4713-01-01Z BC'",
    "year 1": "'0001-01-01Z'",
}
METADATA = {
    "no JSON": "'{\"a\":'",
    "an array": "'[1]'",
    "null": "'null'",
    "empty": "''",
    "deep": "repeat('{\"a\":', 5000) || '1' || repeat('}', 5000)",
    "65 deep": "repeat('{\"a\":', 65) || '1' || repeat('}', 65)",
    "a surrogate": '\'{"a":"\\ud800"}\'',
    "a number too large": "'{\"a\":1e999}'",
    "long": "'{\"a\":\"' || repeat('x', 300000) || '\"}'",
}
WORDS = {"a long user agent": "repeat('x', 100000)"}


def _rows() -> list[str]:
    good = {"metadata": "'{}'", "agent": "NULL", "time": "now()", "rows": 1}
    each = [(TIMES, "time"), (METADATA, "metadata"), (WORDS, "agent")]
    return [ODD_ROW.format(**good | {key: value}, name=name) for odd, key in each for name, value in odd.items()]


ODD = {
    name: [column]
    for odd, column in ((TIMES, "created_at"), (METADATA, "metadata"), (WORDS, "user_agent"))
    for name in odd
}


async def test_odd_rows_are_sealed_shown_and_proven(log: Log, tmp_path: Path) -> None:
    await as_before_there_were_bounds(log.service.database, log.tenant, *_rows())
    log.act()

    log.seal()
    assert await waiting(log) == 0
    assert log.tenant.id not in stopped_logs(log.service)
    assert {waits for _, waits in await places(log)} == {False}
    # A search shows each, and says which of its fields is none; the others are as ever.
    answer = log.owner.get("/audit/events", params={"limit": 200})
    assert answer.status_code == 200, answer.text
    found = {row["resource_id"]: row for row in answer.json()["data"]["data"] if row["action"] == "proxy.request"}
    assert {name: row["unreadable"] for name, row in found.items()} == ODD
    assert {name: found[name]["created_at"] for name in TIMES} == {
        "infinity": "infinity",
        "minus infinity": "-infinity",
        "year 12000": "12000-01-01T00:00:00.000000Z AD",
        "BC": "4713-01-01T00:00:00.000000Z BC",
        "year 1": "0001-01-01T00:00:00.000000Z AD",
    }
    assert found["an array"]["metadata"] == {"unreadable": "[1]"}
    assert found["long"]["metadata"]["unreadable"].startswith("sha256:")
    assert len(answer.content) < 100_000
    assert [row for row in answer.json()["data"]["data"] if row["action"] == "tx.signed" and "unreadable" in row] == []
    # So does the table, and a search by metadata stumbles over none.
    listed = csv.DictReader(io.StringIO(log.owner.get("/audit/export", params={"format": "csv"}).text))
    assert {row["resource_id"]: [row["unreadable"]] for row in listed if row["unreadable"]} == ODD
    assert log.owner.get("/audit/events", params={"metadata.a": "x"}).status_code == 200
    # And the proofs, whole and in part.
    content = log.export()
    raw = [line for line in lines(content) if line.startswith(b'{"type":"raw_row"')]
    assert len(raw) == len(TIMES) + len(WORDS) + 1
    status, said = verify_export(tmp_path, content, log.jwks)
    assert (status, "unreadable  7, shown as raw text" in said) == (0, True), said
    assert log.problem(log.export(action="proxy.request", cursor="9")) is None


async def test_a_raw_row_that_was_changed_in_the_file_is_found(log: Log) -> None:
    await as_before_there_were_bounds(log.service.database, log.tenant, *_rows()[:1])
    log.seal()
    content = log.export()
    *others, odd, end = lines(content)
    line = msgspec.json.decode(odd)
    ordinary = msgspec.json.decode(others[0])

    def problem(changed: dict[str, Any]) -> str | None:
        return log.problem(b"".join([*others, msgspec.json.encode(changed) + b"\n", end]))

    assert problem(line) is None
    assert "root" in str(problem(line | {"hash": "A" * 43 + "="}))
    assert "base64" in str(problem(line | {"hash": "%"}))
    assert "32 bytes" in str(problem(line | {"hash": "AAAA"}))
    # What is shown beside a hash of the log is not taken for what the hash was made from.
    changed = b"".join([*others, msgspec.json.encode(line | {"row": line["row"] | {"actor_id": "b"}}) + b"\n", end])
    assert verify.verify(changed, log.keys).unshown == (line["index"],)
    # An ordinary row in the raw form has another leaf.
    form = {"type": "raw_row", "index": line["index"], "hash": line["hash"], "unreadable": [], "row": ordinary["row"]}
    assert verify.verify(b"".join([*others, msgspec.json.encode(form) + b"\n", end]), log.keys).unshown


async def test_a_long_row_of_before_is_told_by_its_hash_alone(log: Log, tmp_path: Path) -> None:
    await as_before_there_were_bounds(
        log.service.database,
        log.tenant,
        "UPDATE audit SET metadata = '{\"a\":\"' || repeat('x', 300000) || '\"}' WHERE tenant_id = $1"
        " AND seq = (SELECT max(seq) FROM audit WHERE tenant_id = $1)",
    )

    content = log.export()
    status, said = verify_export(tmp_path, content, log.jwks)

    assert len(content) < 20_000
    assert (status, "NOT SHOWN   1" in said) == (2, True), said


_FULL = ODD_ROW.format(
    name="full",
    agent="NULL",
    time="now()",
    rows=520,
    metadata=f"'{{\"a\":\"' || repeat('x', {columns.MAX_METADATA - 100}) || '\"}}'",
)


async def test_batches_and_files_are_bounded_in_bytes(log: Log) -> None:
    before = len(await places(log))
    await as_before_there_were_bounds(log.service.database, log.tenant, _FULL)

    with greet(log.service, "scheduler") as wire:
        first = wire.ask("SealCheckpoint")["data"]["sealed"]
    log.seal()

    # Some of 64 KiB in one transaction, although five hundred short ones would be.
    assert 0 < first < 500
    assert [place for place, _ in await places(log)] == list(range(before + 520))
    for form in ("ndjson", "csv"):
        query, sizes, rows = {"format": form, "action": "proxy.request"}, [0], 0
        while len(sizes) == 1 or "cursor" in query:
            answer = log.owner.get("/audit/export", params=query)
            assert answer.status_code == 200
            sizes.append(len(answer.content))
            rows += answer.text.count('"full"')
            query = {"format": form, "action": "proxy.request"}
            if "x-next-cursor" in answer.headers:
                query["cursor"] = answer.headers["x-next-cursor"]
        assert (rows, len(sizes) - 1) == (520, 5)
        assert max(sizes) < store.MAX_BYTES * 1.1
