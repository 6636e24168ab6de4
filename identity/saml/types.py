"""The expectations of a SAML answer, and its content once it is checked."""

from collections.abc import Mapping
from datetime import datetime

import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """The expectations of an answer: the tenant's configuration, the request of this sign-in, and the time."""

    idp_entity_id: str
    sp_entity_id: str
    acs_url: str
    request_id: str
    certificates: tuple[str, ...]
    # That open what is encrypted, and whether it must be.
    keys: tuple[RSAPrivateKey, ...] = ()
    encrypted: bool = False
    email_attribute: str | None = None
    groups_attribute: str | None = None
    now: datetime


class Assertion(msgspec.Struct, frozen=True, kw_only=True):
    """The checked statement of the provider. `email` is as it arrived; if it is None, `email_missing` says why."""

    assertion_id: str
    name_id: str
    name_id_format: str
    email: str | None
    email_missing: str
    groups: tuple[str, ...]
    attributes: Mapping[str, tuple[str, ...]]
    # Until then the assertion's id must be remembered, because it would be accepted again.
    not_on_or_after: datetime
    session_not_on_or_after: datetime | None
    authn_instant: datetime
    warnings: tuple[str, ...]
