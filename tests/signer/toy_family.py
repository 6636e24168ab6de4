"""A chain family that no file of the service knows: its addresses, asset, chain, keys, kind of order and command."""

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Meta

from custody.chains.family import SigningFamily
from custody.chains.types import Effect, Subject
from custody.kit.answers import Answered
from custody.kit.refs import AgentRef
from custody.kit.shapes import AgentId, Uuid
from custody.protocol.command import AGENT, Command, command
from custody.protocol.signer.outcomes import Decided
from custody.worker.call import Call
from custody.worker.proven import ProvenAgent
from custody.worker.sealing import Context
from signer.context import Signer
from signer.decide import settle
from signer.direct import Direct
from signer.ledger import Facts
from signer.orders.kind import Decoded, Draft, Final, Inputs, OrderKind, Produced, digest_of, text_of
from signer.sign_order import decision_of
from signer.signing_attempt import SigningAttempt
from signer.wallets.keys import WalletKeys

ASSET, CHAIN = "pebble:native", "pebble:shore"
_MARK = "peb1"
_READ = (
    "SELECT incarnation::text, (SELECT address FROM wallets WHERE (tenant_id, agent_id, family) = ($1, $2, 'pebble'))"
    " FROM agents WHERE (tenant_id, id) = ($1, $2) FOR UPDATE"
)
_ADD = "INSERT INTO wallets (tenant_id, agent_id, family, address) VALUES ($1, $2, 'pebble', $3)"
_KEEP = (
    "INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob)"
    " VALUES ($1, 'agent', $2, 'pebble', $3, $4)"
)


class Pebbles(SigningFamily):
    """Grains of pebbles, which are carried along one shore."""

    name = "pebble"
    title = "Pebble"
    native_asset = ASSET
    unit = "grains"
    chain_name = re.compile(r"pebble:[a-z]{1,16}\Z")
    order_kinds = ("pebble",)

    def is_address(self, text: str) -> bool:
        """Say whether it begins like one."""
        return text.startswith(_MARK)

    def encode(self, raw: bytes) -> str:
        """In hex."""
        return raw.hex()


class PebbleKeys(WalletKeys[Ed25519PrivateKey]):
    """One key for each agent, made with its first order."""

    family = "pebble"
    made_when_asked = True

    def generate(self) -> bytes:
        """A new secret."""
        return os.urandom(32)

    def open(self, secret: bytes) -> Ed25519PrivateKey:
        """The key of a secret."""
        return Ed25519PrivateKey.from_private_bytes(secret)

    def address(self, key: Ed25519PrivateKey) -> str:
        """The public key, with the mark in front."""
        return _MARK + key.public_key().public_bytes_raw().hex()


class PebbleOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Grains to carry to somebody."""

    to: str
    grains: Annotated[int, Meta(ge=0)]


class PebbleDraft(Draft, frozen=True, kw_only=True):
    """The order, as it was asked for."""

    order: PebbleOrder


class PebbleFinal(Final, frozen=True, kw_only=True):
    """The bytes that are signed."""

    content: bytes


class PebbleKind(OrderKind[PebbleOrder, PebbleDraft, Decoded, PebbleFinal, Ed25519PrivateKey]):
    """It moves grains."""

    name = "pebble"
    keys = PebbleKeys()

    def check(self, order: PebbleOrder, inputs: Inputs) -> PebbleDraft:
        """Nothing is wrong with it by itself."""
        text = text_of(order)
        return PebbleDraft(
            order_text=text,
            digest=digest_of(self.name, text.encode()),
            chain=None,
            broadcast=False,
            reference_id=None,
            to_address=order.to,
            value=str(order.grains),
            data=None,
            order=order,
        )

    def effects(self, draft: PebbleDraft, facts: Facts) -> Decoded:
        """The grains leave the wallet."""
        moved = Effect("transfer", ASSET, draft.order.grains, facts.address, to=draft.order.to)
        return Decoded(subject=Subject("pebble", "transfer", None, CHAIN, draft.order.to, (moved,)), fee=None)

    def finish(self, draft: PebbleDraft, decoded: Decoded, facts: Facts) -> PebbleFinal:
        """Fix the bytes."""
        return PebbleFinal(content=hashlib.sha256(draft.order_text.encode()).digest())

    def sign(self, final: PebbleFinal, key: Ed25519PrivateKey) -> Produced:
        """Sign them."""
        return Produced(None, key.sign(final.content).hex(), None)

    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """No receipt is asked for."""
        raise ValueError("pebbles have no receipt")


@command("signer", proofs=AGENT, repeatable=True, replays_itself=True, audit=("tx.signed", "tx.queued", "tx.refused"))
class CarryPebbles(Command[Decided], frozen=True):
    """Sign an order of pebbles."""

    agent: AgentId
    tx_id: Uuid
    order: PebbleOrder


PEBBLE = PebbleKind()


async def carry_pebbles(signer: Signer, message: CarryPebbles, call: Call[ProvenAgent]) -> Answered[Decided]:
    """Make the wallet where there is none, and take the path of every order."""
    ref = AgentRef(call.caller.tenant, message.agent)
    await _make_wallet(signer, ref)

    def attempt() -> SigningAttempt:
        draft = PEBBLE.check(message.order, Inputs(signer.chains))
        return SigningAttempt(ref=ref, tx_id=message.tx_id, kind=PEBBLE, draft=draft, call=call, way=Direct(signer))

    return decision_of(await settle(signer, ref, attempt))


async def _make_wallet(signer: Signer, ref: AgentRef) -> None:
    async with signer.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('custody.tenant', $1, true)", ref.tenant)
        incarnation, address = await connection.fetchrow(_READ, ref.tenant, ref.agent)
        if address is None:
            secret = PEBBLE.keys.generate()
            blob = signer.sealer.seal(secret, Context(ref.tenant, "agent", ref.agent, "pebble", incarnation))
            await connection.execute(_ADD, ref.tenant, ref.agent, PEBBLE.keys.address(PEBBLE.keys.open(secret)))
            await connection.execute(_KEEP, ref.tenant, ref.agent, signer.sealer.key_version, blob)
