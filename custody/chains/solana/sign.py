"""Signing our own serialization of a Solana message.

Only a message that `effects.subject_of` has read and the rules have allowed may come here.
"""

from solders.hash import Hash
from solders.keypair import Keypair
from solders.message import to_bytes_versioned
from solders.transaction import VersionedTransaction

from custody.chains.solana.message import SolanaTransaction, SolanaUnsupported, with_blockhash


def sign(parsed: SolanaTransaction, keypair: Keypair, blockhash: str | None) -> tuple[str, bytes]:
    """Sign; give our signature in base58 and the whole transaction's bytes.

    A fresh blockhash replaces the old one only if nobody else has signed; otherwise it would void their signatures.
    """
    ours = keypair.pubkey()
    if ours not in parsed.signers:
        raise SolanaUnsupported("This wallet is not among the transaction's signers.")
    fresh = Hash.from_string(blockhash) if blockhash and parsed.renewable(ours) else parsed.message.recent_blockhash
    message = with_blockhash(parsed.message, fresh)
    signed_bytes = to_bytes_versioned(message)
    signature = keypair.sign_message(signed_bytes)
    # A faulty signature can give the key away; it must not leave.
    if not signature.verify(ours, signed_bytes):
        raise RuntimeError("the signature just made does not verify")
    signatures = list(parsed.signatures)
    signatures[parsed.signers.index(ours)] = signature
    return str(signature), bytes(VersionedTransaction.populate(message, signatures))
