"""Signing the inputs of a proven spend, and checking what was signed."""

from collections.abc import Sequence
from typing import Final

import coincurve
import msgspec

from custody.chains.bitcoin.keys import Root, private_key
from custody.chains.bitcoin.psbt import IN_PARTIAL, IN_REDEEM, IN_TAP_SIGNATURE, write
from custody.chains.bitcoin.scripts import redeem_script_of, taproot_tweak
from custody.chains.bitcoin.sighash import Digests
from custody.chains.bitcoin.spends import SIGHASH_ALL, SIGHASH_DEFAULT
from custody.chains.bitcoin.types import OwnInput, OwnKey, Pairs, Psbt, PsbtInput, SignedPsbt, Spend

_SCHNORR_BYTES: Final = 64
_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def sign(spend: Spend, root: Root) -> SignedPsbt:
    """Sign every input that is marked; ValueError if a key is not the one that the coin pays."""
    own = [one for one in spend.own if one.signed]
    digests, scope = Digests(spend), spend.scope
    taproot = scope.address_type == "p2tr"
    # Every marked input is of the scope's own address, so one key signs them all.
    key = private_key(root, scope.account_path, scope.change, scope.index)
    public_key = key.public_key.format()
    signing = _tweak(key) if taproot else key
    redeem = redeem_script_of(public_key) if scope.address_type == "p2sh-p2wpkh" else None
    inputs, signatures = list(spend.psbt.inputs), []
    for one in own:
        if public_key != one.key.public_key:
            raise ValueError("the account is of another root")
        said = inputs[one.position]
        sighash = _sighash(said, taproot=taproot)
        digest = digests.of(one.position, one.key, sighash)
        made = signing.sign_schnorr(digest) if taproot else signing.sign(digest, hasher=None)
        signatures.append(made + _suffix(sighash))
        inputs[one.position] = _with(said, one, signatures[-1], redeem, taproot=taproot)
    check_signatures(spend, signatures)
    psbt = Psbt(spend.psbt.transaction, spend.psbt.unsigned, spend.psbt.pairs, tuple(inputs), spend.psbt.outputs)
    return SignedPsbt(psbt, write(psbt), tuple(signatures))


def check_signatures(spend: Spend, signatures: Sequence[bytes]) -> None:
    """Raise ValueError unless these are the signatures of the marked inputs, in their order."""
    own, digests = [one for one in spend.own if one.signed], Digests(spend)
    if len(own) != len(signatures):
        raise ValueError("there are not as many signatures as inputs")
    for one, signature in zip(own, signatures, strict=True):
        if not _holds(spend, digests, one, signature):
            raise ValueError("a signature does not hold")


def _holds(spend: Spend, digests: Digests, one: OwnInput, signature: bytes) -> bool:
    taproot = spend.scope.address_type == "p2tr"
    sighash = _sighash(spend.psbt.inputs[one.position], taproot=taproot)
    suffix, digest = _suffix(sighash), digests.of(one.position, one.key, sighash)
    content = signature.removesuffix(suffix)
    if content + suffix != signature:
        return False
    if not taproot:
        return coincurve.PublicKey(one.key.public_key).verify(content, digest, hasher=None)
    # Not one byte more: nodes take no signature that has any.
    public = coincurve.PublicKeyXOnly(spend.coins[one.position].script[2:])
    return len(content) == _SCHNORR_BYTES and bool(public.verify(content, digest))


def _sighash(said: PsbtInput, *, taproot: bool) -> int:
    if taproot:
        return SIGHASH_DEFAULT if said.sighash is None else said.sighash
    return SIGHASH_ALL


def _suffix(sighash: int) -> bytes:
    """Return the byte after a signature; none for DEFAULT."""
    return bytes((sighash,)) if sighash != SIGHASH_DEFAULT else b""


def _tweak(key: coincurve.PrivateKey) -> coincurve.PrivateKey:
    """The key of a p2tr output: of the internal key with an even y, tweaked (BIP-341)."""
    public = key.public_key.format()
    secret = key
    if public[0] == 3:
        secret = coincurve.PrivateKey.from_int(_ORDER - key.to_int())
    return secret.add(taproot_tweak(public))


def _with(said: PsbtInput, one: OwnInput, signature: bytes, redeem: bytes | None, *, taproot: bool) -> PsbtInput:
    """The input with our signature in place of any other under the same key."""
    name = _place(one.key, taproot=taproot)
    more = [(name, signature)]
    if redeem is not None and said.redeem_script is None:
        # Without it nobody else could finish the input.
        more.append((bytes((IN_REDEEM,)), redeem))
    pairs: Pairs = tuple(sorted([pair for pair in said.pairs if pair[0] != name] + more))
    if taproot:
        return msgspec.structs.replace(said, pairs=pairs, tap_signature=signature)
    others = tuple(pair for pair in said.partial_signatures if pair[0] != one.key.public_key)
    return msgspec.structs.replace(said, pairs=pairs, partial_signatures=(*others, (one.key.public_key, signature)))


def _place(key: OwnKey, *, taproot: bool) -> bytes:
    return bytes((IN_TAP_SIGNATURE,)) if taproot else bytes((IN_PARTIAL,)) + key.public_key
