"""From a PSBT to an answer: the sign path, told in terms of the PSBT."""

from base64 import b64encode
from typing import Annotated

import msgspec

from api.areas.signing.prepare import Preparation
from api.areas.signing.request import Asker, ask_signer
from api.areas.signing.types import Decided
from custody.chains.bitcoin.orders import PsbtOrder
from custody.chains.orders import PsbtQuestion
from custody.kit import ids
from custody.kit.answers import Answered
from custody.kit.described import Id, described
from custody.kit.refs import AgentRef
from custody.kit.tasks import run_to_completion
from custody.ports import Ports
from custody.protocol.signer.orders import SignOrder
from custody.protocol.signer.outcomes import Signed


class PsbtSigned(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A signed PSBT; with its transaction, where that was asked for and every input is this wallet's."""

    transaction_id: Annotated[Id, described("The transaction, as Custody keeps it.")]
    signed_psbt_base64: Annotated[str, described("The PSBT with the signatures in it, in base64.")]
    signed_inputs: Annotated[int, described("Number of inputs signed.")]
    wallet_scope: Annotated[str, described("The address that signed, by its scope.")]
    wallet_address: Annotated[str, described("The address that signed.")]
    address_type: Annotated[str, described("`p2wpkh`, `p2tr`, `p2sh-p2wpkh` or `p2pkh`.")]
    network: Annotated[str, described("`mainnet`, `testnet`, `signet` or `regtest`.")]
    finalized_tx_hex: Annotated[str | None, described("The whole transaction in hex, for your own broadcaster.")] = None
    tx_id: Annotated[str | None, described("The id of the whole transaction, as explorers show it.")] = None
    vsize: Annotated[int | None, described("The size of the whole transaction in vbytes.")] = None
    fee_sats: Annotated[str | None, described("Fee of the whole transaction, in satoshis.")] = None


async def sign(ports: Ports, caller: Asker, ref: AgentRef, body: PsbtOrder) -> Answered[Decided[PsbtSigned]]:
    """Have a PSBT judged and signed; no node is asked, and nothing is broadcast."""
    message = SignOrder(ref.agent, ids.new_uuid(), PsbtQuestion(body))
    asked = ask_signer(ports, caller, ref, message, Preparation())
    answered = await run_to_completion(asked, "sign")
    outcome = answered.answer
    return Answered(_release(outcome) if isinstance(outcome, Signed) else outcome, answered.replayed)


def _release(signed: Signed) -> PsbtSigned:
    released, raw = signed.psbt, signed.raw
    if released is None or raw is None:
        raise TypeError("the signer answered a PSBT without one")
    final = released.final
    return PsbtSigned(
        transaction_id=signed.tx_id,
        signed_psbt_base64=b64encode(raw).decode(),
        signed_inputs=released.inputs,
        wallet_scope=released.scope,
        wallet_address=released.address,
        address_type=released.address_type,
        network=released.network,
        finalized_tx_hex=final.hex() if final is not None else None,
        tx_id=signed.tx_hash,
        vsize=released.vsize,
        fee_sats=str(released.fee) if final is not None else None,
    )
