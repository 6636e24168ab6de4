"""docs/sealed-blob.md, built a second time from its words alone and held against the signer both ways."""

import hashlib
import hmac
from pathlib import Path
from typing import Any

import asyncpg
import coincurve
import msgspec
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from custody.chains.evm.address import address_of
from custody.worker.judging import JudgingSeals
from custody.worker.keyring import Keyring
from custody.worker.sealing import Context, Sealer, Tampered
from signer.policies import PolicySeals
from signer.rollback_journal import Heads, RolledBack
from tests.fixtures.callers import Tenant, rule
from tests.fixtures.server import Service

VECTORS: dict[str, Any] = msgspec.json.decode(
    Path(__file__).parents[1].joinpath("vectors/sealed_blob.json").read_bytes()
)
MASTER_KEYS = {int(version): bytes.fromhex(key) for version, key in VECTORS["master_keys"].items()}
BLOBS: list[dict[str, Any]] = VECTORS["blobs"]
MACS: list[dict[str, Any]] = VECTORS["macs"]


def by_name(vectors: list[dict[str, Any]]) -> Any:
    return pytest.mark.parametrize("vector", vectors, ids=[vector["name"] for vector in vectors])


def join_parts(*parts: str | bytes | int) -> bytes:
    """Section 1 of the page."""
    whole = b""
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode("utf-8")
        whole += len(raw).to_bytes(4, "big") + raw
    return whole


def derive(version: int, purpose: str, tenant: str, keys: dict[int, bytes] = MASTER_KEYS) -> bytes:
    """Section 3."""
    info = b"custody/v1" + join_parts(purpose, tenant)
    return HKDF(SHA256(), 32, salt=bytes(32), info=info).derive(keys[version])


def additional(vector: dict[str, Any]) -> bytes:
    """Section 4."""
    context = (vector["tenant"], vector["owner_kind"], vector["owner"], vector["purpose"], vector["detail"])
    return join_parts(1, vector["version"], *context)


def seal(vector: dict[str, Any]) -> bytes:
    """Section 4: a value sealed with the vector's nonce."""
    key, nonce = derive(vector["version"], vector["purpose"], vector["tenant"]), bytes.fromhex(vector["nonce"])
    ciphertext = AESGCM(key).encrypt(nonce, bytes.fromhex(vector["content"]), additional(vector))
    return b"\x01" + vector["version"].to_bytes(4, "big") + nonce + ciphertext


def content_of(vector: dict[str, Any]) -> bytes:
    """Section 5: what the MAC of each kind is made over."""
    says: dict[str, Any] = vector["says"]
    if vector["purpose"] == "policy-mac":
        places = enumerate(says["rules"])
        hashes = [
            hashlib.sha256(join_parts(place, r["id"], r["type"], "1" if r["enabled"] else "0", r["config"])).digest()
            for place, r in places
        ]
        who = (vector["tenant"], says["agent"], says["incarnation"])
        return join_parts("policy-head", *who, says["version"], len(hashes), *sorted(hashes))
    if vector["purpose"] == "tenant-key-mac":
        return join_parts(vector["tenant"], hashlib.sha256(says["key"].encode()).digest())
    if vector["purpose"] == "platform-key-mac":
        scopes = ["*"] if says["scopes"] is None else sorted(says["scopes"])
        return join_parts(hashlib.sha256(says["key"].encode()).digest(), *scopes)
    if vector["purpose"] == "approval-mac":
        ids = (says["agent"], says["incarnation"], says["transaction"], says["approval"])
        return join_parts("approval", vector["tenant"], *ids, bytes.fromhex(says["digest"]))
    if vector["purpose"] == "credential-route-mac":
        return join_parts(vector["tenant"], says["route"], says["secret"], says["text"])
    return join_parts(vector["tenant"], says["version"], says["text"])


def mac_of(vector: dict[str, Any], keys: dict[int, bytes] = MASTER_KEYS) -> bytes:
    """Section 5."""
    key = derive(vector["version"], vector["purpose"], vector["tenant"], keys)
    return vector["version"].to_bytes(4, "big") + hmac.digest(key, content_of(vector), "sha256")


def context_of(vector: dict[str, Any]) -> Context:
    return Context(vector["tenant"], vector["owner_kind"], vector["owner"], vector["purpose"], vector["detail"])


@pytest.fixture
def sealer() -> Sealer:
    return Sealer(Keyring(MASTER_KEYS))


@by_name(BLOBS)
def test_the_page_gives_the_vector_and_the_signer_opens_it(sealer: Sealer, vector: dict[str, Any]) -> None:
    assert seal(vector).hex() == vector["blob"]
    assert sealer.open(bytes.fromhex(vector["blob"]), context_of(vector)).hex() == vector["content"]


@by_name(BLOBS)
def test_a_blob_sealed_by_the_signer_opens_by_the_page(sealer: Sealer, vector: dict[str, Any]) -> None:
    blob = sealer.seal(bytes.fromhex(vector["content"]), context_of(vector))

    newest = vector | {"version": max(MASTER_KEYS)}
    assert blob[:5] == b"\x01" + newest["version"].to_bytes(4, "big")
    key = derive(newest["version"], vector["purpose"], vector["tenant"])
    assert AESGCM(key).decrypt(blob[5:17], blob[17:], additional(newest)).hex() == vector["content"]


@by_name(BLOBS)
@pytest.mark.parametrize("part", ["tenant", "owner_kind", "owner", "purpose", "detail"])
def test_a_sealed_value_opens_nowhere_else(sealer: Sealer, vector: dict[str, Any], part: str) -> None:
    with pytest.raises(Tampered):
        sealer.open(bytes.fromhex(vector["blob"]), context_of(vector | {part: vector[part] + "x"}))


def test_a_sealed_value_with_any_byte_changed_does_not_open(sealer: Sealer) -> None:
    vector = BLOBS[0]
    blob = bytes.fromhex(vector["blob"])
    for place in range(len(blob)):
        changed = bytearray(blob)
        changed[place] ^= 1
        with pytest.raises(Tampered):
            sealer.open(bytes(changed), context_of(vector))


@pytest.mark.parametrize("length", [0, 5, 32])
def test_a_sealed_value_cut_short_does_not_open(sealer: Sealer, length: int) -> None:
    with pytest.raises(Tampered):
        sealer.open(bytes.fromhex(BLOBS[0]["blob"])[:length], context_of(BLOBS[0]))


@by_name(MACS)
def test_the_page_gives_the_vectors_mac_and_the_signer_accepts_it(sealer: Sealer, vector: dict[str, Any]) -> None:
    assert mac_of(vector).hex() == vector["mac"]
    sealer.check_mac(bytes.fromhex(vector["mac"]), vector["purpose"], vector["tenant"], content_of(vector))


@by_name(MACS)
def test_a_mac_of_the_signer_verifies_by_the_page(sealer: Sealer, vector: dict[str, Any]) -> None:
    made = sealer.mac(vector["purpose"], vector["tenant"], content_of(vector))

    assert made == mac_of(vector | {"version": max(MASTER_KEYS)})


@by_name(MACS)
@pytest.mark.parametrize(
    "mac", [None, b"", b"\x00\x00\x00\x01", b"\x00\x00\x00\x01" + bytes(32), b"\x00\x00\x00\x63" + bytes(32)]
)
def test_an_absent_short_or_foreign_mac_is_refused(sealer: Sealer, vector: dict[str, Any], mac: bytes | None) -> None:
    with pytest.raises(Tampered):
        sealer.check_mac(mac, vector["purpose"], vector["tenant"], content_of(vector))


def policies_at(sealer: Sealer, path: Path) -> PolicySeals:
    heads = Heads(path)
    heads.load()
    return PolicySeals(sealer, heads)


def policy_vector() -> dict[str, Any]:
    return next(vector for vector in MACS if vector["purpose"] == "policy-mac" and vector["says"]["rules"])


def open_rules(policies: PolicySeals, vector: dict[str, Any], rules: list[dict[str, Any]]) -> int:
    says, rows = vector["says"], [[r["id"], r["type"], r["enabled"], r["config"]] for r in rules]
    head = (says["version"], len(rows), bytes.fromhex(vector["mac"]))
    text = msgspec.json.encode(rows).decode()
    return len(policies.open(vector["tenant"], says["agent"], says["incarnation"], head, says["version"], text).rules)


def test_a_set_sealed_by_the_page_opens_as_the_stored_rules(sealer: Sealer, tmp_path: Path) -> None:
    vector = policy_vector()
    policies = policies_at(sealer, tmp_path / "heads.log")

    assert open_rules(policies, vector, vector["says"]["rules"]) == len(vector["says"]["rules"])
    policies.heads.close()


@pytest.mark.parametrize("opened_before", [False, True])
@pytest.mark.parametrize("change", ["removed", "added", "swapped", "disabled", "reworded"])
def test_a_set_changed_behind_the_signer_is_refused(
    sealer: Sealer, tmp_path: Path, change: str, *, opened_before: bool
) -> None:
    vector = policy_vector()
    rules: list[dict[str, Any]] = vector["says"]["rules"]
    changed = {
        "removed": rules[:-1],
        "added": [*rules, rules[0] | {"id": "another"}],
        "swapped": rules[::-1],
        "disabled": [rules[0] | {"enabled": False}, *rules[1:]],
        "reworded": [rules[0] | {"config": rules[0]["config"].replace("1", "9")}, *rules[1:]],
    }[change]
    policies = policies_at(sealer, tmp_path / "heads.log")
    if opened_before:
        open_rules(policies, vector, rules)

    with pytest.raises(Tampered):
        open_rules(policies, vector, changed)
    policies.heads.close()


def move(vector: dict[str, Any], **said: Any) -> dict[str, Any]:
    """The same set, under the same MAC, at another place or of another version."""
    top = {name: said.pop(name) for name in ("tenant", "mac") if name in said}
    return vector | top | {"says": vector["says"] | said}


@pytest.mark.parametrize(
    "said",
    [
        {"tenant": "globex"},
        {"agent": "other"},
        {"incarnation": "9b0d9f3e-0c67-4c7e-8a31-2f5a3f1c0d11"},
        {"version": 9},
        {"mac": "00"},
    ],
)
def test_a_set_that_was_opened_opens_nowhere_else(sealer: Sealer, tmp_path: Path, said: dict[str, Any]) -> None:
    vector = policy_vector()
    policies = policies_at(sealer, tmp_path / "heads.log")
    open_rules(policies, vector, vector["says"]["rules"])

    with pytest.raises(Tampered):
        open_rules(policies, move(vector, **said), vector["says"]["rules"])
    policies.heads.close()


def test_a_set_that_was_opened_is_refused_once_a_newer_one_was_seen(sealer: Sealer, tmp_path: Path) -> None:
    vector = policy_vector()
    says = vector["says"]
    policies = policies_at(sealer, tmp_path / "heads.log")
    open_rules(policies, vector, says["rules"])
    policies.heads.check(vector["tenant"], says["agent"], says["incarnation"], says["version"] + 1)

    with pytest.raises(RolledBack):
        open_rules(policies, vector, says["rules"])
    policies.heads.close()


def test_a_heads_file_written_by_the_page_refuses_an_older_set(sealer: Sealer, tmp_path: Path) -> None:
    vector = policy_vector()
    says = vector["says"]
    who = f"{vector['tenant']} {says['agent']} {says['incarnation']}"
    (tmp_path / "heads.log").write_text(f"{who} {says['version'] + 1} .\n{who} {says['version']} .\n{who} 99")
    policies = policies_at(sealer, tmp_path / "heads.log")

    with pytest.raises(RolledBack):
        open_rules(policies, vector, says["rules"])
    policies.heads.close()
    assert (tmp_path / "heads.log").read_text() == f"{who} {says['version'] + 1} .\n"


def test_a_newer_version_is_on_disk_as_the_page_says(sealer: Sealer, tmp_path: Path) -> None:
    vector = policy_vector()
    says = vector["says"]
    policies = policies_at(sealer, tmp_path / "heads.log")
    open_rules(policies, vector, says["rules"])

    written = (tmp_path / "heads.log").read_text()
    policies.heads.close()
    assert written == f"{vector['tenant']} {says['agent']} {says['incarnation']} {says['version']} .\n"


def test_the_judging_text_is_spelled_as_the_page_says(sealer: Sealer) -> None:
    vector = next(vector for vector in MACS if vector["purpose"] == "judging-mac")
    text, _ = JudgingSeals(sealer).seal(vector["tenant"], 1, {"uncoveredEffects": "refuse", "autoExpireSeconds": 3600})
    assert text == vector["says"]["text"]

    opened_again = JudgingSeals(sealer).open(
        vector["tenant"], vector["says"]["version"], vector["says"]["text"], bytes.fromhex(vector["mac"])
    )
    assert (opened_again.auto_expire_seconds, opened_again.uncovered_effects) == (3600, "refuse")


@pytest.mark.parametrize("changed", ["tenant", "version", "text", "mac"])
def test_a_configuration_that_was_opened_is_refused_when_it_is_changed(sealer: Sealer, changed: str) -> None:
    seals = JudgingSeals(sealer)
    text, mac = seals.seal("acme", 1, {"uncoveredEffects": "refuse"})
    assert seals.open("acme", 1, text, mac) == seals.open("acme", 1, text, mac)

    with pytest.raises(Tampered):
        seals.open(
            "globex" if changed == "tenant" else "acme",
            2 if changed == "version" else 1,
            text.replace("refuse", "allow") if changed == "text" else text,
            mac[:-1] + bytes([mac[-1] ^ 1]) if changed == "mac" else mac,
        )


@pytest.mark.parametrize("version", [0, 1])
def test_a_configuration_that_is_absent_means_the_defaults_only_at_version_0(sealer: Sealer, version: int) -> None:
    seals = JudgingSeals(sealer)
    if version == 0:
        assert seals.open("acme", 0, None, None).uncovered_effects == "queue"
        return
    with pytest.raises(Tampered):
        seals.open("acme", version, None, None)


def keys_in(file: Path) -> dict[int, bytes]:
    """Section 2."""
    lines = [line.split(" ") for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return {int(version): bytes.fromhex(key) for version, key in lines}


async def test_a_wallet_made_by_a_running_signer_opens_by_the_page(
    service: Service, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    agent, keys = tenant.agent(), keys_in(service.home / "master.key")
    found = await owner.fetchrow(
        "SELECT s.tenant_id AS tenant, s.blob, a.incarnation FROM sealed s JOIN agents a ON a.tenant_id = s.tenant_id "
        "AND a.id = s.owner WHERE s.owner = $1 AND s.purpose = 'evm'",
        agent.id,
    )
    place = {"tenant": found["tenant"], "owner_kind": "agent", "owner": agent.id, "purpose": "evm", "version": 1}

    bound = additional(place | {"detail": str(found["incarnation"])})
    key = derive(1, "evm", found["tenant"], keys)
    secret = AESGCM(key).decrypt(found["blob"][5:17], found["blob"][17:], bound)

    assert address_of(coincurve.PrivateKey(secret).public_key.format(compressed=False)) == agent.evm_address


async def read_macs(owner: asyncpg.Connection, agent: str) -> list[dict[str, Any]]:
    """Every MAC that stands beside one agent and its tenant, as vectors without the keys themselves."""
    row = await owner.fetchrow("SELECT tenant_id, incarnation::text, policy_version FROM agents WHERE id = $1", agent)
    tenant, who = row["tenant_id"], {"agent": agent, "incarnation": row["incarnation"]}
    rules = await owner.fetch(
        "SELECT id, type, enabled, config FROM policy_rules WHERE agent_id = $1 ORDER BY position", agent
    )
    head = await owner.fetchval("SELECT mac FROM policy_heads WHERE agent_id = $1", agent)
    queued = await owner.fetchrow("SELECT id::text, tx_id::text, digest, mac FROM approvals WHERE agent_id = $1", agent)
    config = await owner.fetchrow("SELECT version, judging, mac FROM tenant_config WHERE tenant_id = $1", tenant)
    ids = {"transaction": queued["tx_id"], "approval": queued["id"], "digest": queued["digest"].hex()}
    says: list[tuple[str, dict[str, Any], bytes]] = [
        ("policy-mac", who | {"version": row["policy_version"], "rules": [dict(one) for one in rules]}, head),
        ("approval-mac", who | ids, queued["mac"]),
        ("judging-mac", {"version": config["version"], "text": config["judging"]}, config["mac"]),
    ]
    return [{"purpose": p, "tenant": tenant, "version": 1, "says": said, "mac": mac} for p, said, mac in says]


async def test_rows_of_a_running_signer_verify_by_the_page(
    service: Service, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="1"), rule("rate-limit", maxTxPerDay=5))
    assert agent.sign(value=2).status_code == 202
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", {"approvalConfig": {"uncoveredEffects": "refuse"}})
    master = keys_in(service.home / "master.key")
    identity = {version: derive(version, "identity", "platform", master) for version in master}

    # Section 3: identity has its keys in a file of its own.
    assert keys_in(service.home / "identity-key" / "identity.key") == identity
    for vector in await read_macs(owner, agent.id):
        keys = identity if vector["purpose"] == "judging-mac" else master
        assert mac_of(vector, keys) == vector["mac"], vector["purpose"]


async def test_the_keys_of_callers_are_authenticated_as_the_page_says(
    service: Service, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    keys, key = keys_in(service.home / "identity-key" / "identity.key"), tenant.key
    platform = service.platform_key
    of_tenant = {"purpose": "tenant-key-mac", "tenant": tenant.id, "version": 1, "says": {"key": key}}
    of_platform = {
        "purpose": "platform-key-mac",
        "tenant": "platform",
        "version": 1,
        "says": {"key": platform, "scopes": None},
    }

    stored = await owner.fetchval("SELECT mac FROM tenant_keys WHERE tenant_id = $1", tenant.id)
    assert mac_of(of_tenant, keys) == stored
    stored = await owner.fetchval("SELECT mac FROM platform_keys WHERE from_file")
    assert mac_of(of_platform, keys) == stored
