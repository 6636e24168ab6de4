"""The same two statements by pgbench: what the database alone can do, for the ratios."""

import os
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from bench.deployment import Deployment
from custody.transactions.ledger import GuardRow, Record
from ops.postgres_install import programs

_READ = """
SELECT incarnation, token_epoch, ledger_version, policy_version, config_version, COALESCE(highest_nonce, -1) AS highest, address
  FROM sign_read('bench', 'agent-' || :a::text, 'evm', ROW(31337, NULL, NULL, false)::nonce_request,
    'agent' || chr(58) || :a::text, NULL, NULL, false) \\gset
"""
_COMPARED = {
    "incarnation": ":incarnation::uuid",
    "epoch": ":token_epoch::integer",
    "ledger_version": ":ledger_version::bigint",
    "policy_version": ":policy_version::bigint",
    "config_version": ":config_version::bigint",
}
_GUARD = f"ROW({', '.join(_COMPARED.get(name, 'NULL') for name in GuardRow._fields)})::sign_guard"
_ACT = (
    "ROW('agent' || chr(58) || 'bench', NULL, NULL, NULL, NULL, 'agent', 'agent-' || :a::text, json_build_object('m', repeat('m', 190))::text, "
    "ARRAY['request', '127.0.0.1', NULL])::act"
)
_WRITE = """
SELECT sign_write('bench', 'agent-' || :a::text, {guard}, NULL, {act}, ROW({fields})::sign_record);
"""
# The size of each field is that of a real signature; a quote or colon in JSON would be read as a variable.
_FIELDS = {
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
    "moved": "json_build_object('evm' || chr(58) || '31337' || chr(58) || 'native', '1')::text",
    "policy_results": "repeat('r', 500)",
    "policy_version": ":policy_version::bigint",
    "nonce": ":highest::bigint + 1",
    "fee": "'5000000000000000'",
    "tx_hash": "'0x' || encode(sha256(gen_random_uuid()::text::bytea), 'hex')",
    "signature": "'0x' || repeat('a', 64)",
    "signed_bytes": "decode(repeat('ab', 115), 'hex')",
    "answer": "decode(repeat('cd', 400), 'hex')",
    "slot_state": "'open'",
    "slot_address": ":address::text",
    "slot_charges": "'{}'",
    "spend_assets": "ARRAY['evm' || chr(58) || '31337' || chr(58) || 'native']",
    "spend_amounts": "ARRAY['1']",
    "moved_assets": "ARRAY[]::text[]",
    "moved_hours": "ARRAY[]::timestamptz[]",
    "moved_amounts": "ARRAY[]::text[]",
    "hour": "date_trunc('hour', clock_timestamp())",
    "counts_rate": "true",
    "stored_bytes": "2000",
    "resend_seconds": "5",
    "action": "'tx.signed'",
    "events": "json_build_array(json_build_object('event', 'tx.signed', 'data', json_build_object('padding', repeat('p', 200))))::text",
}


def rate(deployment: Deployment, *, agents: int, clients: int, seconds: int) -> float:
    """Orders a second of read and guarded write, without any of our processes."""
    script = deployment.folder / "sign.sql"
    fields = ", ".join(_FIELDS.get(name, "NULL") for name in Record.__struct_fields__ if name != "act")
    script.write_text(
        f"\\set a random(0, {agents - 1})\n"
        + _READ.strip()
        + "\n"
        + _WRITE.format(guard=_GUARD, act=_ACT, fields=fields).replace("\n", " ")
        + "\n"
    )
    url = urlsplit(deployment.home.file("db", "signer.url").read_text().strip())
    environment = {**os.environ, "PGPASSWORD": url.password or ""}
    command: list[str | Path] = [
        programs() / "pgbench",
        "-n",
        "-M",
        "prepared",
        "-h",
        parse_qs(url.query)["host"][0],
        "-U",
        url.username or "",
        "-c",
        str(clients),
        "-j",
        "1",
        "-T",
        str(seconds),
        "-f",
        script,
        url.path.removeprefix("/"),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    line = next((line for line in done.stdout.splitlines() if line.startswith("tps")), None)
    if line is None or "ERROR" in done.stderr:
        raise RuntimeError(done.stderr[-1000:])
    return float(line.split()[2])
