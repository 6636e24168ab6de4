"""Every message of the signer's protocol, on one page. Normative text: docs/protocol-signer.md.

Strict: an unknown field, message or version is refused. Messages that act for a caller carry the caller's own
credential as `proof`; the signer checks it itself and trusts nobody's word about who asks.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.chains.orders import EvmOrder, EvmPrepared, Question, SolanaOrder, SolanaPrepared, TypedDataOrder
from custody.credentials.types import RouteFields
from custody.kit.callers import IdempotencyKey, Origin, Proof
from custody.kit.shapes import AgentId, DecimalAmount, Digest, DisplayName, HashOrAddress, Role, TenantId, Uuid
from custody.policies.types import PolicyRule, Result

VERSION = 1
MAX_FRAME = 1024 * 1024
# Characters; the bound that counts, 64 KiB of UTF-8, is checked where the value is sealed.
Code = Annotated[str, Meta(min_length=1, max_length=64)]
SecretValue = Annotated[str, Meta(min_length=1, max_length=65_536)]
Description = Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00]*\Z")]
EventNames = Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(min_length=1, max_length=32)]
MaxRetries = Annotated[int, Meta(ge=0, le=10)]
# A day at most: ten retries are over before what is sent is forgotten.
RetryBackoffMs = Annotated[int, Meta(ge=1000, le=86_400_000)]


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """A message or an answer; the tag is its name."""


# ---- from the api, with a proof


class CreateTenant(_Message, frozen=True):
    """Platform key, or a session, whose person becomes the owner.

    `api_key` None: the signer makes one and shows it once; else a raw key, or its SHA-256 in hex.
    """

    id: TenantId
    name: DisplayName
    webhook_url: str | None = None
    api_key: str | None = None

    def __repr__(self) -> str:
        return "CreateTenant()"


class DeleteTenant(_Message, frozen=True):
    """Platform key. Everything the tenant has goes with it."""

    id: TenantId


class PutConfig(_Message, frozen=True):
    """Tenant side. The whole document, and apart from it the part that the signer judges by, which it seals.

    `judging["mfa"]` absent and `app_clients` None: they stay as they are. Only a person may change them.
    """

    document: str
    judging: dict[str, Any]
    app_clients: list[dict[str, Any]] | None = None


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


class ReplaceEvm(_Message, frozen=True):
    """Agent token. The order that `replaces` is, with its nonce and higher fees; None: as much higher as is needed."""

    agent: AgentId
    tx_id: Uuid
    replaces: Uuid
    max_fee_per_gas: DecimalAmount | None = None
    max_priority_fee_per_gas: DecimalAmount | None = None
    prepared: EvmPrepared | None = None


class Simulate(_Message, frozen=True):
    """Agent token or a tenant's credential. What signing this would come to; nothing is written, no key is opened."""

    agent: AgentId
    question: Question
    evm: EvmPrepared | None = None
    solana: SolanaPrepared | None = None


class IssueReceipt(_Message, frozen=True):
    """Agent token or a tenant's credential. A signed statement about one signature, from what was recorded with it."""

    agent: AgentId
    tx_id: Uuid


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


# ---- people: without a proof, because the message brings it


class NewNonce(_Message, frozen=True):
    """A nonce for a wallet's message; single use, five minutes."""


class SignInWithWallet(_Message, frozen=True):
    """An EIP-4361 message with its signature. `by_contract`: its contract agreed (EIP-1271), by the api's word.

    Fails with `contract_needed`, once for a nonce, where nothing is wrong but that the wallet did not sign itself.
    """

    message: Annotated[str, Meta(max_length=8192)]
    signature: Annotated[str, Meta(max_length=16_384)]
    tenant: TenantId | None = None
    by_contract: bool = False

    def __repr__(self) -> str:
        return "SignInWithWallet()"


class NewEmailCode(_Message, frozen=True):
    """A code for an address, which the api mails. The answer has none when the address asked too often."""

    email: Annotated[str, Meta(max_length=254)]


class SignInWithEmail(_Message, frozen=True):
    """The code that was mailed."""

    email: Annotated[str, Meta(max_length=254)]
    code: Code
    tenant: TenantId | None = None

    def __repr__(self) -> str:
        return "SignInWithEmail()"


class NewSignInChallenge(_Message, frozen=True):
    """What a passkey signs to sign in; the answer is WebAuthn's JSON."""


class SignInWithPasskey(_Message, frozen=True):
    """A passkey's assertion."""

    credential: dict[str, Any]
    tenant: TenantId | None = None

    def __repr__(self) -> str:
        return "SignInWithPasskey()"


class RefreshSession(_Message, frozen=True):
    """The refresh token, which this uses up."""

    refresh_token: Annotated[str, Meta(max_length=512)]

    def __repr__(self) -> str:
        return "RefreshSession()"


class NewDeviceCode(_Message, frozen=True):
    """A device asks to be signed in by somebody else's hand."""

    tenant: TenantId
    client: str | None = None
    native_kind: Literal["bundle", "package"] | None = None
    native_id: str | None = None


class PollDeviceCode(_Message, frozen=True):
    """The device asks whether it was approved; `Done` has a session or an `error` of RFC 8628."""

    device_code: Annotated[str, Meta(max_length=128)]
    client: str | None = None
    native_kind: Literal["bundle", "package"] | None = None
    native_id: str | None = None

    def __repr__(self) -> str:
        return "PollDeviceCode()"


# ---- people: with their session


class EndSession(_Message, frozen=True):
    """Revoke one of the person's own sessions; None: this one."""

    session: Uuid | None = None


class SwitchTenant(_Message, frozen=True):
    """A token for another tenant that the person is a member of."""

    tenant: TenantId


class LookAtDevice(_Message, frozen=True):
    """What a device that shows this code asks for."""

    user_code: Annotated[str, Meta(max_length=32)]


class DecideDevice(_Message, frozen=True):
    """Let the device that shows this code in, or not."""

    user_code: Annotated[str, Meta(max_length=32)]
    approve: bool


class EnrolTotp(_Message, frozen=True):
    """A new authenticator seed; it counts once a code of it was shown."""


class ConfirmTotp(_Message, frozen=True):
    """The first code of the new seed. The answer is a session, with recovery codes if there were none."""

    code: Code

    def __repr__(self) -> str:
        return "ConfirmTotp()"


class RemoveTotp(_Message, frozen=True):
    """The authenticator no longer counts."""


class NewRecoveryCodes(_Message, frozen=True):
    """Ten new codes; the older ones are gone."""


class EnrolSms(_Message, frozen=True):
    """A phone number; the answer has the code that the api sends to it."""

    phone: Annotated[str, Meta(max_length=16)]


class ConfirmSms(_Message, frozen=True):
    """The code that was sent to the new number; the answer is a session."""

    code: Code

    def __repr__(self) -> str:
        return "ConfirmSms()"


class NewSmsCode(_Message, frozen=True):
    """A code for the enrolled number; the answer has it, and the number, for the api to send."""


class NewPasskeyChallenge(_Message, frozen=True):
    """What a passkey signs to be registered, or to step up; the answer is WebAuthn's JSON."""

    purpose: Literal["register", "step_up"]


class RegisterPasskey(_Message, frozen=True):
    """A new passkey with its attestation."""

    credential: dict[str, Any]
    name: DisplayName | None = None

    def __repr__(self) -> str:
        return "RegisterPasskey()"


class RemovePasskey(_Message, frozen=True):
    """One of the person's own."""

    passkey: Uuid


class StepUp(_Message, frozen=True):
    """A second factor: a code, or a passkey's assertion. The answer is a session with fresh MFA."""

    method: Literal["totp", "recovery", "sms", "passkey"]
    code: Code | None = None
    credential: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"StepUp({self.method})"


# ---- administration of a tenant


class PutMember(_Message, frozen=True):
    """Platform key. Make a user a member, or change the role; it counts at once, for living sessions too."""

    tenant: TenantId
    user: Uuid
    role: Role


class RemoveMember(_Message, frozen=True):
    """Platform key. The user's sessions no longer reach the tenant."""

    tenant: TenantId
    user: Uuid


class PutAppClients(_Message, frozen=True):
    """Session. App clients as documents: only new ones, one by one made or replaced, or the whole list."""

    clients: list[dict[str, Any]]
    mode: Literal["create", "upsert", "replace_all"]


class DeleteAppClient(_Message, frozen=True):
    """Session. Its secrets go with it."""

    client: str


class NewAppSecret(_Message, frozen=True):
    """Session. Shown once; the one before it serves for another 24 hours."""

    client: str


class RevokeAppSecret(_Message, frozen=True):
    """Session. It ends at once."""

    client: str
    secret: Uuid


class NewSigningKey(_Message, frozen=True):
    """Session. Shown once; those before it serve for another seven days."""


class RevokeSigningKey(_Message, frozen=True):
    """Session. It ends at once."""

    key: Uuid


class Freeze(_Message, frozen=True):
    """Tenant key or session. Nothing of the agent (None: of the tenant) is signed until it is unfrozen."""

    agent: AgentId | None = None
    reason: str | None = None


class Unfreeze(_Message, frozen=True):
    """Session."""

    agent: AgentId | None = None


class CheckRequestSignature(_Message, frozen=True):
    """Any proof, or none. Whether `X-Service-Signature` fits the request, and has not been used before."""

    method: str
    path: str
    timestamp: str | None
    expires_at: str | None
    idempotency_key: str
    body_sha256: Digest
    signature: Annotated[str, Meta(max_length=1024)]
    key_id: str | None = None
    signer_id: str | None = None

    def __repr__(self) -> str:
        return "CheckRequestSignature()"


# ---- webhooks


class CreateWebhook(_Message, frozen=True):
    """Session. An endpoint of the tenant; its secret is shown once. `events` None: all there are, later ones too."""

    url: Annotated[str, Meta(max_length=2048)]
    events: EventNames | None = None
    description: Description | None = None
    max_retries: MaxRetries = 5
    retry_backoff_ms: RetryBackoffMs = 60_000


class ChangeWebhook(_Message, frozen=True):
    """Session. What is left out stays."""

    webhook: Uuid
    url: Annotated[str, Meta(max_length=2048)] | UnsetType = UNSET
    events: EventNames | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET
    max_retries: MaxRetries | UnsetType = UNSET
    retry_backoff_ms: RetryBackoffMs | UnsetType = UNSET


class DeleteWebhook(_Message, frozen=True):
    """Session. Its secret goes at once, the row when nothing speaks of it any more."""

    webhook: Uuid


class SendWebhookTest(_Message, frozen=True):
    """Session. One delivery of the event `webhook.test`, tried once."""

    webhook: Uuid


class RetryDelivery(_Message, frozen=True):
    """Session. A failed delivery is due now; what it was tried before still counts."""

    delivery: Uuid


class ReplayDelivery(_Message, frozen=True):
    """Session. The event of a delivery that is over goes out again, as a new delivery."""

    delivery: Uuid


class SignDelivery(_Message, frozen=True):
    """No proof; from the scheduler. The headers with which a delivery to a living, enabled endpoint goes out."""

    tenant: TenantId
    endpoint: Uuid
    delivery: Uuid
    timestamp: Annotated[int, Meta(ge=0)]
    body: bytes

    def __repr__(self) -> str:
        return f"SignDelivery({self.delivery})"


# ---- the operator's commands, with the platform key


class CreatePlatformKey(_Message, frozen=True):
    """A key with these scopes alone, shown once."""

    name: DisplayName
    scopes: Annotated[list[str], Meta(min_length=1, max_length=32)]


class RevokePlatformKey(_Message, frozen=True):
    """It ends at once; the one of the key file can only be changed in the file."""

    key: Uuid


class ListPlatformKeys(_Message, frozen=True):
    """All of them, without what only their holders know."""


class RotateKeys(_Message, frozen=True):
    """One act of giving the master key a new version; a step makes one batch anew and says where the next begins."""

    act: Literal["status", "prepare", "begin", "step", "finish", "retire"]
    table: str | None = None
    after: Annotated[list[str], Meta(max_length=8)] | None = None
    force: bool = False


class AcceptRestore(_Message, frozen=True):
    """Take the present state of the database for true, though this signer has seen a later one."""


# ---- without a proof


class PublicKeys(_Message, frozen=True):
    """The public halves of the token keys, as a JWK set."""


class Status(_Message, frozen=True):
    """Liveness and counters."""


class Expire(_Message, frozen=True):
    """End an approval that nobody decided; it must be due on the database's clock."""

    tenant: TenantId
    approval: Uuid


class SealCheckpoint(_Message, frozen=True):
    """Give audit rows that wait their places in the sealed logs; a bounded number of them."""


class BroadcastOutcome(_Message, frozen=True):
    """A node has the bytes of a signed order."""

    tenant: TenantId
    tx_id: Uuid
    outcome: Literal["sent"]


class ChainOutcome(_Message, frozen=True):
    """What became of a signed order, as a node showed it: from a scheduler alone, and only at final depth.

    `block` and `block_hash` (on Solana: the slot alone) say where; `by` is the hash that took the nonce, if it is ours.
    """

    tenant: TenantId
    tx_id: Uuid
    outcome: Literal["sent", "confirmed", "reverted", "replaced", "expired"]
    block: Annotated[int, Meta(ge=0)] | None = None
    block_hash: HashOrAddress | None = None
    by: HashOrAddress | None = None


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

    def __repr__(self) -> str:
        return "Done()"


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
        "BadOrder", "BadProof", "Forbidden", "NotFound", "Conflict", "Frozen", "TooMany", "Stale", "Unavailable",
        "Internal",
    ]  # fmt: skip
    code: str
    message: str
    context: dict[str, Any] = {}


Signing = SignEvm | SignTypedData | SignSolana
Body = (
    CreateTenant | DeleteTenant | PutConfig | CreateAgents | DeleteAgent | ReplacePolicies | MintAgentToken
    | RevokeAgentTokens | CreateSecret | RotateSecret | DeleteSecret | CreateCredentialRoute | ChangeCredentialRoute
    | DeleteCredentialRoute | RevealForRoute | SignEvm | SignTypedData | SignSolana | ReplaceEvm | Approve | Deny
    | PublicKeys | Status | Expire | SealCheckpoint | BroadcastOutcome | ChainOutcome | NewNonce | SignInWithWallet
    | NewEmailCode | SignInWithEmail | NewSignInChallenge | SignInWithPasskey | RefreshSession | NewDeviceCode
    | PollDeviceCode | EndSession | SwitchTenant | LookAtDevice | DecideDevice | EnrolTotp | ConfirmTotp | RemoveTotp
    | NewRecoveryCodes | EnrolSms | ConfirmSms | NewSmsCode | NewPasskeyChallenge | RegisterPasskey | RemovePasskey
    | StepUp | PutMember | RemoveMember | PutAppClients | DeleteAppClient | NewAppSecret | RevokeAppSecret
    | NewSigningKey | RevokeSigningKey | Freeze | Unfreeze | CheckRequestSignature | CreatePlatformKey
    | RevokePlatformKey | ListPlatformKeys | RotateKeys | AcceptRestore | Simulate | IssueReceipt | CreateWebhook
    | ChangeWebhook | DeleteWebhook | SendWebhookTest | RetryDelivery | ReplayDelivery | SignDelivery
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
