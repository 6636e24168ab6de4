"""The step in which an agent spends bitcoins: PSBTs that another library makes, under a limit. No node is needed."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from embit.psbt import PSBT
from embit.script import Script, address_to_scriptpubkey
from embit.transaction import Transaction, TransactionInput, TransactionOutput

from custody.kit import clock
from custody.kit.ids import new_uuid
from ops.demo.callers import Answer, DemoFailed
from ops.demo.printout import Printout, bitcoin
from ops.demo.world import World
from ops.local_chain.ledger import CHAIN_ID
from ops.sign_request import Key, Request, public_key, sign

_NETWORK: Final = "bitcoin:regtest"
_SCOPE: Final = f"{_NETWORK}:p2wpkh:0:0:0"
_COIN, _LIMIT, _FIRST, _SECOND, _FEE = 200_000, 100_000, 60_000, 50_000, 1_000


async def spend_bitcoins(world: World, out: Printout) -> None:
    """Let an agent have an address and a limit; sign what fits, refuse what does not."""
    shown = await world.as_agent.get(f"/vault/{world.agent}/bitcoin/address?walletScope={_SCOPE}")
    out.line("address", f"{shown['address']} ({_SCOPE})")
    rules = await world.tenant.get(f"/agents/{world.agent}/policies")
    rules = [{name: rule[name] for name in ("type", "enabled", "config")} for rule in rules]
    rules += [
        {"type": "allowed-chains", "enabled": True, "config": {"chains": [CHAIN_ID, _NETWORK]}},
        {"type": "spending-limit", "enabled": True, "config": {"asset": "bitcoin", "maxPerDay": str(_LIMIT)}},
    ]
    await world.tenant.do("PUT", f"/agents/{world.agent}/policies", rules)
    out.line("at most", f"{bitcoin(_LIMIT)} in any 24 hours, fees included; and on no network but regtest")
    signer = await _signer(world)
    first = await _ask(world, signer, shown["address"], _FIRST)
    if first.status != 200:
        raise DemoFailed(f"the PSBT was not signed ({first.status}): {first.error}")
    said = f"{bitcoin(_FIRST)} to the shop; fee {bitcoin(_FEE)}, change {bitcoin(_COIN - _FIRST - _FEE)}"
    out.line("signed", said)
    # The library that made the PSBT reads what came back, too.
    made = Transaction.parse(bytes.fromhex(first.data["finalizedTxHex"]))
    if made.txid().hex() != first.data["txId"]:
        raise DemoFailed("another library reads another transaction")
    out.line("transaction", f"{first.data['txId']}, {first.data['vsize']} vbytes; broadcast it yourself")
    second = await _ask(world, signer, shown["address"], _SECOND)
    if second.status != 403:
        raise DemoFailed(f"the PSBT above the limit was not refused ({second.status})")
    out.line("refused", f"{bitcoin(_SECOND)} to the shop")
    for result in second.data["results"]:
        if not result["passed"]:
            out.line("because", f"{result['type']}: {result['reason']}")


async def _signer(world: World) -> Mapping[str, Key]:
    """A service of the tenant that authorises what the agent asks for: its token alone signs no PSBT."""
    key = generate_private_key(SECP256R1())
    who = {"signerType": "service", "subjectType": "external", "subjectId": "treasury"}
    signer = {**who, "keyType": "p256", "publicKey": public_key(key), "permissions": ["sign_transaction"]}
    async with world.admin() as admin:
        made = await admin.do("POST", f"/agents/{world.agent}/signers", signer)
    return {made["id"]: key}


async def _ask(world: World, signer: Mapping[str, Key], own: str, amount: int) -> Answer:
    psbt = _psbt(own, hashlib.sha256(world.shop.encode()).digest()[:20], amount)
    asked = {"walletScope": _SCOPE, "psbtBase64": b64encode(psbt.serialize()).decode(), "finalize": True}
    body, path = msgspec.json.encode(asked), f"/vault/{world.agent}/sign-bitcoin-psbt"
    now = str(int(clock.now().timestamp()))
    headers = sign(Request("POST", path, body, new_uuid(), now), world.tenant_id, signer)
    return await world.as_agent.ask("POST", path, body, headers)


def _psbt(own: str, shop: bytes, amount: int) -> PSBT:
    """A payment from a coin that a made-up transaction gave the agent; the rest comes back to its address."""
    script = address_to_scriptpubkey(own)
    funding = Transaction(
        vin=[TransactionInput(hashlib.sha256(f"{own} {amount}".encode()).digest(), 0, script_sig=Script(b"\x51"))],
        vout=[TransactionOutput(_COIN, script)],
    )
    paid = [
        TransactionOutput(amount, Script(b"\x00\x14" + shop)),
        TransactionOutput(_COIN - amount - _FEE, script),
    ]
    psbt = PSBT(Transaction(vin=[TransactionInput(funding.txid(), 0)], vout=paid))
    # The whole transaction that made the coin proves what it holds.
    psbt.inputs[0].non_witness_utxo = funding
    psbt.inputs[0].witness_utxo = funding.vout[0]
    return psbt
