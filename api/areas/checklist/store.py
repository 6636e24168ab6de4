"""The one query of the security checklist."""

from datetime import datetime

import msgspec

from api.areas.checklist.types import DomainFact, Facts, Judging
from custody.identity.app_clients import AppClient
from custody.identity.saml_config import SamlConfig
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.kit.deployment import Deployment
from custody.policies.kinds import KINDS
from custody.policies.sources import both_types

_SOFT = both_types([name for name, kind in KINDS.items() if not kind.hard])
_FACTS = """
SELECT (SELECT c.judging FROM tenant_config c WHERE c.tenant_id = $1) AS judging,
       (SELECT count(*) FROM memberships m WHERE m.tenant_id = $1 AND m.role = 'owner') AS owners,
       (SELECT count(*) FROM memberships m WHERE m.tenant_id = $1 AND m.role = 'admin') AS admins,
       (SELECT count(*) FROM memberships m WHERE m.tenant_id = $1 AND m.role IN ('owner', 'admin')
           AND cardinality(mfa_methods(m.user_id)) = 0) AS admins_without_factor,
       (SELECT max(k.created_at) FROM signing_keys k WHERE k.tenant_id = $1 AND k.revoked_at IS NULL
           AND k.retires_at IS NULL) AS newest_signing_key,
       (SELECT count(*) FROM agents a WHERE a.tenant_id = $1 AND NOT EXISTS (
           SELECT FROM policy_rules r WHERE r.tenant_id = $1 AND r.agent_id = a.id AND r.enabled
              AND r.type <> ALL ($2))) AS agents_without_hard_rule,
       (SELECT array_agg(c.document) FROM app_clients c WHERE c.tenant_id = $1) AS app_clients,
       (SELECT min(s.created_at) FROM app_secrets s WHERE s.tenant_id = $1 AND s.revoked_at IS NULL
           AND (s.retires_at IS NULL OR s.retires_at > service_now())) AS oldest_app_secret,
       (SELECT min(k.created_at) FROM tenant_keys k WHERE k.tenant_id = $1
           AND k.revoked_at IS NULL AND k.retires_at IS NULL) AS oldest_tenant_key,
       (SELECT count(*) FROM approver_keys k WHERE k.tenant_id = $1 AND k.rp_id = 'localhost' AND k.revoked_at IS NULL
           AND EXISTS (SELECT FROM policy_rules r WHERE r.tenant_id = $1 AND r.enabled
              AND r.type LIKE 'approval-quorum%' AND strpos(r.config, k.fingerprint) > 0)) AS loose_approver_keys,
       (SELECT array_agg((d.domain, d.sso_required, d.verified_at IS NOT NULL, d.missing_since) ORDER BY d.domain)
          FROM sso_domains d WHERE d.tenant_id = $1) AS sso_domains,
       EXISTS (SELECT FROM saml_configs c WHERE c.tenant_id = $1 AND c.document::jsonb @> '{"enabled": true}')
         OR EXISTS (SELECT FROM oidc_providers p WHERE p.tenant_id = $1 AND p.document::jsonb @> '{"enabled": true}')
         AS signs_on,
       (SELECT s.document FROM saml_configs s WHERE s.tenant_id = $1) AS saml,
       (SELECT jsonb_object_agg(p.id, k.fetched_at) FROM oidc_providers p
          LEFT JOIN provider_key_states($1) k ON k.provider = p.id
         WHERE p.tenant_id = $1 AND (p.document::jsonb -> 'enabled')::boolean) AS oidc_keys
"""


async def facts(pool: Pool, tenant: str, deployment: Deployment) -> Facts:
    """Read the facts of the checklist, in one statement."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow(_FACTS, tenant, _SOFT)
    return Facts(
        now=clock.now(),
        deployment=deployment,
        judging=msgspec.json.decode(row["judging"], type=Judging) if row["judging"] else Judging(),
        owners=row["owners"],
        admins=row["admins"],
        admins_without_factor=row["admins_without_factor"],
        newest_signing_key=row["newest_signing_key"],
        agents_without_hard_rule=row["agents_without_hard_rule"],
        app_clients=tuple(msgspec.json.decode(client, type=AppClient) for client in row["app_clients"] or ()),
        oldest_app_secret=row["oldest_app_secret"],
        oldest_tenant_key=row["oldest_tenant_key"],
        loose_approver_keys=row["loose_approver_keys"],
        sso_domains=tuple(
            DomainFact(domain=domain, sso_required=required, verified=verified, missing_since=missing)
            for domain, required, verified, missing in row["sso_domains"] or ()
        ),
        signs_on=row["signs_on"],
        saml=msgspec.json.decode(row["saml"], type=SamlConfig) if row["saml"] else None,
        oidc_keys=msgspec.json.decode(row["oidc_keys"] or "{}", type=dict[str, datetime | None]),
    )
