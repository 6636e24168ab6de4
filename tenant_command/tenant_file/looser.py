"""Sentences about what a change of anything but rules opens. Pure.

As with rules it errs on one side: a place that differs is named, though it may lie within the old one.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from tenant_command.tenant_file.comparing import Change
from words.texts.plain import clip

_SHOWN: Final = 120
_ORDER: Final = {"uncoveredEffects": ("refuse", "queue", "allow")}


def looser_change(section: str, found: Sequence[Change]) -> list[str]:
    """Name what the changed fields of one thing open."""
    said: list[str] = []
    for change in found:
        judge = _JUDGES.get((section, change.field))
        if judge is not None:
            said += judge(change.field, change.before, change.after)
    return said


def looser_new(section: str, item: Mapping[str, Any]) -> list[str]:
    """Name what a new thing opens."""
    enabled = item.get("enabled", True)
    match section:
        case "credentialRoutes" if enabled:
            goes = f"the secret {item['secret']!r} goes" if item.get("secret") else "agents get"
            return [f"{goes} to {clip(item['hostPattern'], _SHOWN)}"]
        case "paymentRoutes" if enabled:
            return [f"what {clip(item['hostPattern'], _SHOWN)} demands is paid, {_prices(item['maxPerCall'])} a call"]
        case "webhooks" if enabled:
            return [f"events go to {clip(item['url'], _SHOWN)}"]
        case "appClients" if enabled:
            return ["another application signs people in"]
        case "saml" | "oidcProviders" if enabled:
            joins = ", and makes people members by itself" if item.get("allowJitProvisioning") else ""
            return [f"another identity provider says who people are{joins}"]
    return []


def looser_without(section: str, item: Mapping[str, Any]) -> list[str]:
    """Name what opens when a thing is deleted."""
    if section == "ssoDomains" and item.get("ssoRequired"):
        return [f"people of {item['domain']} need no single sign-on any more"]
    return []


def looser_below(section: str, item: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> list[str]:
    """Name the routes to which requests may fall, once a route is not for them any more."""
    if section not in ("credentialRoutes", "paymentRoutes") or not item.get("enabled", True):
        return []
    hosts = [one["hostPattern"] for one in others if one.get("enabled", True)]
    below = sorted({host for host in hosts if _may_meet(host.lower(), item["hostPattern"].lower())})
    return [f"its requests may fall to the route for {clip(', '.join(below), _SHOWN)}"] if below else []


def _may_meet(one: str, other: str) -> bool:
    """Tell whether two patterns may be for one host, of any port."""
    one, other = (re.sub(r":[0-9]+$", "", host) for host in (one, other))
    if "*" not in one + other:
        return one == other
    # Of a pattern without a star the end is the whole.
    ends = [host.rpartition("*")[2] for host in (one, other)]
    return ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])


def _prices(most: Mapping[str, str]) -> str:
    return ", ".join(f"up to {int(amount):,} of {asset}" for asset, amount in sorted(most.items()))


def _other(field: str, before: Any, after: Any) -> list[str]:
    return [f"`{field}` becomes {_short(after)}, where it was {_short(before)}"]


def _on(field: str, before: Any, after: Any) -> list[str]:
    return [f"`{field}` is on"] if after else []


def _off(field: str, before: Any, after: Any) -> list[str]:
    # Left out it is on, or off, as it was not before: a change to nothing said is one to the default.
    return [f"`{field}` is off"] if not after else []


def _enable(field: str, before: Any, after: Any) -> list[str]:
    return ["it is enabled"] if after in (None, True) else []


def _additions(field: str, before: Any, after: Any) -> list[str]:
    new = [one for one in after or () if one not in (before or ())]
    return [f"`{field}` also has {', '.join(_short(one) for one in new)}"] if new else []


def _confines(field: str, before: Any, after: Any) -> list[str]:
    """Of a list that confines nothing where it is empty."""
    if not before:
        return []
    return [f"`{field}` does not confine it any more"] if not after else _additions(field, before, after)


def _payees(field: str, before: Any, after: Any) -> list[str]:
    """Of those whom a route names: where it names none, a rule of the agent must, or a person decides."""
    if before and not after:
        return [f"`{field}` names nobody any more: whom a rule of the agent names is paid"]
    return _additions(field, before, after)


def _cheaper(field: str, before: Any, after: Any) -> list[str]:
    return [f"`{field}` falls from {before or 0:,} to {after or 0:,}"] if (after or 0) < (before or 0) else []


def _more(field: str, before: Any, after: Any) -> list[str]:
    old, new = (1_000 if said is None else said for said in (before, after))
    return [f"`{field}` rises from {old:,} to {new:,}"] if new > old else []


def _most(field: str, before: Any, after: Any) -> list[str]:
    old, new = before or {}, after or {}
    return [
        f"`{field}`: up to {int(new[asset]):,} of {asset}"
        + (f", where {int(old[asset]):,} was" if asset in old else "")
        for asset in sorted(new)
        if int(new[asset]) > int(old.get(asset, 0))
    ]


def _unknown_payee(field: str, before: Any, after: Any) -> list[str]:
    return ["addresses are paid that nobody named"] if after else []


def _flags_on(field: str, before: Any, after: Any) -> list[str]:
    on = [name for name, value in (after or {}).get("oauth", {}).items() if value]
    return [f"`{field}` has {', '.join(sorted(on))}"] if on else []


def _approvals(field: str, before: Any, after: Any) -> list[str]:
    old, new = before or {}, after or {}
    order = _ORDER["uncoveredEffects"]
    said = []
    was, becomes = old.get("uncoveredEffects", "queue"), new.get("uncoveredEffects", "queue")
    if was in order and becomes in order and order.index(becomes) > order.index(was):
        said.append(f"what no rule covers: {was} becomes {becomes}")
    waits = [found.get("autoExpireSeconds", 86_400) for found in (old, new)]
    if (waits[1] or 10**12) > (waits[0] or 10**12):
        said.append("what waits for a person waits longer" if waits[1] else "what waits for a person never expires")
    return said


def _authentication(field: str, before: Any, after: Any) -> list[str]:
    old, new = ((found or {}).get("mfa", {}) for found in (before, after))
    said = []
    if new.get("maxAgeSeconds", 300) > old.get("maxAgeSeconds", 300) or new.get("maxAgeFor") != old.get("maxAgeFor"):
        said.append("a second factor counts for another time")
    for name in sorted(new.get("requireFor", {})):
        if not new["requireFor"][name] and old.get("requireFor", {}).get(name, True):
            said.append(f"{name} needs no second factor")
    for name in ("keyImport", "keyExport"):
        if old.get("disableFor", {}).get(name) and not new.get("disableFor", {}).get(name):
            said.append(f"{name} is not forbidden any more")
    for name in ("allowDelegatedSignerAutomation", "allowKeyQuorumAutomation"):
        if new.get(name, True) and not old.get(name, True):
            said.append(f"`{name}` is on")
    joins = [(found or {}).get("invitations", {}).get("requireToken", True) for found in (before, after)]
    wallets = [(found or {}).get("wallet", {}).get("restrictToOneThirdPartyWallet", False) for found in (before, after)]
    if joins == [True, False]:
        said.append("people join without the token of an invitation")
    if wallets == [True, False]:
        said.append("people may link more than one wallet")
    return said


def _short(value: Any) -> str:
    return "nothing" if value in (None, [], {}) else clip(str(value), _SHOWN)


Judge = Callable[[str, Any, Any], list[str]]
_REQUESTS: Final[dict[str, Judge]] = {
    "hostPattern": _other,
    "pathPattern": _other,
    "method": _other,
    "agents": _confines,
    "priority": _other,
    "enabled": _enable,
}
_SIGN_ON: Final[dict[str, Judge]] = {"enabled": _enable, "allowJitProvisioning": _on}
_BY_SECTION: Final[dict[str, dict[str, Judge]]] = {
    "credentialRoutes": {
        **_REQUESTS,
        "injectAs": _other,
        "injectKey": _other,
        "injectFormat": _other,
        "keepAuthorization": _on,
        "alsoInject": _additions,
        "exchange": _other,
        "ranges": _on,
        "costMicroUsd": _cheaper,
        "maxMicroUsd": _cheaper,
        "usage": _other,
    },
    "paymentRoutes": {
        **_REQUESTS,
        "maxPerCall": _most,
        "payTo": _payees,
        "schemes": _additions,
        "allowUnknownPayTo": _unknown_payee,
    },
    "webhooks": {"url": _other, "enabled": _enable, "events": _other},
    "appClients": {
        "enabled": _enable,
        "allowedOrigins": _additions,
        "allowedRedirectUrls": _additions,
        "allowedBundleIds": _additions,
        "allowedPackageNames": _additions,
        "loginMethods": _flags_on,
        "allowRegistration": _on,
        "maxRegistered": _more,
    },
    "saml": {
        **_SIGN_ON,
        "idpEntityId": _other,
        "idpSsoUrl": _other,
        "idpCertPems": _additions,
        "wantAssertionsEncrypted": _off,
        "groupsAttribute": _other,
        "groupRoleMappings": _additions,
        "emailAttribute": _other,
    },
    "oidcProviders": {
        **_SIGN_ON,
        "issuer": _other,
        "clientId": _other,
        "clientSecretEnv": _other,
        "audience": _other,
        "jwksUri": _other,
        "authorizationUrl": _other,
        "tokenUrl": _other,
        "userinfoUrl": _other,
        "clientAuthentication": _other,
        "issInResponse": _off,
    },
    "ssoDomains": {"ssoRequired": _off},
    "config": {"approvalConfig": _approvals, "authAbuseConfig": _authentication},
}
_JUDGES: Final = {(section, field): judge for section, of in _BY_SECTION.items() for field, judge in of.items()}
