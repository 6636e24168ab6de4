"""The one place that says whether an order is authorised by those who were shown beside it. No waiting, no I/O.

docs/signers.md tells it to callers. What is refused uses up nothing, for a signature is used up by the write of its
order. Who is unknown, revoked, paused or another agent's is told one code, found by one look into the sealed set.
"""

import functools
import hmac
from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from custody.identity.authority import Authority, Authorized, Signer
from custody.identity.mfa import MfaPolicy
from custody.identity.quorums import is_met, reasons
from custody.identity.request_signature import Signature, check_times, until, verify
from custody.kit.callers import IdempotencyKey
from custody.kit.errors import Invalid
from custody.protocol.refusals import SignatureMismatch
from custody.protocol.signer.refusals import (
    AuthorizationStale,
    AutomationDisabled,
    QuorumNotMet,
    RequestTimeRequired,
    SignerPermission,
    SignerUnknown,
)
from custody.worker.sealing import fields, sha256
from signer.ledger import UsedSignatures
from signer.signed_request import Evidence

_PARSED_KEYS: Final = 1_024
_words = msgspec.json.Encoder()
# A signer's credential, opened; None where it has none.
type Credentials = Callable[[str], bytes | None]


def check_switches(evidence: Evidence, switches: MfaPolicy) -> None:
    """Raise AutomationDisabled where the tenant takes no single signers, or no quorums."""
    if evidence.authorization.quorum is None:
        if not switches.allow_delegated_signer_automation:
            raise AutomationDisabled("This tenant takes no orders that a single signer authorises.")
    elif not switches.allow_key_quorum_automation:
        raise AutomationDisabled("This tenant takes no orders that a key quorum authorises.")


def authorize(
    evidence: Evidence, authority: Authority, credentials: Credentials, permissions: frozenset[str], now: datetime
) -> Authorized:
    """By whom the order is authorised; raises what is missing, in the order that docs/signers.md gives."""
    shown, authority = evidence.authorization, authority.at(now)
    if evidence.problem is not None:
        raise evidence.problem
    check_times(shown.timestamp, shown.expires_at, now)
    if evidence.signatures:
        if shown.timestamp is None and shown.expires_at is None:
            raise RequestTimeRequired
        if shown.idempotency_key is None:
            raise Invalid("A signed request requires an Idempotency-Key header.", code="idempotency_key_required")
    if shown.quorum is not None:
        _check_quorum(authority, shown.quorum, permissions)
    names = _check_shown(evidence, authority, credentials, permissions)
    if shown.quorum is None:
        if authority.signers[names[0]].signer_type == "quorum_member":
            raise SignerPermission("A signer of type quorum_member authorises only inside a key quorum.")
    elif not is_met(authority, shown.quorum, names, permissions):
        why = reasons(authority, shown.quorum, names, permissions)
        said = "".join(f" {name} does not count: {reason}." for name, reason in why.items())
        raise QuorumNotMet(f"{QuorumNotMet.__doc__}{said}", notCounted=why)
    return _authorize(authority, shown.quorum, names)


def standing(authority: Authority, earlier: Authorized, permissions: frozenset[str], now: datetime) -> Authorized:
    """The same who authorised an order that a person approves now, or AuthorizationStale where they no longer may.

    The rules that bind are those that they name today.
    """
    authority = authority.at(now)
    if earlier.quorum is not None:
        if not is_met(authority, earlier.quorum, earlier.signers, permissions):
            raise AuthorizationStale
    else:
        found = [authority.signers.get(name) for name in earlier.signers]
        if len(found) != 1 or not all(one and _may_alone(one, permissions) for one in found):
            raise AuthorizationStale
    return _authorize(authority, earlier.quorum, earlier.signers)


def used_signatures(evidence: Evidence, principal: str, key: IdempotencyKey | None) -> UsedSignatures | None:
    """The signatures that the write of an order uses up; a secret is no signature, and is not used up."""
    shown = evidence.authorization
    ends = until(shown.timestamp, shown.expires_at)
    # By the key where there is one of its own: two signers may have the same, and it signs a request once.
    keys = {signer: sha256(public).hex() for signer, public, _ in evidence.checked}
    pairs = sorted({(keys.get(signer, signer), sha256(signature.mark)) for signer, signature in evidence.signatures})
    if not pairs or ends is None:
        return None
    named = fields(principal, key.route if key else "", shown.idempotency_key or "")
    return UsedSignatures([signer for signer, _ in pairs], [mark for _, mark in pairs], sha256(named), ends)


def text_of(found: Authorized) -> str:
    """As a row keeps it."""
    return _words.encode(found).decode()


def _check_shown(
    evidence: Evidence, authority: Authority, credentials: Credentials, permissions: frozenset[str]
) -> tuple[str, ...]:
    """The signers who were shown, each by a credential or signature of theirs that was checked."""
    shown = evidence.authorization.shown
    for one in shown:
        _check_standing(authority, one.signer, permissions)
    agreeing: set[str] = set()
    for one in shown:
        if one.secret is not None:
            _check_secret(authority.signers[one.signer], one.secret, credentials)
            agreeing.add(one.signer)
    for signer, signature in evidence.signatures:
        _check_signature(evidence, authority.signers[signer], signature, credentials)
        agreeing.add(signer)
    # Who is named beside nothing that proves it refuses all.
    if agreeing != {one.signer for one in shown}:
        raise SignatureMismatch
    return tuple(sorted(agreeing))


def _check_quorum(authority: Authority, quorum: str, permissions: frozenset[str]) -> None:
    found = authority.quorums.get(quorum)
    if found is None or found.status != "active":
        raise SignerUnknown
    if found.permissions.isdisjoint(permissions):
        raise SignerPermission("The key quorum lacks the permission that this route needs.")


def _check_standing(authority: Authority, name: str, permissions: frozenset[str]) -> None:
    signer = authority.signers.get(name)
    if signer is None or signer.status != "active":
        raise SignerUnknown
    if signer.permissions.isdisjoint(permissions):
        raise SignerPermission


def _check_secret(signer: Signer, secret: str, credentials: Credentials) -> None:
    credential = credentials(signer.id) if signer.key_type == "hmac" else None
    # An empty credential would be a lost one, which anybody could show.
    if not credential or not hmac.compare_digest(credential, secret.encode()):
        raise SignatureMismatch("X-Service-Signer-Secret is not this signer's credential, or it was made without one.")


def _check_signature(evidence: Evidence, signer: Signer, signature: Signature, credentials: Credentials) -> None:
    key: bytes | EllipticCurvePublicKey | None
    if signer.key_type == "hmac":
        key = credentials(signer.id)
        if not key or not verify(signature, key, evidence.content):
            raise SignatureMismatch
        return
    public = signer.public_key or b""
    if signature.scheme != "p256":
        raise SignatureMismatch
    made = (signer.id, public, signature.mark)
    if made not in evidence.checked:
        evidence.checked[made] = verify(signature, _key(public), evidence.content)
    if not evidence.checked[made]:
        raise SignatureMismatch


@functools.lru_cache(_PARSED_KEYS)
def _key(spki: bytes) -> EllipticCurvePublicKey:
    key = load_der_public_key(spki)
    if not isinstance(key, EllipticCurvePublicKey):
        raise TypeError("a sealed key of a signer is of another kind")
    return key


def _may_alone(signer: Signer, permissions: frozenset[str]) -> bool:
    may = signer.status == "active" and not signer.permissions.isdisjoint(permissions)
    return may and signer.signer_type != "quorum_member"


def _authorize(authority: Authority, quorum: str | None, names: tuple[str, ...]) -> Authorized:
    named = {rule: None for name in names if (one := authority.signers.get(name)) for rule in one.policy_ids}
    return Authorized(quorum, names, tuple(named))
