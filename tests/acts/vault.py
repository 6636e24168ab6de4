"""Orders of an agent."""

from typing import TYPE_CHECKING

from tests.acts.act import (
    ABSENT,
    ADMINS,
    AGENT_OR_SESSION,
    OF_AGENT,
    OF_ORDER,
    PUBLIC,
    SESSION,
    SIDE_OR_AGENT,
    TEAM,
    Act,
    Journey,
)
from tests.fixtures.callers import ADDRESS, Client
from tests.routes.orders import note, payment_demand, solana_payment
from tests.routes.vault.bitcoin import SCOPE, payment, psbt_body
from tests.routes.vault.transfers import fields, transfer

if TYPE_CHECKING:
    from tests.table.world import World


def _transfer(world: "World") -> Journey:
    return Journey(world.with_signer, {"agent": world.with_signer.id}, fields())


def _psbt(world: "World") -> Journey:
    agent = world.bitcoin_payer
    return Journey(agent, {"agent": agent.id}, psbt_body(payment(agent, 10_000)))


def _demand(world: "World") -> Journey:
    # No payment route is for that place.
    asked = payment_demand(resource={"url": "https://seller.example.net/weather", "description": "Weather"})
    return Journey(world.payer, {"agent": world.payer.id}, {"demand": asked})


def _address(world: "World") -> Journey:
    return Journey(world.tenant, {"agent": world.bitcoin_payer.id}, query=f"walletScope={SCOPE}")


def _action(world: "World") -> Journey:
    agent = world.with_signer
    made = transfer(agent).json()["data"]["actionId"]
    token = agent.headers["authorization"].removeprefix("Bearer ")
    headers = {"Authorization": world.owner.headers["authorization"], "X-Service-Agent-Token": token}
    return Journey(
        Client(base_url=world.service.url, headers=headers, timeout=30), {"agent": agent.id, "action_id": made}
    )


ACTS = (
    Act(
        "POST /vault/{agentId}/sign",
        AGENT_OR_SESSION,
        ADMINS,
        "vaultSigning",
        command="SignOrder",
        nothing=OF_ORDER | {"question": {"kind": "evm", "request": {"to": ADDRESS, "value": "1"}}},
        body=lambda world: {"to": ADDRESS, "value": "1", "broadcast": False},
    ),
    Act(
        "POST /vault/{agentId}/sign-typed-data",
        AGENT_OR_SESSION,
        ADMINS,
        "vaultSigning",
        command="SignOrder",
        body=lambda world: note(),
    ),
    Act(
        "POST /vault/{agentId}/sign-message",
        AGENT_OR_SESSION,
        ADMINS,
        "vaultSigning",
        command="SignOrder",
        body=lambda world: {"chainFamily": "evm", "message": "hello"},
    ),
    Act(
        "POST /vault/{agentId}/x402",
        AGENT_OR_SESSION,
        ADMINS,
        "vaultSigning",
        command="SignOrder",
        journey=_demand,
    ),
    Act(
        "POST /vault/{agentId}/sign-solana",
        AGENT_OR_SESSION,
        ADMINS,
        "vaultSigning",
        command="SignOrder",
        body=lambda world: solana_payment(world.agent, 1),
    ),
    Act(
        "POST /vault/{agentId}/sign-bitcoin-psbt",
        AGENT_OR_SESSION,
        ADMINS,
        "vaultSigning",
        command="SignOrder",
        journey=_psbt,
    ),
    Act(
        "GET /vault/{agentId}/bitcoin/address",
        SIDE_OR_AGENT,
        TEAM,
        command="FindBitcoinAddress",
        nothing=OF_AGENT | {"wallet_scope": "bitcoin:regtest:p2wpkh:0:0:0"},
        journey=_address,
    ),
    Act(
        "POST /vault/{agentId}/transactions/{txId}/replace",
        AGENT_OR_SESSION,
        ADMINS,
        "vaultSigning",
        command="ReplaceEvm",
        nothing=OF_ORDER | {"replaces": ABSENT},
        body=lambda world: {},
    ),
    Act(
        "POST /vault/{agentId}/simulate",
        SIDE_OR_AGENT,
        TEAM,
        command="Simulate",
        nothing=OF_AGENT | {"question": {"kind": "evm", "request": {"to": ADDRESS, "value": "1"}}},
        body=lambda world: {
            "kind": "evm",
            "request": {"to": ADDRESS, "value": "1", "broadcast": False},
        },
        unaudited="a question: nothing is signed and nothing is written",
    ),
    Act(
        "POST /vault/{agentId}/actions/transfer/quote",
        SESSION,
        ADMINS,
        "vaultSigning",
        command="Simulate",
        body=lambda world: fields(),
        unaudited="a question: nothing is signed and nothing is written",
    ),
    Act(
        "POST /vault/{agentId}/actions/transfer",
        AGENT_OR_SESSION,
        ADMINS,
        "vaultSigning",
        command="SignOrder",
        journey=_transfer,
    ),
    Act("GET /vault/{agentId}/actions/{actionId}", SESSION, ADMINS, "vaultSigning", journey=_action),
    Act((), PUBLIC, command="BroadcastOutcome", nothing={"tenant": "t", "tx_id": ABSENT, "outcome": "sent"}),
    Act(
        (),
        PUBLIC,
        command="ChainOutcome",
        nothing={"tenant": "t", "tx_id": ABSENT, "outcome": "sent"},
        senders="scheduler",
    ),
)
