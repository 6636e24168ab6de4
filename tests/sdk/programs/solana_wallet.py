"""A transaction of solders: signed by the vault's wallet, compared, and sent."""

import json
import sys

from custody_sdk import Vault, VaultError
from custody_sdk.solana import SolanaWallet, order_of
from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.message import MessageV0, to_bytes_versioned
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.system_program import TransferParams, transfer
from solders.transaction import VersionedTransaction

blockhash, chain = Hash.from_string(sys.argv[1]), int(sys.argv[2])


def without_signature(payer: Pubkey, *instructions: Instruction, signers: int = 1) -> VersionedTransaction:
    message = MessageV0.try_compile(payer, list(instructions), [], blockhash)
    return VersionedTransaction.populate(message, [Signature.default()] * signers)


with Vault.from_environment() as vault:
    wallet = SolanaWallet(vault, chain_id=chain)
    own, to = wallet.pubkey(), Keypair().pubkey()
    pays = [transfer(TransferParams(from_pubkey=own, to_pubkey=to, lamports=lamports)) for lamports in (3, 4)]
    order = order_of(without_signature(own, *pays), own, chain_id=chain)
    signed = wallet.sign("payment-1", without_signature(own, *pays))
    said = {
        "order": [order["to"] == str(to), order["value"]],
        "signed": signed.signatures[0].verify(own, to_bytes_versioned(signed.message)),
        "same": to_bytes_versioned(signed.message) == to_bytes_versioned(without_signature(own, *pays).message),
    }
    token = Pubkey.from_string("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
    account, mint = Keypair().pubkey(), Keypair().pubkey()
    metas = [AccountMeta(one, False, writable) for one, writable in ((account, True), (mint, False), (to, True))]
    moves = Instruction(
        token, bytes((12,)) + (5).to_bytes(8, "little") + bytes((6,)), [*metas, AccountMeta(own, True, False)]
    )
    said["token"] = order_of(without_signature(own, moves), own)["to"] == str(to)
    itself = transfer(TransferParams(from_pubkey=own, to_pubkey=own, lamports=1))
    said["nobody"] = order_of(without_signature(own, itself), own)["to"] == str(own)
    # One who pays the fee and signs last: the wallet's signature comes back, theirs stays empty.
    sponsor = Keypair()
    shared = wallet.sign("payment-2", without_signature(sponsor.pubkey(), pays[0], signers=2))
    said["sponsored"] = [shared.signatures[0] == Signature.default(), shared.signatures[1] != Signature.default()]
    try:
        wallet.send("payment-3", without_signature(own, Instruction(token, b"\x09", [])))
    except VaultError as error:
        said["unread"] = error.code
print(json.dumps(said))
