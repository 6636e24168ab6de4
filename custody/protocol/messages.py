"""Every message of the signer's protocol, on one page. Normative text: docs/protocol-signer.md.

Strict: an unknown field, message or version is refused. Messages that act for a caller carry the caller's own
credential as `proof`; the signer checks it itself and trusts nobody's word about who asks.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.chains.orders import EvmOrder, EvmPrepared, SolanaOrder, SolanaPrepared, TypedDataOrder
from custody.credentials.types import RouteFields
from custody.kit.callers import IdempotencyKey, Origin, Proof
from custody.kit.shapes import AgentId, DisplayName, TenantId, Uuid
from custody.policies.types import PolicyRule, Result

VERSION = 1
MAX_FRAME = 1024 * 1024
# Characters; the bound that counts, 64 KiB of UTF-8, is checked where the value is sealed.
SecretValue = Annotated[str, Meta(min_length=1, max_length=65_536)]


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """A message or an answer; the tag is its name."""


# ---- from the api, with a proof


class CreateTenant(_Message, frozen=True):
    """Platform key. `api_key` None: the signer makes one and shows it once; else a raw key, or its SHA-256 in hex."""

    id: TenantId
    name: DisplayName
    webhook_url: str | None = None
    api_key: str | None = None


class DeleteTenant(_Message, frozen=True):
    """Platform key. Everything the tenant has goes with it."""

    id: TenantId


class PutJudgingConfig(_Message, frozen=True):
    """Tenant key. The whole document, and apart from it the part that the signer judges by, which it seals."""

    document: str
    judging: dict[str, Any]


class NewAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One agent to create."""

    id: AgentId
    name: DisplayName
    platform_id: DisplayName | None = None


class CreateAgents(_Message, frozen=True):
    """Tenant key. Up to 100; those whose id is taken are left out of the answer."""

    agents: Annotated[list[NewAgent], Meta(max_length=100)]
    policies: list[PolicyRule] = []


class DeleteAgent(_Message, frozen=True):
    """Tenant key."""

    agent: AgentId


class ReplacePolicies(_Message, frozen=True):
    """Tenant key, or the agent's own token, which may only tighten."""

    agent: AgentId
    policies: list[PolicyRule]


class MintAgentToken(_Message, frozen=True):
    """Tenant key."""

    agent: AgentId
    ttl_seconds: Annotated[int, Meta(ge=1, le=2_592_000)]
    expires_in: str


class RevokeAgentTokens(_Message, frozen=True):
    """Tenant key. Every token of the agent dies."""

    agent: AgentId


class CreateSecret(_Message, frozen=True):
    """Tenant key. The value is sealed at once; nothing gives it back but `RevealForRoute`."""

    name: DisplayName
    value: SecretValue
    description: str | None = None
    expires_at: datetime | None = None

    def __repr__(self) -> str:
        return "CreateSecret()"


class RotateSecret(_Message, frozen=True):
    """Tenant key. The next version; the value before it is gone. `rotate`: which of the two routes was called."""

    secret: Uuid
    value: SecretValue
    rotate: bool

    def __repr__(self) -> str:
        return f"RotateSecret({self.secret})"


class DeleteSecret(_Message, frozen=True):
    """Tenant key. The value goes for good, the row stays; routes that name it then fail."""

    secret: Uuid


class CreateCredentialRoute(_Message, frozen=True):
    """Tenant key. A route decides where a secret goes, so the signer seals it."""

    secret: Uuid
    fields: RouteFields


class ChangeCredentialRoute(_Message, frozen=True):
    """Tenant key. `changes` names the fields to change, spelled as in `RouteFields`; its secret never changes."""

    route: Uuid
    changes: dict[str, Any]


class DeleteCredentialRoute(_Message, frozen=True):
    """Tenant key."""

    route: Uuid


class SignEvm(_Message, frozen=True):
    """Agent token. `tx_id` is fresh; the same one again gives the same answer."""

    agent: AgentId
    tx_id: Uuid
    order: EvmOrder
    prepared: EvmPrepared | None = None


class SignTypedData(_Message, frozen=True):
    """Agent token."""

    agent: AgentId
    tx_id: Uuid
    order: TypedDataOrder


class SignSolana(_Message, frozen=True):
    """Agent token."""

    agent: AgentId
    tx_id: Uuid
    order: SolanaOrder
    prepared: SolanaPrepared | None = None


class Approve(_Message, frozen=True):
    """Tenant key. Names the approval, or the agent and order it belongs to."""

    approval_id: Uuid | None = None
    agent: AgentId | None = None
    tx_id: Uuid | None = None
    digest: str | None = None
    evm: EvmPrepared | None = None
    solana: SolanaPrepared | None = None


class Deny(_Message, frozen=True):
    """Tenant key."""

    approval_id: Uuid | None = None
    agent: AgentId | None = None
    tx_id: Uuid | None = None
    digest: str | None = None
    reason: str | None = None


class RevealForRoute(_Message, frozen=True):
    """On `reveal.sock` alone, with an agent's token: the value that one credential route of its tenant injects."""

    route: Uuid


# ---- without a proof


class PublicKeys(_Message, frozen=True):
    """The public halves of the token keys, as a JWK set."""


class Status(_Message, frozen=True):
    """Liveness and counters."""


class BroadcastOutcome(_Message, frozen=True):
    """What a node said of a signed order: that it has it, or that it refused it (which changes nothing)."""

    tenant: TenantId
    tx_id: Uuid
    outcome: Literal["sent", "refused"]


# ---- answers


class Signed(_Message, frozen=True):
    """Committed and released. `raw` are the bytes for the node, `signature` what the caller asked for."""

    tx_id: str
    kind: str
    tx_hash: str | None
    signature: str
    raw: bytes | None
    chain_id: int | None
    caip2: str | None
    broadcast: bool
    approval_id: str | None = None
    resolved_at: str | None = None


class Queued(_Message, frozen=True):
    """A person must decide."""

    tx_id: str
    approval_id: str
    results: list[Result]
    reason: str


class Refused(_Message, frozen=True):
    """A hard rule says no."""

    tx_id: str
    results: list[Result]
    reason: str
    rate_limited: bool = False
    retry_after: int | None = None


class NeedsPreparation(_Message, frozen=True):
    """The order would be signed and broadcast, but no node was asked for its nonce and fees. Nothing was written."""


class Done(_Message, frozen=True):
    """Any other story that succeeded."""

    data: dict[str, Any]


class Revealed(_Message, frozen=True):
    """The answer to `RevealForRoute`: the value, and the route as the signer sealed it, which is what counts."""

    secret_id: str
    secret_version: int
    fields: RouteFields
    value: bytes
    expires_at: datetime | None = None

    def __repr__(self) -> str:
        return f"Revealed({self.secret_id}, {self.secret_version})"


class Failed(_Message, frozen=True):
    """What did not happen, as one of a few kinds, with a sentence for people and a code for programs."""

    kind: Literal[
        "BadOrder", "BadProof", "Forbidden", "NotFound", "Conflict", "Frozen", "Stale", "Unavailable", "Internal"
    ]
    code: str
    message: str
    context: dict[str, Any] = {}


Signing = SignEvm | SignTypedData | SignSolana
Body = (
    CreateTenant | DeleteTenant | PutJudgingConfig | CreateAgents | DeleteAgent | ReplacePolicies | MintAgentToken
    | RevokeAgentTokens | CreateSecret | RotateSecret | DeleteSecret | CreateCredentialRoute | ChangeCredentialRoute
    | DeleteCredentialRoute | RevealForRoute | SignEvm | SignTypedData | SignSolana | Approve | Deny | PublicKeys
    | Status | BroadcastOutcome
)  # fmt: skip
Outcome = Signed | Queued | Refused | NeedsPreparation | Done | Revealed | Failed


class Hello(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first frame of a connection, in both directions."""

    version: int
    process: str


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One frame to the signer. `n` pairs it with its reply; `deadline_ms` is how long the asker will wait."""

    v: int
    n: int
    deadline_ms: int
    origin: Origin
    body: Body
    proof: Proof | None = None
    idempotency: IdempotencyKey | None = None


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One frame from the signer. `replayed`: the answer is the one an earlier request with the same key got."""

    n: int
    outcome: Outcome
    replayed: bool = False
