"""A tenant's keys that its SAML provider may encrypt assertions for: made here, sealed, and never shown.

The newest is in the tenant's metadata; those before it open for some days more, in which the identity provider gets the
new certificate. That an assertion opens says nothing of whose it is, so nothing but the sealed half needs a guard.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_der_private_key
from cryptography.x509.oid import NameOID

from custody.identity.saml_certificates import RSA_EXPONENT
from custody.kit import clock, ids
from custody.protocol.identity.refusals import TooManySamlKeys
from custody.protocol.identity.sign_on import MakeSamlKey, SamlKey
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from custody.worker.sealing import Context
from identity.context import Identity

MAX_LIVING: Final = 3
_PURPOSE = "saml-key"
_BITS: Final = 3072
# Identity providers refuse a certificate that has ended; nothing here depends on it.
_CERTIFIED: Final = timedelta(days=3650)
_CLEAR = "DELETE FROM saml_keys WHERE tenant_id = $1 AND (ends_at <= service_now() OR $2)"
_SUPERSEDE = "UPDATE saml_keys SET ends_at = LEAST(ends_at, $2) WHERE tenant_id = $1 RETURNING id"
_ADD = "INSERT INTO saml_keys (tenant_id, id, certificate, created_at) VALUES ($1, $2, $3, $4)"
_SEAL = (
    "INSERT INTO identity_sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) "
    "VALUES ($1, 'saml_key', $2, $3, $4, $5)"
)
_USABLE = (
    "SELECT k.id, s.blob FROM saml_keys k JOIN identity_sealed s ON s.tenant_id = k.tenant_id "
    "AND s.saml_key_id = k.id WHERE k.tenant_id = $1 AND (k.ends_at IS NULL OR k.ends_at > service_now()) "
    "ORDER BY k.created_at DESC"
)


async def make(identity: Identity, message: MakeSamlKey, call: Call[ProvenSession]) -> SamlKey:
    """A new key; those before it open for as long as is asked for, or end now."""
    tenant, now, key = call.caller.tenant, clock.now(), ids.new_uuid()
    # It takes long enough to keep everybody else waiting.
    private, certificate = await asyncio.to_thread(_new_pair, tenant, now)
    blob = identity.sealer.seal(private, _place(tenant, key))
    outcome = SamlKey(id=key, certificate=certificate, created_at=clock.iso(now), opens_until=None)
    async with acting(identity, call) as connection:
        await connection.execute(_CLEAR, tenant, not message.former_days)
        former = await connection.fetch(_SUPERSEDE, tenant, now + timedelta(days=message.former_days))
        if len(former) >= MAX_LIVING:
            raise TooManySamlKeys
        await connection.execute(_ADD, tenant, key, certificate, now)
        await connection.execute(_SEAL, tenant, key, _PURPOSE, identity.sealer.key_version, blob)
        await tell(connection, call, "sso.saml_key_made", "saml_key", key, formerDays=message.former_days)
        await remember(connection, call, outcome)
    return outcome


async def usable(connection: Any, identity: Identity, tenant: str) -> tuple[RSAPrivateKey, ...]:
    """The keys that open assertions in the tenant of the transaction; Tampered unless identity sealed them."""
    rows = await connection.fetch(_USABLE, tenant)
    opened = (identity.sealer.open(row["blob"], _place(tenant, str(row["id"]))) for row in rows)
    # Sealed here, so that the library need not find out whether it is a good key, which takes long.
    keys = [load_der_private_key(one, None, unsafe_skip_rsa_key_validation=True) for one in opened]
    return tuple(key for key in keys if isinstance(key, RSAPrivateKey))


def _new_pair(tenant: str, now: datetime) -> tuple[bytes, str]:
    """A private key, and its certificate."""
    key = generate_private_key(RSA_EXPONENT, _BITS)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"custody {tenant}"[:64])])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
    certificate = made.not_valid_after(now + _CERTIFIED).sign(key, SHA256()).public_bytes(Encoding.PEM).decode()
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()), certificate


def _place(tenant: str, key: str) -> Context:
    return Context(tenant, "saml_key", key, _PURPOSE)
