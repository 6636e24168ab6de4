"""The same two statements by pgbench: what the database alone can do, for the ratios.

The script is written from what a database says of its functions and types, so it follows their fields, and drives the
databases of older revisions too.
"""

import asyncio
import os
import re
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg
import msgspec

from ops.postgres_install import programs

_ARGUMENTS = """
SELECT regexp_replace(p.proargnames[u.place], '^p_', '') AS name, format_type(u.type, NULL) AS type, t.typelem <> 0 AS many,
       COALESCE(e.typname, t.typname) AS kind,
       (SELECT array_agg(ARRAY[a.attname::text, format_type(a.atttypid, a.atttypmod)] ORDER BY a.attnum) FROM pg_attribute a
         WHERE a.attrelid = COALESCE(e.typrelid, t.typrelid) AND a.attnum > 0 AND NOT a.attisdropped) AS fields
  FROM pg_proc p, unnest(p.proargtypes::oid[]) WITH ORDINALITY AS u (type, place)
  JOIN pg_type t ON t.oid = u.type LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
 WHERE p.pronamespace = 'public'::regnamespace AND p.proname = $1 ORDER BY u.place
"""
_KEPT = "incarnation, token_epoch, ledger_version, policy_version, config_version, COALESCE(highest_nonce, -1) AS highest, address"
# Composites that a plain order fills; what is not named here or below is null.
_FILLED = {"nonce_request", "sign_guard", "act", "sign_record"}
# Agents of its own: a signer keeps the state of those that it signs for, and would find them moved by somebody else.
PREFIX = "bare"
_WHOSE = {"tenant": "'bench'", "agent": f"'{PREFIX}-' || :a::text", "principal": "'agent' || chr(58) || :a::text"}
_READ = _WHOSE | {
    "family": "'evm'",
    "purpose": "'evm'",
    "chain": "31337",
    "takes_open": "false",
    "authority": "false",
    "tx": "gen_random_uuid()",
}
# The size of each field is that of a real signature; a quote or colon in JSON would be read as a variable.
_WRITE = _WHOSE | {
    "incarnation": ":incarnation",
    "epoch": ":token_epoch",
    "ledger_version": ":ledger_version",
    "policy_version": ":policy_version",
    "config_version": ":config_version",
    "actor_type": "'agent'",
    "actor_id": f"'{PREFIX}-' || :a::text",
    "metadata": "json_build_object('m', repeat('m', 190))",
    "origin": "ARRAY['request', '127.0.0.1', NULL]",
    "tx": "gen_random_uuid()",
    "kind": "'evm'",
    "family": "'evm'",
    "status": "'signed'",
    "to_address": "'0x' || repeat('0', 39) || '1'",
    "value": "'1'",
    "chain_id": "31337",
    "caip2": "'eip155' || chr(58) || '31337'",
    "broadcast": "false",
    "order_text": "repeat('o', 150)",
    "digest": "sha256('d')",
    "effects": "repeat('e', 300)",
    "moved": "json_build_object('evm' || chr(58) || '31337' || chr(58) || 'native', '1')",
    "policy_results": "repeat('r', 500)",
    "nonce": ":highest::bigint + 1",
    "fee": "'5000000000000000'",
    "tx_hash": "'0x' || encode(sha256(gen_random_uuid()::text::bytea), 'hex')",
    "signature": "'0x' || repeat('a', 64)",
    "signed_bytes": "decode(repeat('ab', 115), 'hex')",
    "answer": "decode(repeat('cd', 400), 'hex')",
    "slot_state": "'open'",
    "slot_address": ":address",
    "slot_charges": "'{}'",
    "spend_assets": "ARRAY['evm' || chr(58) || '31337' || chr(58) || 'native']",
    "spend_amounts": "ARRAY['1']",
    "moved_assets": "'{}'",
    "moved_hours": "'{}'",
    "moved_amounts": "'{}'",
    "hour": "date_trunc('hour', clock_timestamp())",
    "counts_rate": "true",
    "calls": "'{}'",
    "stored_bytes": "2000",
    "resend_seconds": "5",
    "action": "'tx.signed'",
    "events": "json_build_array(json_build_object('event', 'tx.signed', 'data', json_build_object('padding', repeat('p', 200))))",
}
# A message in the log is the least that a commit must wait for.
_COMMIT = "SELECT pg_logical_emit_message(true, 'bench', 'x');\n"


class Bare(msgspec.Struct, frozen=True):
    """The result of one run of pgbench: transactions, a second, milliseconds of one, microseconds of its processor."""

    count: int
    rate: float
    milliseconds: float
    cpu: float


def orders(signer_url: str, *, agents: int, clients: int = 1, seconds: int = 0) -> Bare:
    """Read and guarded write of orders of the agents `bare-0` and on of the tenant `bench`, without any of our processes; without `seconds` one order."""
    return _run(
        signer_url, f"\\set a random(0, {agents - 1})\n{asyncio.run(_statements(signer_url))}", clients, seconds
    )


def commits(signer_url: str, seconds: int) -> Bare:
    """Commits of next to nothing, one after the other: what the disk alone costs each."""
    return _run(signer_url, _COMMIT, 1, seconds)


async def _statements(url: str) -> str:
    connection = await asyncpg.connect(url)
    try:
        read = _call("sign_read", await connection.fetch(_ARGUMENTS, "sign_read"), _READ)
        write = _call("sign_write", await connection.fetch(_ARGUMENTS, "sign_write"), _WRITE)
    finally:
        await connection.close()
    return f"SELECT {_KEPT} FROM {read} \\gset\nSELECT {write};\n"


def _call(function: str, arguments: list[asyncpg.Record], values: dict[str, str]) -> str:
    if not arguments:
        raise RuntimeError(f"the database has no function {function}: bench/bare.py must learn what writes orders now")
    return f"{function}({', '.join(_argument(argument, values) for argument in arguments)})"


def _argument(argument: asyncpg.Record, values: dict[str, str]) -> str:
    if argument["kind"] not in _FILLED:
        return _value(argument["name"], argument["type"], values)
    row = f"ROW({', '.join(_value(name, kind, values) for name, kind in argument['fields'])})::{argument['kind']}"
    return f"ARRAY[{row}]" if argument["many"] else row


def _value(name: str, kind: str, values: dict[str, str]) -> str:
    return f"({values.get(name, 'NULL')})::{kind}"


def _run(url: str, script: str, clients: int, seconds: int) -> Bare:
    # As in our own runs the first second is a warm-up: each connection compiles the functions once.
    long = ["-T", str(seconds + 1), "-P", "1"] if seconds else ["-t", "1"]
    with _script_file(script) as file:
        command = [programs() / "pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-f", file, *long]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, env=_environment(url), capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or " ERROR: " in done.stderr:
        raise RuntimeError(f"pgbench: {done.stderr[-1000:]}")
    own = (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e6
    count = int(_figure(done.stdout, "number of transactions actually processed"))
    if not count:
        raise RuntimeError(f"pgbench ended not one transaction of {clients} clients in {seconds + 1} s")
    rates = [float(rate) for rate in re.findall(r"^progress: .* s, ([\d.]+) tps", done.stderr, re.MULTILINE)][1:]
    rate = (statistics.fmean(rates) if rates else 0) or float(_figure(done.stdout, "tps"))
    # Every client waits for its own transaction and begins the next at once.
    return Bare(count, rate, clients / rate * 1000, own)


def _figure(output: str, name: str) -> str:
    found = re.search(rf"^{name} *[:=] *([\d.]+)", output, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"pgbench says no {name}:\n{output[-1000:]}")
    return found[1]


@contextmanager
def _script_file(script: str) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        yield Path(file.name)


def _environment(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    found = {
        "PGHOST": parse_qs(parts.query).get("host", [parts.hostname or ""])[0],
        "PGPORT": str(parts.port or 5432),
        "PGUSER": unquote(parts.username or ""),
        "PGPASSWORD": unquote(parts.password or ""),
        "PGDATABASE": unquote(parts.path.removeprefix("/")),
    }
    return os.environ | found
