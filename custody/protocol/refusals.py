"""Refusals of both workers that the api raises too, or names in the contract: one definition for all."""

from collections.abc import Sequence

from custody.kit.errors import Conflict, Forbidden, NotFound, Unauthenticated, Unavailable


class BadProof(Unauthenticated):
    """The credential is not valid."""


class AdministrationMoving(Conflict):
    """Concurrent changes to this tenant collided; repeat the request."""


class DatabaseRolledBack(Unavailable):
    """The database lacks what this service has acknowledged: nothing is signed or revealed. Contact the operator."""


class IdempotencyMismatch(Conflict):
    """This Idempotency-Key was used for a different request; send a new one."""


class IdempotencySecretShown(Conflict):
    """The response had a secret that is shown only once; send a new Idempotency-Key for another secret."""


class KeyVersionMissing(Unavailable):
    """The signer on this host lacks a version of the master key. Contact the operator."""


class MfaRequired(Forbidden):
    """Recent multi-factor authentication is required: verify a second factor, then repeat the request."""


class SealedValueTampered(Unavailable):
    """A sealed value fails its integrity check. Contact the operator."""


def mfa_required(action: str, methods: Sequence[str], max_age_seconds: int) -> MfaRequired:
    """The refusal with what helps: the person's methods, or that they have none yet."""
    sentence = None if methods else "This action needs a second factor, and you have none: enrol one, then repeat it."
    return MfaRequired(sentence, action=action, methods=list(methods), maxAgeSeconds=max_age_seconds)


class SignatureMismatch(Unauthenticated):
    """The signature does not match this request: compare method, path and query, tenant, times, key and body."""


class SignatureReplayed(Unauthenticated):
    """This signature was used before; sign every request again, also after a refusal."""


class TenantAbsent(NotFound):
    """No such tenant."""


class NotForPages(Forbidden):
    """A session that began at an app client's page cannot do this; sign in at this service's own address."""


class SessionBound(Forbidden):
    """This session stays in its tenant, whose sign-on or application began it; sign in at this service to do this."""


class TokenRevoked(BadProof):
    """This token was revoked; ask the tenant for a new one."""


class WrongRole(Forbidden):
    """Your role in this tenant does not allow this action."""
