"""The shape of a tenant's file: its sections, their fields and what a field is that is left out.

The fields are those of the API's contract, which a test holds them to; where the API has an id that it made, the file
has a name.
"""

from typing import Final

from tenant_command.event_names import EVENTS
from tenant_command.kinds import Amount, Certificate, Flag, Kind, ListOf, MapOf, Maybe, Moment, Of, Record, Text, Whole
from tenant_command.tenant_file.rule_shape import RULES

VERSION: Final = 1
_TEXT, _NO, _YES = Of(Text()), Of(Flag(), False), Of(Flag(), True)
_NOTE: Final = Of(Maybe(Text()), None)
_TEXTS: Final = ListOf(Text())
_ANY_ORDER: Final = ListOf(Text(), unordered=True)

REFERENCE: Final = Record({"env": _NOTE, "file": _NOTE})
AGENT: Final = Record(
    {
        "id": _TEXT,
        "name": _TEXT,
        "displayName": _NOTE,
        "platformId": _NOTE,
        "policies": Of(RULES, open=True),
    }
)
POLICY_SET: Final = Record({"name": _TEXT, "policies": Of(RULES)})
SECRET: Final = Record(
    {"name": _TEXT, "description": _NOTE, "expiresAt": Of(Maybe(Moment()), None), "value": Of(REFERENCE, open=True)}
)
_INJECTION: Final = Record(
    {"secret": _TEXT, "injectAs": _TEXT, "injectKey": _TEXT, "injectFormat": Of(Text(), "{value}")}
)
_EXCHANGE: Final = Record(
    {
        "grant": _TEXT,
        "tokenUrl": Of(Text(), ""),
        "scope": Of(Text(), ""),
        "audience": Of(Text(), ""),
        "clientAuth": Of(Text(), "basic"),
    }
)
_PRICES: Final = Record(
    {
        "form": _TEXT,
        "input": Of(Whole()),
        "output": Of(Whole()),
        "cached": Of(Maybe(Whole()), None),
        "cacheWrite": Of(Maybe(Whole()), None),
        "inputAt": Of(Text(), ""),
        "outputAt": Of(Text(), ""),
    }
)
_REQUESTS: Final = {
    "hostPattern": Of(Text(folded=True)),
    "pathPattern": Of(Text(), "/*"),
    "method": Of(Text(folded=True), "*"),
}
_ROUTE: Final = {
    "priority": Of(Whole(), 0),
    "enabled": _YES,
    "agents": Of(_ANY_ORDER, []),
}
CREDENTIAL_ROUTE: Final = Record(
    {
        **_REQUESTS,
        "secret": _NOTE,
        "injectAs": _TEXT,
        "injectKey": Of(Text(), ""),
        "injectFormat": Of(Text(), "{value}"),
        **_ROUTE,
        "alsoInject": Of(ListOf(_INJECTION), []),
        "keepAuthorization": _NO,
        "exchange": Of(Maybe(_EXCHANGE), None),
        "ranges": _NO,
        "costMicroUsd": Of(Whole(), 0),
        "maxMicroUsd": Of(Whole(), 0),
        "usage": Of(Maybe(_PRICES), None),
    }
)
PAYMENT_ROUTE: Final = Record(
    {
        **_REQUESTS,
        **_ROUTE,
        "maxPerCall": Of(MapOf(Amount())),
        "payTo": Of(_ANY_ORDER, []),
        "schemes": Of(_ANY_ORDER, ["exact"]),
        "allowUnknownPayTo": _NO,
    }
)
# An endpoint that is sent every event is sent later ones too.
WEBHOOK: Final = Record(
    {
        "url": _TEXT,
        "events": Of(Maybe(ListOf(Text(), unordered=True, every=frozenset(EVENTS))), None),
        "enabled": _YES,
        "description": _NOTE,
        "maxRetries": Of(Whole(), 5),
        "retryBackoffMs": Of(Whole(), 60_000),
    }
)
APP_CLIENT: Final = Record(
    {
        "id": _TEXT,
        "name": _TEXT,
        "environment": Of(Text(), "production"),
        "enabled": _YES,
        "isDefault": _NO,
        "allowedOrigins": Of(_ANY_ORDER, []),
        "allowedRedirectUrls": Of(_ANY_ORDER, []),
        "allowedBundleIds": Of(_ANY_ORDER, []),
        "allowedPackageNames": Of(_ANY_ORDER, []),
        "loginMethods": Of(Record({"oauth": Of(MapOf(Flag()), {})}), {}),
        "allowRegistration": _NO,
        "maxRegistered": Of(Whole(), 1_000),
    }
)
SAML: Final = Record(
    {
        "enabled": _YES,
        "idpEntityId": _TEXT,
        "idpSsoUrl": _TEXT,
        "idpCertPems": Of(ListOf(Certificate(), unordered=True)),
        "wantAssertionsEncrypted": _NO,
        "emailAttribute": _NOTE,
        "groupsAttribute": _NOTE,
        "groupRoleMappings": Of(ListOf(Record({"group": _TEXT, "role": _TEXT}), unordered=True), []),
        "allowJitProvisioning": _NO,
    }
)
# Left out they are what the issuer says of itself.
_DISCOVERED: Final = Of(Maybe(Text()), None, open=True)
OIDC_PROVIDER: Final = Record(
    {
        "id": _TEXT,
        "issuer": _TEXT,
        "clientId": _TEXT,
        "clientSecretEnv": _NOTE,
        "enabled": _YES,
        "audience": Of(Maybe(_ANY_ORDER), None),
        "jwksUri": _DISCOVERED,
        "authorizationUrl": _DISCOVERED,
        "tokenUrl": _DISCOVERED,
        "userinfoUrl": _NOTE,
        "scopes": Of(_ANY_ORDER, []),
        "allowJitProvisioning": _NO,
        "clientAuthentication": _DISCOVERED,
        "issInResponse": Of(Maybe(Flag()), None, open=True),
    }
)
SSO_DOMAIN: Final = Record({"domain": Of(Text(folded=True)), "ssoRequired": _NO})
_TEMPLATE_RULE: Final = Record({"id": _NOTE, "type": _TEXT, "enabled": _YES, "config": Of(Kind(), {})})
_CUSTOMIZABLE: Final = Record(
    {
        "path": _TEXT,
        "label": _TEXT,
        "description": Of(Text(), ""),
        "type": _TEXT,
        **{name: Of(Kind(), None) for name in ("default", "min", "max")},
    }
)
_TEMPLATE: Final = Record(
    {
        "id": _TEXT,
        "name": _TEXT,
        "description": Of(Text(), ""),
        "icon": Of(Text(), ""),
        "policies": Of(ListOf(_TEMPLATE_RULE), []),
        "customizableFields": Of(ListOf(_CUSTOMIZABLE), []),
    }
)
_PRESET: Final = Record(
    {
        "id": _TEXT,
        "name": _TEXT,
        "hostPattern": _TEXT,
        "pathPattern": Of(Text(), "/*"),
        "injectAs": _TEXT,
        "injectKey": _TEXT,
        "injectFormat": Of(Text(), "{value}"),
        "provisioning": _TEXT,
        "platformSecret": _NOTE,
    }
)
_THEME_TEXTS: Final = (
    "primaryColor", "accentColor", "backgroundColor", "surfaceColor", "textColor", "colorScheme", "fontFamily",
    "logoUrl", "faviconUrl",
)  # fmt: skip
_MFA: Final = Record(
    {
        "maxAgeSeconds": Of(Whole(), 300),
        "maxAgeFor": Of(MapOf(Whole()), {}),
        "requireFor": Of(MapOf(Flag()), {}),
        "disableFor": Of(Record({"keyImport": _NO, "keyExport": _NO}), {}),
        "allowDelegatedSignerAutomation": _YES,
        "allowKeyQuorumAutomation": _YES,
    }
)
AUTH_ABUSE: Final = Record(
    {
        "mfa": Of(_MFA, {}),
        "invitations": Of(Record({"requireToken": _YES}), {}),
        "wallet": Of(Record({"restrictToOneThirdPartyWallet": _NO}), {}),
    }
)
# A field that is left out is not looked at, though each that is there is all of it.
CONFIG: Final = Record(
    {
        "displayName": Of(Maybe(Text()), open=True),
        "policyExposure": Of(MapOf(Text()), open=True),
        "policyTemplates": Of(ListOf(_TEMPLATE, unique="id"), open=True),
        "secretRoutePresets": Of(ListOf(_PRESET, unique="id"), open=True),
        "featureFlags": Of(MapOf(Flag()), open=True),
        "theme": Of(
            Maybe(
                Record({**dict.fromkeys(_THEME_TEXTS, _NOTE), "borderRadius": Of(Maybe(Whole()), None)}),
            ),
            open=True,
        ),
        "approvalConfig": Of(
            Record(
                {
                    "autoExpireSeconds": Of(Whole(), 86_400),
                    "approvers": Of(Record({"mode": Of(Text(), "owner")}), {}),
                    "webhookCallbackEnabled": _NO,
                    "uncoveredEffects": Of(Text(), "queue"),
                }
            ),
            open=True,
        ),
        "authAbuseConfig": Of(AUTH_ABUSE, open=True),
    }
)

# In the order in which they are made: what is named comes before what names it.
TENANT: Final = Record(
    {
        "version": Of(Whole()),
        "secrets": Of(ListOf(SECRET, unique="name"), open=True),
        "policySets": Of(ListOf(POLICY_SET, unique="name"), open=True),
        "tenantPolicySet": Of(Maybe(POLICY_SET), open=True),
        "agents": Of(ListOf(AGENT, unique="id"), open=True),
        "credentialRoutes": Of(ListOf(CREDENTIAL_ROUTE), open=True),
        "paymentRoutes": Of(ListOf(PAYMENT_ROUTE), open=True),
        "webhooks": Of(ListOf(WEBHOOK), open=True),
        "appClients": Of(ListOf(APP_CLIENT, unique="id"), open=True),
        "saml": Of(Maybe(SAML), open=True),
        "oidcProviders": Of(ListOf(OIDC_PROVIDER, unique="id"), open=True),
        "ssoDomains": Of(ListOf(SSO_DOMAIN, unique="domain"), open=True),
        "config": Of(CONFIG, open=True),
    }
)
# Only an owner or admin who signed in reads and changes these; a key of the tenant does not.
FOR_PEOPLE: Final = frozenset({"webhooks", "appClients", "saml", "oidcProviders", "ssoDomains"})
SINGLE: Final = frozenset({"tenantPolicySet", "saml", "config"})


def kind_of(section: str) -> Record:
    """The shape of one item of a section."""
    found = TENANT.fields[section].kind
    while not isinstance(found, Record):
        found = found.of  # type: ignore[attr-defined]
    return found
