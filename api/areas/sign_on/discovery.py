"""An issuer's own metadata (OpenID Connect Discovery 1.0), asked once, when an administrator saves a provider.

What was left out is filled from it, and what was given must agree; afterwards nothing changes by itself but the keys.
"""

import re
from typing import Any

import msgspec

from api.areas.sign_on.oidc_types import OidcProviderBody
from custody.identity.oidc_provider import (
    ClientAuthentication,
    OidcProvider,
    ProviderProblem,
    check_address,
)
from custody.identity.strict_json import NotStrict, read_object
from custody.kit.errors import Invalid
from custody.kit.outside import Fetcher, NoAnswer

MOST_BYTES = 64 * 1024
WELL_KNOWN = "/.well-known/openid-configuration"
# Field, its name in the contract, its name in the document.
_ADDRESSES = (
    ("jwks_uri", "jwksUri", "jwks_uri"),
    ("authorization_url", "authorizationUrl", "authorization_endpoint"),
    ("token_url", "tokenUrl", "token_endpoint"),
)
# How a secret is sent, the preferred way first, and the standard's name for it.
_METHODS: tuple[tuple[ClientAuthentication, str], ...] = (
    ("basic", "client_secret_basic"),
    ("post", "client_secret_post"),
)
_UNPRINTABLE = re.compile(r"[^\x21-\x7e]")
_SHOWN = 200
_WORDS = {
    "name": "its name cannot be resolved",
    "address_blocked": "its name leads to an address that is not public",
    "connect": "it cannot be connected to",
    "tls": "its certificate is not valid",
    "timeout": "it did not answer in time",
    "closed": "it broke off its answer",
    "too_large": "its answer is larger than 64 KiB",
    "encoded": "its answer is compressed",
    "busy": "too many requests of this tenant are under way",
    "status": "it answered with another status than 200",
    "malformed": "its answer is not the JSON that the standard asks for",
}


class OidcDiscoveryFailed(Invalid):
    """The issuer has no discovery document that can be used: give jwksUri, authorizationUrl and tokenUrl yourself."""


class Document(msgspec.Struct, frozen=True):
    """Of an issuer's document what is used."""

    issuer: str
    jwks_uri: str | None = None
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class Undiscovered(msgspec.Struct, frozen=True):
    """Why there is no document, in a word."""

    reason: str


async def discover(fetcher: Fetcher, tenant: str, issuer: str) -> Document | Undiscovered:
    """The issuer's document."""
    url = issuer.removesuffix("/") + WELL_KNOWN
    try:
        answer = await fetcher.get(url, tenant=tenant, most_bytes=MOST_BYTES, headers={"Accept": "application/json"})
    except NoAnswer as problem:
        return Undiscovered(problem.problem)
    if answer.status != 200:
        return Undiscovered("status")
    try:
        return msgspec.convert(_without_odd(read_object(answer.body)), Document)
    except (NotStrict, msgspec.ValidationError):
        return Undiscovered("malformed")


def _without_odd(document: dict[str, Any]) -> dict[str, Any]:
    """The document without members of its list that are no texts, and without what is null: neither says anything."""
    methods = document.get("token_endpoint_auth_methods_supported")
    if isinstance(methods, list):
        document["token_endpoint_auth_methods_supported"] = [one for one in methods if isinstance(one, str)]
    return {name: value for name, value in document.items() if value is not None}


def complete(body: OidcProviderBody, found: Document | Undiscovered, place: str, public_url: str) -> OidcProvider:
    """The provider with every field. ProviderProblem for a field that does not agree with the document,
    OidcDiscoveryFailed where something is left out and there is none."""
    if isinstance(found, Undiscovered):
        addresses = _from_body(body, found, place)
        authentication: ClientAuthentication = body.client_authentication or "basic"
        promised = bool(body.iss_in_response)
    else:
        addresses = _agree(body, found, public_url)
        authentication = _authentication(body, found)
        promised = found.authorization_response_iss_parameter_supported
        if body.iss_in_response not in (None, promised):
            said = "promises" if promised else "does not promise"
            raise ProviderProblem("issInResponse", f"The issuer {said} `iss` in its answer; leave the field out.")
    return OidcProvider(
        id=body.id,
        enabled=body.enabled,
        issuer=body.issuer,
        audience=body.audience if body.audience is not None else (body.client_id,),
        client_id=body.client_id,
        client_secret_env=body.client_secret_env,
        scopes=body.scopes,
        allow_jit_provisioning=body.allow_jit_provisioning,
        userinfo_url=body.userinfo_url,
        client_authentication=authentication,
        iss_in_response=promised,
        **addresses,
    )


def _from_body(body: OidcProviderBody, found: Undiscovered, place: str) -> dict[str, str]:
    given = {field: getattr(body, field) for field, _, _ in _ADDRESSES}
    missing = [f"{place}.{name}" for field, name, _ in _ADDRESSES if given[field] is None]
    if missing:
        why = _WORDS.get(found.reason, found.reason)
        raise OidcDiscoveryFailed(
            f"{', '.join(missing)}: required, because {body.issuer}{WELL_KNOWN} cannot be used: {why}.", fields=missing
        )
    return given


def _agree(body: OidcProviderBody, found: Document, public_url: str) -> dict[str, str]:
    if found.issuer != body.issuer:
        raise ProviderProblem(
            "issuer", f"The issuer's own document names {_printable(found.issuer)}; write it exactly so if it is yours."
        )
    addresses = {}
    for field, name, theirs in _ADDRESSES:
        given, said = getattr(body, field), getattr(found, theirs)
        if said is None and given is None:
            raise ProviderProblem(name, f"The issuer's document has no {theirs}; give the address yourself.")
        if said is not None and given is not None and given != said:
            raise ProviderProblem(
                name, f"The issuer's document says {_printable(said)}; leave the field out, or write that."
            )
        if said is not None:
            check_address(name, said, public_url)
        addresses[field] = said if said is not None else given
    # It is asked only where an administrator wants it, so it is compared and never filled in.
    if body.userinfo_url is not None and found.userinfo_endpoint not in (None, body.userinfo_url):
        raise ProviderProblem(
            "userinfoUrl",
            f"The issuer's document says {_printable(found.userinfo_endpoint or '')}; write that, or leave it out.",
        )
    return addresses


def _authentication(body: OidcProviderBody, found: Document) -> ClientAuthentication:
    methods = found.token_endpoint_auth_methods_supported
    offered: list[ClientAuthentication] = [way for way, method in _METHODS if method in methods]
    if body.client_authentication is not None:
        if offered and body.client_authentication not in offered:
            raise ProviderProblem(
                "clientAuthentication", f"The issuer takes {' or '.join(offered)}; leave the field out, or write that."
            )
        return body.client_authentication
    if not offered and body.client_secret_env is not None:
        raise ProviderProblem(
            "clientSecretEnv", "The issuer takes no client's secret, neither by Basic nor in the form; leave it out."
        )
    return offered[0] if offered else "basic"


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub("?", text[:_SHOWN])
