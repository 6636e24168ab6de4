"""The one declaration of a route: router, validation, credentials, envelope and OpenAPI all read it.

A handler is one expression. Its parameters are, in this order: the ports, the caller, the path, then headers, cookies,
body or query; each is recognised by its annotation. Its return type is the contract's: mypy holds it against what the
handler returns, `api/http/answers.py` derives statuses and schemas from it.
"""

import inspect
import types
import typing
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, Required, TypedDict, Unpack

import msgspec

from api.http.answers import is_page, returned_by
from api.http.bodies import MAX_BODY
from api.http.errors import status_of
from api.http.who import Who
from api.settings import Limit
from custody.kit.callers import Caller, Origin
from custody.kit.described import described
from custody.kit.errors import CustodyError
from custody.kit.refs import AgentRef
from custody.kit.shapes import (
    AccountId,
    AgentId,
    ClientId,
    DomainInPath,
    PolicySetId,
    ProviderId,
    ProviderName,
    TenantId,
    Uuid,
)
from custody.ports import Ports
from custody.protocol.command import declaration_of

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Media = Literal["text/html", "text/plain", "text/csv", "text/event-stream", "application/x-ndjson", "text/xml"]
Handler = Callable[..., Awaitable[Any]]
PATH_SHAPES: dict[str, Any] = {
    "agent": Annotated[AgentId, described("The agent.")],
    "tenant_id": Annotated[TenantId, described("The tenant.")],
    "own_tenant_id": Annotated[TenantId, described("The tenant of the session.")],
    "joined_tenant_id": Annotated[TenantId, described("The tenant to join.")],
    "invitation_id": Annotated[Uuid, described("The invitation.")],
    "identity_id": Annotated[Uuid, described("The linked identity.")],
    "linked_account_id": Annotated[Uuid, described("The linked wallet.")],
    "tx_id": Annotated[Uuid, described("The transaction.")],
    "action_id": Annotated[Uuid, described("The wallet action.")],
    "approval_id": Annotated[Uuid, described("The approval.")],
    "intent_id": Annotated[Uuid, described("The intent.")],
    "secret_id": Annotated[Uuid, described("The secret.")],
    "route_id": Annotated[Uuid, described("The credential route.")],
    "payment_route_id": Annotated[Uuid, described("The payment route.")],
    "policy_set_id": Annotated[PolicySetId, described("The policy set; `tenant`: that of every agent.")],
    "session_id": Annotated[Uuid, described("The session.")],
    "passkey_id": Annotated[Uuid, described("The passkey.")],
    "key_id": Annotated[Uuid, described("The request-signing key.")],
    "api_key_id": Annotated[Uuid, described("The API key.")],
    "app_secret_id": Annotated[Uuid, described("The app client's secret.")],
    "user_id": Annotated[Uuid, described("The user.")],
    "client_id": Annotated[ClientId, described("The app client.")],
    "webhook_id": Annotated[Uuid, described("The endpoint.")],
    "delivery_id": Annotated[Uuid, described("The delivery.")],
    "channel_id": Annotated[Uuid, described("The notification channel.")],
    "notice_id": Annotated[Uuid, described("The message.")],
    "signer_id": Annotated[Uuid, described("The signer.")],
    "quorum_id": Annotated[Uuid, described("The key quorum.")],
    "account_id": Annotated[AccountId, described("The account.")],
    "aggregation_id": Annotated[AccountId, described("The aggregation.")],
    "oauth_provider": Annotated[ProviderId, described("The provider: `google`, `discord` or `twitter`.")],
    "oidc_provider": Annotated[
        ProviderName, described("The provider's id, or `<tenantId>~<id>`, which names the tenant too.")
    ],
    "sign_on_tenant": Annotated[TenantId, described("The tenant.")],
    "domain": Annotated[DomainInPath, described("The e-mail domain, in lower case.")],
}
# How a path parameter is spelled in the contract.
SPELLED = {
    "agent": "agentId",
    "tx_id": "txId",
    "action_id": "actionId",
    "approval_id": "id",
    "intent_id": "intentId",
    "tenant_id": "id",
    "own_tenant_id": "tenantId",
    "joined_tenant_id": "tenantId",
    "invitation_id": "invitationId",
    "identity_id": "id",
    "linked_account_id": "accountId",
    "secret_id": "id",
    "route_id": "id",
    "payment_route_id": "id",
    "policy_set_id": "id",
    "session_id": "id",
    "passkey_id": "id",
    "key_id": "keyId",
    "api_key_id": "keyId",
    "app_secret_id": "secretId",
    "user_id": "userId",
    "client_id": "clientId",
    "webhook_id": "id",
    "delivery_id": "id",
    "channel_id": "id",
    "notice_id": "id",
    "signer_id": "signerId",
    "quorum_id": "quorumId",
    "account_id": "accountId",
    "aggregation_id": "aggregationId",
    "oauth_provider": "provider",
    "oidc_provider": "provider",
    "sign_on_tenant": "tenantId",
    "domain": "domain",
}


class Options(TypedDict, total=False):
    """The keywords of a route's declaration; `Declared` says what each means and what holds without it."""

    who: Required[Who]
    status: int
    fails: tuple[type[CustodyError], ...]
    hardened: bool
    unsigned: bool
    unlimited: bool
    limit: Limit | None
    queues: bool
    private: bool
    shows_secret: bool
    raw_answer: bool
    media: Media | None
    media_too: Media | None
    oauth: bool
    both_spellings: bool
    form_too: bool
    form_only: bool
    browsed: bool
    lenient: type[CustodyError] | None
    max_body: int
    headers_too: tuple[str, ...]


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of a route."""

    who: Who
    # Of a success whose kind has no status of its own.
    status: int = 200
    fails: tuple[type[CustodyError], ...] = ()
    # A sensitive change: its times and signature are checked, its Idempotency-Key is kept, and it is logged.
    hardened: bool
    # It may come without a signature even where the deployment wants one; one that is there is checked all the same.
    unsigned: bool = False
    # No rate limit counts it: a load balancer asks every second and has no credential.
    unlimited: bool = False
    # A limit of its own, narrower than the general one, counted by address.
    limit: Limit | None = None
    # Requests with the same Idempotency-Key wait for each other in their agent's queue instead of being refused.
    queues: bool = False
    # Caches must not keep the answer, even where anyone may call.
    private: bool = False
    shows_secret: bool = False
    # The answer's shape is another standard's, so it stands outside the envelope.
    raw_answer: bool = False
    # What is answered instead of JSON, and what the caller may choose instead of that.
    media: Media | None = None
    media_too: Media | None = None
    # Takes fields in both spellings, and refuses a bad request as RFC 6749 5.2 says.
    oauth: bool = False
    # Takes fields in both spellings.
    both_spellings: bool = False
    # Takes a form as well as JSON, as OAuth's clients send it.
    form_too: bool = False
    # Takes nothing but a form, which a page of another site sends.
    form_only: bool = False
    # People come here in a browser: a refusal is a page where they ask for HTML.
    browsed: bool = False
    # Refuses a retired field with this error instead of the general one.
    lenient: type[CustodyError] | None = None
    # Bytes; a longer body is refused before it is read.
    max_body: int = MAX_BODY
    # Headers of a success that only some routes have, by their names in `api/http/contract/headers.py`.
    headers_too: tuple[str, ...] = ()


class Endpoint(Declared, frozen=True, kw_only=True):
    """One route: what it declares, where it is, and what its handler's signature and docstring say."""

    method: Method
    path: str
    # The path as the contract spells it: `/vault/{agentId}/sign`.
    contract_path: str
    tag: str
    handler: Handler
    # Status to type of `data`; the first is the usual one.
    returns: dict[int, Any]
    # Whether it answers a page of rows.
    listed: bool
    path_names: tuple[str, ...]
    body: Any
    query: Any
    headers: Any
    cookies: Any
    arguments: tuple[str, ...]
    summary: str
    description: str

    @property
    def reads_body(self) -> bool:
        """True if a body is read: always for a change, so that no field sent is dropped silently.

        A retired route says so whatever comes with the request.
        """
        return self.method != "GET" and 410 not in self.returns

    @property
    def refuses(self) -> tuple[type[CustodyError], ...]:
        """The errors that its use case or its command may refuse it with."""
        return self.fails if self.who.asks is None else (*self.fails, *declaration_of(self.who.asks).refuses)

    @property
    def by_offset(self) -> bool:
        """True if it answers pages that only an offset names."""
        fields = getattr(self.query, "__struct_fields__", ())
        return "offset" in fields and "cursor" not in fields


class Routes:
    """The routes of one file, all below one prefix.

    Every change is hardened. Sign-in declares `hardened=False`: its requests bring their own proof.
    """

    def __init__(self, prefix: str, *, tag: str, hardened: bool = True) -> None:
        self.prefix = prefix
        self.tag = tag
        self.hardened = hardened
        self.endpoints: list[Endpoint] = []

    def get(self, *paths: str, **options: Unpack[Options]) -> Callable[[Handler], Handler]:
        """Declare a GET."""
        return self._declare("GET", paths, options)

    def post(self, *paths: str, **options: Unpack[Options]) -> Callable[[Handler], Handler]:
        """Declare a POST."""
        return self._declare("POST", paths, options)

    def put(self, *paths: str, **options: Unpack[Options]) -> Callable[[Handler], Handler]:
        """Declare a PUT."""
        return self._declare("PUT", paths, options)

    def patch(self, *paths: str, **options: Unpack[Options]) -> Callable[[Handler], Handler]:
        """Declare a PATCH."""
        return self._declare("PATCH", paths, options)

    def delete(self, *paths: str, **options: Unpack[Options]) -> Callable[[Handler], Handler]:
        """Declare a DELETE."""
        return self._declare("DELETE", paths, options)

    def _declare(self, method: Method, paths: tuple[str, ...], options: Options) -> Callable[[Handler], Handler]:
        declared: Options = {"hardened": self.hardened and method != "GET", **options}

        def declare(handler: Handler) -> Handler:
            for path in paths:
                self.endpoints.append(_endpoint(method, self.prefix + path, self.tag, handler, declared))
            return handler

        return declare


def _endpoint(method: Method, path: str, tag: str, handler: Handler, declared: Options) -> Endpoint:
    hints = typing.get_type_hints(handler, include_extras=True)
    names = tuple(part[1:-1] for part in path.split("/") if part.startswith("<"))
    body = query = headers = cookies = None
    arguments: list[str] = []
    for name in inspect.signature(handler).parameters:
        kind = _kind_of(name, hints[name], names)
        arguments.append(kind if kind != "path" else f"path:{name}")
        if kind == "body":
            body = hints[name]
        elif kind == "query":
            query = hints[name]
        elif kind == "headers":
            headers = hints[name]
        elif kind == "cookies":
            cookies = hints[name]
    summary, _, rest = inspect.cleandoc(handler.__doc__ or "").partition("\n")
    if not summary:
        raise TypeError(f"{method} {path} needs a docstring: it is the contract's summary")
    return Endpoint(
        method=method,
        path=path,
        contract_path=_contract_path(path, names),
        tag=tag,
        handler=handler,
        # A retired route answers nothing but its one refusal.
        returns=returned_by(hints["return"], declared.get("status", 200)) or {status_of(declared["fails"][0]()): None},
        listed=is_page(hints["return"]),
        path_names=names,
        body=body,
        query=query,
        headers=headers,
        cookies=cookies,
        arguments=tuple(arguments),
        summary=summary,
        description=rest.strip(),
        **declared,
    )


def _contract_path(path: str, names: tuple[str, ...]) -> str:
    for name in names:
        path = path.replace(f"<{name}>", "{" + SPELLED.get(name, name) + "}")
    return path


def _kind_of(name: str, hint: Any, path_names: tuple[str, ...]) -> str:
    if hint is Ports:
        return "ports"
    if hint is AgentRef:
        return "agent"
    if hint is Origin:
        return "origin"
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if all(inspect.isclass(part) and issubclass(part, Caller) for part in parts):
        return "caller"
    if name in path_names:
        return "path"
    if name in {"body", "query", "headers", "cookies"}:
        return name
    raise TypeError(f"a handler's parameter {name} is neither ports, caller, path, headers, cookies, body nor query")
