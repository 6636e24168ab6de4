"""Account keys under their MAC: with another key in a row, a stranger's output would be this wallet's change."""

from typing import Final

from custody.kit.logs import logger
from custody.kit.refs import AgentRef
from custody.protocol.signer.order_refusals import KeyTampered
from custody.worker.sealing import Sealer, Tampered, fields
from signer.ledger import PsbtFacts

log = logger(__name__)
ACCOUNT_MAC: Final = "bitcoin-account-mac"


def account_content(
    tenant: str, agent: str, incarnation: str, name: str, public_key: bytes, chain_code: bytes
) -> bytes:
    """Encode what the MAC of an account is made over."""
    return fields("bitcoin-account", tenant, agent, incarnation, name, public_key, chain_code)


def check(sealer: Sealer, ref: AgentRef, incarnation: str, name: str, found: PsbtFacts) -> None:
    """Raise KeyTampered for an account key that is not this agent's."""
    try:
        content = account_content(ref.tenant, ref.agent, incarnation, name, found.public_key, found.chain_code)
        sealer.check_mac(found.mac, ACCOUNT_MAC, ref.tenant, content)
    except Tampered:
        log.error("account refused", extra={"tenant": ref.tenant, "agent": ref.agent})
        raise KeyTampered from None
