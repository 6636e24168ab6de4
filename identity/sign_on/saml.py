"""A browser brings the answer of a tenant's SAML provider.

The state that the browser left with is used up first, whatever follows: an answer is looked at once. It has to be to
the very request that was made from that state, so an answer to another one, or to none, proves nothing. What it is
held against is in docs/saml.md.
"""

from typing import Any

from custody.identity.saml_config import SamlConfig
from custody.identity.saml_groups import role_for
from custody.identity.saml_refusals import CHECKS, SamlRefused
from custody.identity.saml_request import acs_url, authn_request, entity_id, redirect_url
from custody.kit import clock, tokens
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError
from custody.protocol.identity.refusals import SamlUnsolicited, SignInStateInvalid
from custody.protocol.identity.sign_on import Check, FinishSaml, SentBack, Tried
from custody.worker.acts import enter
from custody.worker.call import Call
from custody.worker.sealing import fields, sha256
from identity.context import Identity
from identity.saml.response import decode_response, read_response
from identity.saml.types import Assertion, Expected
from identity.sign_on import domains, ending, people, providers, requests, saml_configs, saml_keys
from identity.sign_on.ending import Way
from identity.sign_on.oauth import EmailDomainUnverified, ProviderChanged
from identity.sign_on.people import Proven
from identity.sign_on.requests import Request, Under

TRANSIENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
_SEEN = (
    "INSERT INTO saml_assertions_seen (tenant_id, assertion_hash, expires_at) VALUES ($1, $2, $3) "
    "ON CONFLICT DO NOTHING RETURNING true"
)
_REPLAYED = SamlRefused(
    "saml_replayed",
    "request",
    "This answer was used before. Sign in again, from the application where you wanted to go.",
)
# What is looked at here beside the checks of the answer itself.
_BESIDE = (
    ("email", "It names an e-mail address", ("email_missing",)),
    ("domain", "The address is in a domain that this tenant has verified", ("email_domain",)),
    ("account", "Somebody would be signed in", ()),
)


class EmailMissing(SamlRefused):
    """The answer has no single e-mail address."""

    def __init__(self, why: str) -> None:
        said = f"{why} The administrator of the identity provider must send one address."
        super().__init__("email_missing", "person", said)


def address(identity: Identity, config: SamlConfig, under: Under) -> str:
    """Build where a browser takes a request to the identity provider."""
    tenant = under.request.tenant or ""
    asked = authn_request(
        request_id_of(identity, under),
        issuer=entity_id(identity.public_url, tenant),
        acs=acs_url(identity.public_url, tenant),
        destination=config.idp_sso_url,
        now=clock.now(),
    )
    return redirect_url(config.idp_sso_url, asked, under.state)


async def finish(identity: Identity, message: FinishSaml, call: Call[None]) -> SentBack | Tried:
    """Judge the answer; a code for the client if the person would come in."""
    if len(message.relay_state) != requests.STATE_CHARACTERS:
        # An identity provider that begins by itself sends none, or one of its own.
        raise SamlUnsolicited
    async with identity.pool.acquire() as connection, connection.transaction():
        under = await requests.lock(connection, identity, message.relay_state)
        await requests.end(connection, under.state)
        request = under.request
        is_its = (request.kind, request.tenant) == ("saml", message.tenant)
        own = tokens.equal(tokens.digest(message.browser), bytes.fromhex(request.browser))
        if is_its and own:
            return await _judge(connection, identity, message, call.origin, under)
    raise SignInStateInvalid


def request_id_of(identity: Identity, under: Under) -> str:
    """The id of the request that was made from a state."""
    return f"_{under.secret(identity, 'request-id')}"


async def _judge(
    connection: Any, identity: Identity, message: FinishSaml, origin: Origin, under: Under
) -> SentBack | Tried:
    way = Way(under.request, origin, {}, _checks)
    try:
        config = await _config(connection, identity, under.request)
        assertion = await _read(connection, identity, config, message, under)
        way.arrived.update(_values(assertion))
        await _note_seen(connection, message.tenant, config, assertion)
        proven = await _prove(connection, identity, message.tenant, config, assertion)
    except CustodyError as refusal:
        return await ending.with_error(connection, identity, way, refusal)
    return await ending.with_code(connection, identity, way, proven)


async def _config(connection: Any, identity: Identity, request: Request) -> SamlConfig:
    """The configuration as it was when the browser left; ProviderChanged if it is another one by now."""
    assert request.tenant is not None  # noqa: S101 - a tenant's provider
    await enter(connection, request.tenant)
    config = await saml_configs.find(connection, identity, request.tenant)
    if config is None or providers.digest(config) != request.configured:
        raise ProviderChanged
    return config


async def _read(
    connection: Any, identity: Identity, config: SamlConfig, message: FinishSaml, under: Under
) -> Assertion:
    expected = Expected(
        idp_entity_id=config.idp_entity_id,
        sp_entity_id=entity_id(identity.public_url, message.tenant),
        acs_url=acs_url(identity.public_url, message.tenant),
        request_id=request_id_of(identity, under),
        certificates=config.idp_cert_pems,
        keys=await saml_keys.usable(connection, identity, message.tenant),
        encrypted=config.want_assertions_encrypted,
        email_attribute=config.email_attribute,
        groups_attribute=config.groups_attribute,
        now=clock.now(),
    )
    return read_response(decode_response(message.response), expected)


async def _note_seen(connection: Any, tenant: str, config: SamlConfig, assertion: Assertion) -> None:
    """Remember the assertion for as long as it would be accepted; refuse one that is remembered."""
    hashed = sha256(fields(config.idp_entity_id, assertion.assertion_id))
    if not await connection.fetchval(_SEEN, tenant, hashed, assertion.not_on_or_after):
        raise _REPLAYED


async def _prove(connection: Any, identity: Identity, tenant: str, config: SamlConfig, assertion: Assertion) -> Proven:
    """The person whom the answer proves, by an address in a domain that the tenant has proven."""
    if assertion.email is None:
        raise EmailMissing(assertion.email_missing)
    email = assertion.email
    if not await domains.is_verified(connection, identity, tenant, email.rpartition("@")[2]):
        raise EmailDomainUnverified(found=email)
    # A transient name is another one each time: then the address is who it is.
    name = email if assertion.name_id_format == TRANSIENT else assertion.name_id
    return Proven(
        kind="saml",
        subject=people.subject_of(tenant, config.idp_entity_id, assertion.name_id_format, name),
        provider="saml",
        tenant=tenant,
        shown_email=email,
        email=email,
        role=role_for(assertion.groups, config.group_role_mappings) if config.groups_attribute else None,
        newcomers=config.allow_jit_provisioning,
        until=assertion.session_not_on_or_after,
    )


def _values(assertion: Assertion) -> dict[str, Any]:
    return {
        "NameID": assertion.name_id,
        "Format": assertion.name_id_format,
        "e-mail": assertion.email or assertion.email_missing,
        "groups": list(assertion.groups),
        **{f"attribute {name}": list(values) for name, values in assertion.attributes.items()},
        **({"warnings": list(assertion.warnings)} if assertion.warnings else {}),
    }


def _checks(refusal: CustodyError | None) -> list[Check]:
    """The checks of an answer, and those beside it, up to the one that a refusal belongs to."""
    steps = [*((check.name, check.title) for check in CHECKS), *((name, title) for name, title, _ in _BESIDE)]
    failed = len(steps)
    if isinstance(refusal, SamlRefused) and not isinstance(refusal, EmailMissing):
        failed = next(number for number, (name, _) in enumerate(steps) if name == refusal.check)
    elif isinstance(refusal, ProviderChanged):
        failed = 0
    elif refusal is not None:
        beside = (number for number, (_, _, codes) in enumerate(_BESIDE) if refusal.code.startswith(codes or "?"))
        failed = len(CHECKS) + next(beside, len(_BESIDE) - 1)
    return [
        _check(name, title, True if number < failed else None if number > failed else False, refusal)
        for number, (name, title) in enumerate(steps)
    ]


def _check(name: str, title: str, passed: bool | None, refusal: CustodyError | None) -> Check:
    if passed is not False or refusal is None:
        return Check(name, title, passed)
    if isinstance(refusal, SamlRefused):
        return Check(name, title, False, refusal.expected or None, refusal.found or None)
    return Check(name, title, False, None, str(refusal.context.get("found", refusal.message)))
