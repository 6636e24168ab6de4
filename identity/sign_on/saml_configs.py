"""A tenant's SAML configuration: one document under a MAC. Certificates come only with an administrator's proof."""

from typing import Any

import msgspec

from custody.identity.saml_config import InvalidSaml, SamlConfig, check
from custody.kit import clock
from custody.protocol.identity.refusals import SamlConfigAbsent
from custody.protocol.identity.sign_on import DeletedSaml, DeleteSaml, PutSaml, SavedSaml
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from custody.worker.sealing import fields
from identity.context import Identity
from identity.sign_on import domains

SAML_CONFIG_MAC = "saml-config-mac"
_FIND = "SELECT document, mac FROM saml_configs WHERE tenant_id = $1"
_PUT = (
    "INSERT INTO saml_configs (tenant_id, document, mac, updated_at) VALUES ($1, $2, $3, $4) "
    "ON CONFLICT (tenant_id) DO UPDATE SET document = excluded.document, mac = excluded.mac, "
    "updated_at = excluded.updated_at"
)
_HAS_KEY = "SELECT EXISTS (SELECT FROM saml_keys WHERE tenant_id = $1)"
_NO_KEY = "wantAssertionsEncrypted: make a key first, POST /tenants/{id}/saml-sso/encryption-keys."
_DELETE_KEYS = "DELETE FROM saml_keys WHERE tenant_id = $1"
_DELETE = "DELETE FROM saml_configs WHERE tenant_id = $1 RETURNING true"


async def put(identity: Identity, message: PutSaml, call: Call[ProvenSession]) -> SavedSaml:
    """Replace the configuration; who is signed in by it goes on until their session ends."""
    tenant = call.caller.tenant
    try:
        config = check(msgspec.convert(message.config, SamlConfig), public_url=identity.public_url)
    except msgspec.ValidationError as problem:
        raise InvalidSaml(str(problem)) from None
    now, document = clock.now(), msgspec.json.encode(config, order="sorted").decode()
    outcome = SavedSaml(document, clock.iso(now))
    async with acting(identity, call) as connection:
        if config.want_assertions_encrypted and not await connection.fetchval(_HAS_KEY, tenant):
            raise InvalidSaml(_NO_KEY, fields=["wantAssertionsEncrypted"])
        mac = identity.sealer.mac(SAML_CONFIG_MAC, tenant, fields(tenant, document))
        await connection.execute(_PUT, tenant, document, mac, now)
        said = {
            "idpEntityId": config.idp_entity_id,
            "enabled": config.enabled,
            "newcomers": config.allow_jit_provisioning,
        }
        await tell(connection, call, "sso.saml_changed", "saml", tenant, **said)
        if config.enabled:
            await domains.end_living(connection, identity, tenant)
        await remember(connection, call, outcome)
    return outcome


async def delete(identity: Identity, message: DeleteSaml, call: Call[ProvenSession]) -> DeletedSaml:
    """Forget the configuration; nobody signs in by it any more."""
    tenant = call.caller.tenant
    outcome = DeletedSaml(tenant)
    async with acting(identity, call) as connection:
        if not await connection.fetchval(_DELETE, tenant):
            raise SamlConfigAbsent
        await connection.execute(_DELETE_KEYS, tenant)
        await tell(connection, call, "sso.saml_deleted", "saml", tenant)
        await remember(connection, call, outcome)
    return outcome


async def find(connection: Any, identity: Identity, tenant: str) -> SamlConfig | None:
    """The configuration of the tenant that the transaction is in; Tampered unless identity wrote it."""
    row = await connection.fetchrow(_FIND, tenant)
    if row is None:
        return None
    identity.sealer.check_mac(row["mac"], SAML_CONFIG_MAC, tenant, fields(tenant, row["document"]))
    return msgspec.json.decode(row["document"], type=SamlConfig)
