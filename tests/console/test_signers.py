"""Signers and key quorums of an agent in the console: what they may authorise, and taking that right away."""

import base64
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from syrupy.assertion import SnapshotAssertion

from console.approver.matter import fingerprint, group_digits
from tests.console.at_agents import at
from tests.console.entering import confirm
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import NARROW, WIDE
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service

pytestmark = pytest.mark.long

# A fixed key: pictures show its fingerprint.
KEY = ec.derive_private_key(7, ec.SECP256R1()).public_key()
PUBLIC = base64.b64encode(KEY.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()
FINGERPRINT = group_digits(str(fingerprint(base64.b64decode(PUBLIC))))
SIGNERS = "/agents/payer/signers"


@pytest.fixture
def owner(service: Service, tenant: Tenant) -> Iterator[Person]:
    """An admin with a factor shown just now, and an agent with two signers and a quorum of both."""
    with closing(member(service, tenant, "admin", mfa=True)) as person:
        tenant.agent(agent_id="payer")
        made = [signer(person, name) for name in ("billing", "stock")]
        ids = [one["id"] for one in made]
        quorum = {"name": "Two of two", "threshold": 2, "memberSignerIds": ids, "permissions": ["transfer"]}
        person.ok("POST", "/agents/payer/key-quorums", quorum)
        yield person


def signer(person: Person, name: str) -> dict[str, Any]:
    """A service that must agree."""
    said = {"signerType": "quorum_member", "subjectType": "external", "subjectId": name, "permissions": ["transfer"]}
    key = {"keyType": "p256", "publicKey": PUBLIC} if name == "billing" else {"issueCredential": True}
    return person.ok("POST", SIGNERS, {**said, **key})


def status(person: Person, name: str) -> str:
    found: str = next(one["status"] for one in person.ok("GET", SIGNERS) if one["subjectId"] == name)
    return found


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_signers_and_quorums_of_an_agent(
    service: Service, tenant: Tenant, owner: Person, folder: Path, pictures: SnapshotAssertion, size: tuple[int, int]
) -> None:
    async with at("agents", service, folder, owner, size=size) as console:
        await console.sees("payer")
        await console.press("u")
        await console.sees("Two of two", "billing", "stock", "quorum 2 of 2")

        assert await console.picture(owner.wallet.address, tenant.id) == pictures


async def test_a_signer_is_shown_in_full_paused_resumed_and_revoked(
    service: Service, tenant: Tenant, owner: Person, folder: Path
) -> None:
    async with at("agents", service, folder, owner) as console:
        await console.sees("payer")
        await console.press("u")
        await console.sees("Two of two", "billing", "stock")
        await console.press("end", "enter")
        await console.sees(f"fingerprint {FINGERPRINT[:19]}", "the agent's rules alone")
        await console.press("escape", "p")
        await console.sees("Pause this signer?", "billing", "It authorises nothing until it is resumed")
        await confirm(console, "billing is paused.")
        assert (status(owner, "billing"), status(owner, "stock")) == ("paused", "active")

        await console.sees("p Resume")
        await console.press("p")
        await console.sees("Resume this signer?")
        await confirm(console, "billing is active.")
        await console.press("x")
        await console.sees("Revoke this signer?", "This cannot be undone.")
        await confirm(console, "billing is revoked.")
        assert status(owner, "billing") == "revoked"
        await console.sees_no("x Revoke")
        await console.press("escape")
        await console.sees("Z Freeze all")


async def test_a_tenant_key_and_a_read_only_console_change_no_signer(
    service: Service, tenant: Tenant, owner: Person, folder: Path
) -> None:
    async with at("agents", service, folder, tenant) as console:
        await console.sees("payer")
        await console.press("u")
        await console.sees("Signers and key quorums are")
    async with at("agents", service, folder, owner, read_only=True) as console:
        await console.sees("payer")
        await console.press("u")
        await console.sees("billing")
        await console.press("x")
        await console.pilot.pause(0.05)
        assert "Cancel (Esc)" not in console.text
    assert status(owner, "billing") == "active"
