"""The codes of errors that a route may answer with, by status.

They are those of the steps that its kind of request goes through, those that stand in the answers that it declares,
those that its command declares, and those of the errors in `fails`: what its use case may refuse by itself. None of
them is said twice: tests/structure/test_contract.py.
"""

import functools
import inspect
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from api.areas.signing.calls import ProposedCalls, RejectedCalls, ThrottledCalls
from api.areas.signing.transfers import PendingTransfer, RejectedTransfer, ThrottledTransfer
from api.areas.signing.types import Pending, PolicyRateLimited, PolicyRefused
from api.http import (
    authorization,
    bodies,
    credentials,
    decoding,
    errors,
    forms,
    hardening,
    held,
    idempotency,
    pipeline,
    rate_limit,
    single_headers,
)
from api.http.endpoint import Endpoint
from custody.approvals.types import ApprovalRefused
from custody.identity import request_signature
from custody.intents.types import Throttling, VotesMissing
from custody.kit import cursors, jwt
from custody.kit.errors import CustodyError, Invalid, Unavailable
from custody.kit.json_bodies import BadBody
from custody.protocol import client, refusals, workers
from custody.protocol.identity.refusals import SignatureKeyUnknown
from custody.protocol.refusals import SignatureMismatch, SignatureReplayed
from custody.protocol.signer.order_refusals import AuthorityTampered
from custody.protocol.signer.refusals import (
    AutomationDisabled,
    QuorumNotMet,
    RequestTimeRequired,
    SignerPermission,
    SignerUnknown,
)

_ANY: tuple[type[CustodyError], ...] = (
    bodies.MalformedRequest,
    errors.HeadersTooLarge,
    held.TooMuchHeld,
    rate_limit.RateLimited,
    pipeline.DatabaseUnavailable,
    pipeline.DatabaseFull,
    client.SignerUnavailable,
    client.OutcomeUnknown,
    workers.IdentityUnavailable,
    refusals.DatabaseRolledBack,
    refusals.KeyVersionMissing,
    refusals.SealedValueTampered,
    # After a worker lost several races in a row.
    Unavailable,
)
_WITH_CREDENTIAL: tuple[type[CustodyError], ...] = (
    credentials.AmbiguousCredentials,
    credentials.NoCredential,
    credentials.BadCredential,
    credentials.WrongKind,
    # Of a credential that ended while its request was under way.
    refusals.BadProof,
    # Any bearer token is read before anything else is known of it.
    jwt.BadToken,
    jwt.UnknownKey,
    credentials.SessionRevoked,
    refusals.TokenRevoked,
)
_RECORDED = (
    Pending,
    ApprovalRefused,
    PolicyRefused,
    PolicyRateLimited,
    PendingTransfer,
    RejectedTransfer,
    ThrottledTransfer,
    ProposedCalls,
    RejectedCalls,
    ThrottledCalls,
    Throttling,
    VotesMissing,
)
_CURSOR: tuple[type[CustodyError], ...] = (cursors.BadCursor, cursors.OtherCursor, cursors.CursorAndPage)
_SIGNED: tuple[type[CustodyError], ...] = (
    idempotency.BadIdempotencyKey,
    idempotency.IdempotencyInFlight,
    hardening.RequestTimeRequired,
    hardening.SignatureRequired,
    hardening.IdempotencyKeyRequired,
    single_headers.HeaderMalformed,
    authorization.AuthorizationMalformed,
    request_signature.SignatureMalformed,
    request_signature.RequestTimestampMalformed,
    request_signature.RequestExpiryMalformed,
    request_signature.RequestStale,
    request_signature.RequestFromTheFuture,
    request_signature.RequestExpired,
    request_signature.RequestExpiryTooFar,
    SignatureKeyUnknown,
    SignatureMismatch,
    SignatureReplayed,
    refusals.IdempotencyMismatch,
    refusals.IdempotencySecretShown,
)
_AUTHORIZED: tuple[type[CustodyError], ...] = (
    authorization.AuthorizationAmbiguous,
    AuthorityTampered,
    AutomationDisabled,
    QuorumNotMet,
    RequestTimeRequired,
    SignerPermission,
    SignerUnknown,
)
_BODY: tuple[type[CustodyError], ...] = (
    BadBody,
    bodies.BodyTooSlow,
    errors.BodyTooLarge,
    errors.WrongContentType,
)
# Of one class with several causes.
_BODY_CODES = {
    "malformed_json": "The body is not valid JSON.",
    "duplicate_key": "A key is given twice in one object.",
    "number_out_of_range": "A number is larger than 64 bits.",
    "nested_too_deeply": "The body is nested too deeply.",
}
_INTERNAL = {500: {"internal": "Internal error; the operator can find the cause by the request id."}}


def _by_status(problems: Iterable[type[CustodyError]]) -> dict[int, dict[str, str]]:
    found: dict[int, dict[str, str]] = {}
    for problem in problems:
        status, code, message = _meaning(problem)  # type: ignore[arg-type]  # a class has a hash
        found.setdefault(status, {})[code] = message
    return {status: dict(sorted(codes.items())) for status, codes in found.items()}


@functools.cache
def _meaning(problem: type[CustodyError]) -> tuple[int, str, str]:
    """The status, code and meaning of an error: most errors are those of nearly every route."""
    known = problem()
    return errors.status_of(known), known.code, known.message


# What nearly every route has, where it declares nothing more of the same status.
COMMON: dict[int, dict[str, str]] = {
    status: codes
    for status, codes in {**_by_status((*_ANY, *_BODY)), **_INTERNAL}.items()
    if status != errors.status_of(Invalid())
}


def codes_of(endpoint: Endpoint) -> dict[int, dict[str, str]]:
    """The meanings of an endpoint's codes, by status."""
    found = _by_status(problems_of(endpoint)) | _INTERNAL
    for status, answer in endpoint.returns.items():
        for code in _own_codes(answer):
            found.setdefault(status, {})[code] = (inspect.getdoc(answer) or "").splitlines()[0]
    if endpoint.reads_body:
        found[400].update(_BODY_CODES)
    return {status: dict(sorted(codes.items())) for status, codes in sorted(found.items())}


def _own_codes(answer: Any) -> tuple[str, ...]:
    """The codes of an answer that is recorded and no success, such as a policy's refusal."""
    if not (inspect.isclass(answer) and issubclass(answer, _RECORDED)):
        return ()
    words: tuple[str, ...] = typing.get_args(typing.get_type_hints(answer)["code"])
    return words


def error_codes(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Every code with what it means."""
    found = meanings(endpoints)
    said = "\n".join(f"- `{code}`: {text}" for code, (_, text) in sorted(found.items()))
    return {
        "type": "string",
        "description": "The problem. Further codes may be added: treat an unknown one by its status.\n\n" + said,
        "enum": sorted(found),
    }


def meanings(endpoints: Iterable[Endpoint]) -> dict[str, tuple[set[int], str]]:
    """Every code with its statuses and what it means; where it means two things, both."""
    found: dict[str, tuple[set[int], list[str]]] = {}
    for endpoint in endpoints:
        for status, codes in codes_of(endpoint).items():
            for code, text in codes.items():
                statuses, texts = found.setdefault(code, (set(), []))
                statuses.add(status)
                if text not in texts:
                    texts.append(text)
    return {code: (statuses, " Or: ".join(texts)) for code, (statuses, texts) in sorted(found.items())}


def problems_of(endpoint: Endpoint) -> Iterator[type[CustodyError]]:
    """The errors that a route may answer with, each once."""
    yield from endpoint.refuses
    yield from _ANY
    yield from _of_callers(endpoint)
    if endpoint.path_names:
        yield pipeline.BadPath
    if endpoint.query is not None:
        yield decoding.BadQuery
    if "cursor" in getattr(endpoint.query, "__struct_fields__", ()):
        yield from _CURSOR
    if endpoint.headers is not None:
        yield decoding.BadHeader
    if endpoint.cookies is not None:
        yield decoding.BadCookie
    if endpoint.reads_body:
        yield from (*_BODY, forms.BadForm) if endpoint.form_too or endpoint.form_only else _BODY
    if endpoint.hardened:
        yield from _SIGNED
    if authorization.takes_one(endpoint):
        yield from _AUTHORIZED
    if endpoint.lenient is not None and issubclass(endpoint.lenient, CustodyError):
        yield endpoint.lenient


def _of_callers(endpoint: Endpoint) -> Iterator[type[CustodyError]]:
    who = endpoint.who
    if "public" not in who.kinds:
        yield from _WITH_CREDENTIAL
    if "agent_token" in who.kinds and "agent" in endpoint.path_names:
        yield pipeline.OtherAgent
    if who.agent_beside:
        yield from (credentials.AgentTokenRequired, credentials.OtherTenant, pipeline.OtherAgent)
    if "session" in who.kinds:
        yield refusals.WrongRole
        if not who.pages:
            yield refusals.NotForPages
        if not who.bound:
            yield refusals.SessionBound
    if who.action:
        yield refusals.MfaRequired
    if who.scope:
        yield credentials.MissingScope
    if pipeline.OWN_TENANT.intersection(endpoint.path_names) and who.kinds != {"platform_key"}:
        yield pipeline.NoSuchTenant
