"""ECDSA over secp256k1 as Ethereum wants it, and never released unverified.

The only place of the EVM code that touches a private key.
"""

from typing import NamedTuple

from coincurve import PrivateKey, PublicKey

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_HALF_ORDER = ORDER // 2


class SignatureWrong(RuntimeError):
    """A fresh signature did not verify: memory or the curve library is faulty, and nothing may leave."""


class Signature(NamedTuple):
    """A low-s signature; `parity` is 0 or 1, to which each format adds its own offset."""

    r: int
    s: int
    parity: int

    @property
    def compact(self) -> bytes:
        """The 65 bytes r, s, v with v = 27 or 28."""
        return self.r.to_bytes(32) + self.s.to_bytes(32) + bytes((27 + self.parity,))


def sign_digest(digest: bytes, key: PrivateKey) -> Signature:
    """Sign 32 bytes that this process computed itself, and prove the result before returning it.

    Recovering the key rather than verifying costs a few microseconds more and proves the parity too: a wrong
    parity would make a valid signature of somebody else.
    """
    compact = key.sign_recoverable(digest, hasher=None)
    signature = Signature(int.from_bytes(compact[:32]), int.from_bytes(compact[32:64]), compact[64])
    # A high s is a second valid signature of the same message, which chains refuse (EIP-2).
    if signature.parity > 1 or not 0 < signature.s <= _HALF_ORDER:
        raise SignatureWrong
    try:
        recovered = PublicKey.from_signature_and_message(compact, digest, hasher=None)
    except ValueError as problem:
        raise SignatureWrong from problem
    if recovered != key.public_key:
        raise SignatureWrong
    return signature
