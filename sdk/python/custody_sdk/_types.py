"""Types of what an agent sends and gets: made from sdk/agent.json, never edited."""

from __future__ import annotations

from typing import Any, Final, Literal, NotRequired, TypedDict

# Method and path of each operation.
OPERATIONS: Final[dict[str, tuple[str, str]]] = {
    "getAccount": ("GET", "/agents/{agentId}/account"),
    "getAgent": ("GET", "/agents/{agentId}"),
    "getBalance": ("GET", "/agents/{agentId}/balance"),
    "getBitcoinAddress": ("GET", "/vault/{agentId}/bitcoin/address"),
    "getDashboard": ("GET", "/dashboard/{agentId}"),
    "getMe": ("GET", "/me"),
    "getReceipt": ("GET", "/vault/{agentId}/transactions/{txId}/receipt"),
    "getTransaction": ("GET", "/vault/{agentId}/transactions/{txId}"),
    "listCallableApis": ("GET", "/agents/{agentId}/apis"),
    "listHistory": ("GET", "/vault/{agentId}/history"),
    "listPendingTransactions": ("GET", "/vault/{agentId}/pending"),
    "listPolicies": ("GET", "/agents/{agentId}/policies"),
    "listTokenBalances": ("GET", "/agents/{agentId}/tokens"),
    "listTransactions": ("GET", "/vault/{agentId}/transactions"),
    "payDemand": ("POST", "/vault/{agentId}/x402"),
    "replacePolicies": ("PUT", "/agents/{agentId}/policies"),
    "replaceTransaction": ("POST", "/vault/{agentId}/transactions/{txId}/replace"),
    "sendCalls": ("POST", "/vault/{agentId}/actions/send-calls"),
    "signBitcoinPsbt": ("POST", "/vault/{agentId}/sign-bitcoin-psbt"),
    "signEvmTransaction": ("POST", "/vault/{agentId}/sign"),
    "signMessage": ("POST", "/vault/{agentId}/sign-message"),
    "signSolanaTransaction": ("POST", "/vault/{agentId}/sign-solana"),
    "signTypedData": ("POST", "/vault/{agentId}/sign-typed-data"),
    "simulateOrder": ("POST", "/vault/{agentId}/simulate"),
    "transferFunds": ("POST", "/vault/{agentId}/actions/transfer"),
    "withdrawTransaction": ("POST", "/vault/{agentId}/transactions/{txId}/withdraw"),
}


class Agent(TypedDict):
    """An agent. `frozen_at` and `frozen_reason` are set while it is frozen."""

    id: str
    name: str
    displayName: str | None
    platformId: str | None
    tenantId: str
    walletAddresses: WalletAddresses
    walletAddress: str
    createdAt: str
    frozenAt: str | None
    frozenReason: str | None
    erc8004TokenId: str | None
    previousWallets: list[PreviousWallet]


class AgentAccount(TypedDict):
    """An agent as an account. `capabilities` lists what its wallets can do; empty while it is frozen."""

    id: str
    type: str
    agentId: str
    walletAddress: str
    wallets: list[Wallet]
    portfolio: Portfolio
    capabilities: list[str]
    sponsorship: Sponsorship


class AgentBalance(TypedDict):
    """One wallet's balance on one chain."""

    agentId: str
    walletAddress: str
    balances: Balances


class AgentCard(TypedDict):
    """The agent."""

    id: str
    tenantId: str
    name: str
    walletAddress: str
    createdAt: str


class AgentTokens(TypedDict):
    """The holdings of one wallet on one chain; if no node responded, `native` is null and `note` says why."""

    agentId: str
    walletAddress: str
    chainId: int
    native: NativeFunds | None
    tokens: list[TokenFunds]
    note: NotRequired[str]


class AllowedChainsConfig(TypedDict):
    """One list."""

    chains: list[int | str]
    until: NotRequired[str | None]


class AllowedChainsRule(TypedDict):
    """On which chains orders may be signed. On any other chain an order is refused."""

    type: Literal["allowed-chains"]
    id: NotRequired[str | None]
    enabled: bool
    config: AllowedChainsConfig
    source: NotRequired[Literal["agent", "tenant"]]


class Amount(TypedDict):
    """The amount of one asset that an order moves."""

    asset: str
    symbol: str | None
    decimals: int | None
    amount: str


class ApprovalQuorumConfig(TypedDict):
    """The threshold, the approvers, and the orders that need them."""

    threshold: int
    approvers: list[ApproverConfig]
    above: NotRequired[str | None]
    asset: NotRequired[str | None]
    until: NotRequired[str | None]


class ApprovalQuorumRule(TypedDict):
    """A quorum of named people who must vote, each with their own key. Set by a person alone; only votes loosen it."""

    type: Literal["approval-quorum"]
    id: NotRequired[str | None]
    enabled: bool
    config: ApprovalQuorumConfig
    source: NotRequired[Literal["agent", "tenant"]]


class ApprovedAddressesConfig(TypedDict):
    """One list of either kind."""

    addresses: list[str]
    mode: NotRequired[Literal["blacklist", "whitelist"]]
    until: NotRequired[str | None]


class ApprovedAddressesRule(TypedDict):
    """A list of allowed or of forbidden recipients. An order that pays, empowers or calls anybody else is refused."""

    type: Literal["approved-addresses"]
    id: NotRequired[str | None]
    enabled: bool
    config: ApprovedAddressesConfig
    source: NotRequired[Literal["agent", "tenant"]]


class ApproverConfig(TypedDict):
    """One named person, and the keys by which their votes count."""

    userId: str
    keys: list[str]


class AssetSpend(TypedDict):
    """The spending of one asset, by calendar period: the sum of transfers, finite approvals and rent."""

    asset: str
    symbol: str | None
    decimals: int | None
    today: str
    thisWeek: str
    thisMonth: str


class Authorized(TypedDict):
    """By whom an order was authorised, as its receipt and its audit row say it too."""

    quorum: str | None
    signers: list[str]
    policyIds: list[str]


class AutoApproveThresholdConfig(TypedDict):
    """The amount is in the smallest unit of the asset."""

    threshold: str
    asset: NotRequired[str | None]
    until: NotRequired[str | None]


class AutoApproveThresholdRule(TypedDict):
    """Up to this amount of one asset no person is asked. An order above it is queued, never refused."""

    type: Literal["auto-approve-threshold"]
    id: NotRequired[str | None]
    enabled: bool
    config: AutoApproveThresholdConfig
    source: NotRequired[Literal["agent", "tenant"]]


class Balances(TypedDict):
    """A native balance in the smallest unit, and formatted for reading."""

    native: str
    nativeFormatted: str
    chainId: int
    symbol: str


class BitcoinAddress(TypedDict):
    """One address, the key that spends from it, and output descriptors (BIP-380) of it and of its whole account."""

    walletScope: str
    address: str
    addressType: str
    network: str
    publicKey: str
    derivationPath: str
    fingerprint: str
    accountXpub: str
    descriptor: str
    receiveDescriptor: str
    changeDescriptor: str
    addressDescriptor: str


class Budget(TypedDict):
    """A rolling limit and its remainder, from the ledger that enforces it."""

    policyId: str
    window: Literal["day", "total", "week"]
    asset: str
    limit: str
    spent: str
    remaining: str


class CallableApi(TypedDict):
    """An API that an agent may call through the proxy, which puts in what the API wants; the agent needs no key."""

    hostPattern: str
    pathPattern: str
    method: str
    enabled: bool
    costMicroUsd: int
    maxMicroUsd: int
    pays: bool


class CallsOrder(TypedDict):
    """Up to 16 calls that are judged as one, and become as many transactions with consecutive nonces."""

    calls: list[OneCall]
    chainId: NotRequired[int | None]
    broadcast: NotRequired[bool]
    referenceId: NotRequired[str | None]
    sponsor: NotRequired[bool]


class CircuitBreakerConfig(TypedDict):
    """At least one of the counts is needed."""

    minutes: int
    refused: NotRequired[int | None]
    failed: NotRequired[int | None]
    until: NotRequired[str | None]


class CircuitBreakerRule(TypedDict):
    """So many refusals or failures within some minutes freeze the agent. It judges no order by itself."""

    type: Literal["circuit-breaker"]
    id: NotRequired[str | None]
    enabled: bool
    config: CircuitBreakerConfig
    source: NotRequired[Literal["agent", "tenant"]]


class ConditionConfig(TypedDict):
    """One condition on one argument."""

    arg: str
    op: Literal["eq", "gt", "gte", "in", "lt", "lte", "ne", "notIn"]
    value: NotRequired[str]
    values: NotRequired[list[str]]


class ConstraintConfig(TypedDict):
    """Constraints on one listed call. A call whose recipient or amount is unknown fails a constraint on it."""

    recipientAllowlist: NotRequired[list[str] | None]
    recipientBlocklist: NotRequired[list[str] | None]
    spenderAllowlist: NotRequired[list[str] | None]
    spenderBlocklist: NotRequired[list[str] | None]
    maxAmount: NotRequired[str | None]
    maxNativeValueWei: NotRequired[str | None]
    abi: NotRequired[str]
    where: NotRequired[list[ConditionConfig]]


class ContractAllowlistConfig(TypedDict):
    """One list."""

    contracts: list[EntryConfig]
    until: NotRequired[str | None]


class ContractAllowlistRule(TypedDict):
    """Permitted contract calls, with recipients and amounts. Other calls are refused; a plain payment is no call."""

    type: Literal["contract-allowlist"]
    id: NotRequired[str | None]
    enabled: bool
    config: ContractAllowlistConfig
    source: NotRequired[Literal["agent", "tenant"]]


class Dashboard(TypedDict):
    """The agent at a glance; `balances.evm` is null if no node responds."""

    agent: AgentCard
    balances: dict[str, Balances | None]
    spend: Spend
    budgets: list[Budget]
    policies: list[PolicyRule]
    pendingApprovals: int
    recentTransactions: list[RecentTransaction]
    note: NotRequired[str]


class DelayConfig(TypedDict):
    """The amount is in the smallest unit of the asset."""

    minutes: int
    above: NotRequired[str | None]
    asset: NotRequired[str | None]
    until: NotRequired[str | None]


class DelayRule(TypedDict):
    """An order waits for some minutes, in which a person may deny it; then it is signed by itself. It never refuses."""

    type: Literal["delay"]
    id: NotRequired[str | None]
    enabled: bool
    config: DelayConfig
    source: NotRequired[Literal["agent", "tenant"]]


class EntryConfig(TypedDict):
    """One listed contract. Several entries may name one contract; one that permits is enough."""

    address: str
    selectors: list[str]
    chainId: NotRequired[int | None]
    constraints: NotRequired[dict[str, ConstraintConfig]]
    unread: NotRequired[Literal["allow", "ask"]]
    typedData: NotRequired[list[TypedDataConfig]]


class EvmMessageOrder(TypedDict):
    """A message for the EVM wallet, which signs it as personal_sign does (EIP-191)."""

    chainFamily: Literal["evm"]
    message: NotRequired[str | None]
    raw: NotRequired[str | None]
    chainId: NotRequired[int | None]
    referenceId: NotRequired[str | None]


class EvmOrder(TypedDict):
    """An EVM transaction to sign: built by the signer from these fields, never from raw bytes."""

    to: str
    value: str
    data: NotRequired[str | None]
    chainId: NotRequired[int | None]
    broadcast: NotRequired[bool]
    nonce: NotRequired[int | None]
    gasLimit: NotRequired[str | None]
    maxFeePerGas: NotRequired[str | None]
    maxPriorityFeePerGas: NotRequired[str | None]
    referenceId: NotRequired[str | None]


class EvmQuestion(TypedDict):
    """The simulation of an EVM transaction."""

    kind: Literal["evm"]
    request: EvmOrder


class EvmSigned(TypedDict):
    """A signed EVM transaction; with its bytes if it was not broadcast."""

    txId: str
    txHash: str
    signedTransaction: NotRequired[str | None]


class ExecutedCalls(TypedDict):
    """The batch was executed: one transaction for each call, in their order."""

    actionId: str
    intentId: str
    transactions: list[TransactionOfCalls]
    type: Literal["send_calls"]
    status: Literal["executed"]


class ExternalCheckConfig(TypedDict):
    """Answers are signed; docs/policies.md says how."""

    url: str
    publicKeys: list[str]
    onFailure: NotRequired[Literal["ask", "refuse"]]
    timeoutSeconds: NotRequired[int]
    until: NotRequired[str | None]


class ExternalCheckRule(TypedDict):
    """A service of yours is asked about each order, and its signed answer allows it, asks a person or refuses it."""

    type: Literal["external-check"]
    id: NotRequired[str | None]
    enabled: bool
    config: ExternalCheckConfig
    source: NotRequired[Literal["agent", "tenant"]]


class Fee(TypedDict):
    """The highest possible network fee, in the smallest unit."""

    asset: str
    max: str


class Hours(TypedDict):
    """From the start hour up to, but without, the end hour; a span may pass midnight."""

    start: int
    end: int


class ListedTransaction(TypedDict):
    """A transaction in a list; `data`, `signature` and `signedTransaction` only with `include=data`."""

    id: str
    txId: str
    agentId: str
    kind: Literal["bitcoin", "evm", "evm_message", "solana", "solana_message", "solana_x402", "typed_data", "x402"]
    status: Literal["broadcast", "confirmed", "failed", "pending_approval", "rejected", "signed"]
    statusDetail: str | None
    reason: str | None
    toAddress: str | None
    value: str | None
    chainId: int | None
    caip2: str | None
    nonce: int | None
    txHash: str | None
    settledBy: str | None
    broadcast: bool
    referenceId: str | None
    actionId: str | None
    authorization: Authorized | None
    policyResults: list[Result]
    policyVersion: int
    effects: list[dict[str, Any]]
    replacesTxId: str | None
    createdAt: str
    signedAt: str | None
    broadcastAt: str | None
    confirmedAt: str | None
    data: NotRequired[Any]
    signature: NotRequired[str | None]
    signedTransaction: NotRequired[str | None]


class Me(TypedDict):
    """A credential; fields that its kind does not have are null."""

    kind: Literal["agent_token", "app_client", "platform_key", "session", "tenant_key"]
    tenantId: str | None
    agentId: str | None
    userId: str | None
    role: Literal["admin", "billing", "developer", "member", "owner", "viewer"] | None
    clientId: str | None
    keyId: str | None
    name: str | None
    prefix: str | None
    scopes: list[str] | None
    expiresAt: str | None


class MessageAllowlistConfig(TypedDict):
    """Lists of sites and patterns; none of them means that every message waits for a person."""

    siweDomains: NotRequired[list[str]]
    siwsDomains: NotRequired[list[str]]
    patterns: NotRequired[list[str]]
    until: NotRequired[str | None]


class MessageAllowlistRule(TypedDict):
    """Messages that are signed without a person: sign-ins to listed sites, and texts that fit a pattern."""

    type: Literal["message-allowlist"]
    id: NotRequired[str | None]
    enabled: bool
    config: MessageAllowlistConfig
    source: NotRequired[Literal["agent", "tenant"]]


type MessageOrder = EvmMessageOrder | SolanaMessageOrder


class MessageSigned(TypedDict):
    """A signature of a message."""

    signature: str
    txId: str


class MessageSimulation(TypedDict):
    """The simulation of a message."""

    kind: Literal["message"]
    request: MessageOrder


class NativeFunds(TypedDict):
    """The chain's native coin."""

    symbol: str
    balance: str
    formatted: str


class NativeWorth(TypedDict):
    """The chain's native coin, and its value if a price is known."""

    symbol: str
    formatted: str
    usdValueText: NotRequired[str]


class NewRecipientConfig(TypedDict):
    """Nothing is needed."""

    known: NotRequired[list[str]]
    until: NotRequired[str | None]


class NewRecipientRule(TypedDict):
    """A person approves the first order that pays, empowers or calls an address. It never refuses."""

    type: Literal["new-recipient"]
    id: NotRequired[str | None]
    enabled: bool
    config: NewRecipientConfig
    source: NotRequired[Literal["agent", "tenant"]]


class OneCall(TypedDict):
    """One call of a batch."""

    to: str
    value: NotRequired[str]
    data: NotRequired[str | None]
    gasLimit: NotRequired[str | None]


class PaymentBody(TypedDict):
    """A demand to pay by x402, as an HTTP server, an MCP tool or an A2A agent makes it."""

    demand: dict[str, Any] | str
    resource: NotRequired[str | None]
    referenceId: NotRequired[str | None]


class PaymentSigned(TypedDict):
    """A payment: send the request again with this header, or its value where the demand came in JSON."""

    txId: str
    header: str
    value: str
    asset: str
    amount: str
    expiresAt: str


class Pending(TypedDict):
    """Queued: a person must approve the order before it is signed; nothing needs to be sent again."""

    txId: str
    approvalId: str
    results: list[Result]
    status: Literal["pending_approval"]
    code: Literal["approval_required"]
    releaseAt: str | None


class PendingItem(TypedDict):
    """One item of an agent's list of pending approvals."""

    queueId: str
    status: Literal["pending"]
    requestedAt: str
    transaction: PendingTransaction


class PendingTransaction(TypedDict):
    """The order of a pending approval."""

    id: str
    toAddress: str | None
    value: str | None
    chainId: int | None
    policyResults: list[Result]


# Queued: a person must approve the transfer before it is signed; nothing needs to be sent again.
PendingTransfer = TypedDict(
    "PendingTransfer",
    {
        "id": "str",
        "actionId": "str",
        "type": "Literal['transfer']",
        "agentId": "str",
        "status": "Literal['broadcast', 'failed', 'pending_approval', 'rejected', 'signed']",
        "chainId": "int",
        "caip2": "str",
        "from": "str | None",
        "to": "str",
        "value": "str",
        "token": "str",
        "broadcast": "bool",
        "referenceId": "str | None",
        "txId": "str",
        "txHash": "str | None",
        "policyResults": "list[Result]",
        "createdAt": "str",
        "approvalId": "str",
        "results": "list[Result]",
        "code": "Literal['approval_required']",
        "releaseAt": "str | None",
    },
)


class PolicyRateLimited(TypedDict):
    """A rate-limit rule has no room for another order; send the same request after `Retry-After` seconds."""

    txId: str
    results: list[Result]
    code: Literal["policy_rate_limited"]


class PolicyRefused(TypedDict):
    """A rule refuses the order (`results` says which and why), a person denied it, or the agent withdrew it."""

    txId: str
    results: list[Result]
    code: Literal["approval_denied", "policy_refused", "withdrawn"]


type PolicyRule = (
    SpendingLimitRule
    | ApprovedAddressesRule
    | AutoApproveThresholdRule
    | TimeWindowRule
    | RateLimitRule
    | AllowedChainsRule
    | ContractAllowlistRule
    | ApprovalQuorumRule
    | MessageAllowlistRule
    | PolicySetRule
    | NewRecipientRule
    | DelayRule
    | CircuitBreakerRule
    | ExternalCheckRule
)


class PolicySetConfig(TypedDict):
    """The set of the tenant."""

    policySet: str
    until: NotRequired[str | None]


class PolicySetRule(TypedDict):
    """The rules of a policy set bind the agent besides its own. At most one, always enabled."""

    type: Literal["policy-set"]
    id: NotRequired[str | None]
    enabled: bool
    config: PolicySetConfig
    source: NotRequired[Literal["agent", "tenant"]]


class Portfolio(TypedDict):
    """The agent's holdings on one chain. The total covers assets with a price; absent if none has one."""

    chainId: int
    native: NativeWorth | None
    tokens: list[TokenWorth]
    totalUsdText: NotRequired[str]
    note: NotRequired[str]


class PreviousWallet(TypedDict):
    """A wallet whose key an import replaced. Its key is kept; nothing is signed with it."""

    family: str
    address: str


class ProposedCalls(TypedDict):
    """The batch waits as an intent: a person authorises and executes it; see `/intents`."""

    actionId: str
    intentId: str
    results: list[Result]
    type: Literal["send_calls"]
    status: Literal["pending_approval"]
    code: Literal["approval_required"]


class PsbtOrder(TypedDict):
    """A PSBT whose inputs of one address are signed. Payments are read from its bytes, and it is never broadcast."""

    walletScope: str
    psbtBase64: str
    finalize: NotRequired[bool]
    referenceId: NotRequired[str | None]


class PsbtQuestion(TypedDict):
    """The simulation of a PSBT."""

    kind: Literal["bitcoin"]
    request: PsbtOrder


class PsbtSigned(TypedDict):
    """A signed PSBT; with its transaction, where that was asked for and every input is this wallet's."""

    transactionId: str
    signedPsbtBase64: str
    signedInputs: int
    walletScope: str
    walletAddress: str
    addressType: str
    network: str
    finalizedTxHex: NotRequired[str | None]
    txId: NotRequired[str | None]
    vsize: NotRequired[int | None]
    feeSats: NotRequired[str | None]


type Question = EvmQuestion | TypedDataSimulation | SolanaQuestion | TransferQuestion | PsbtQuestion | MessageSimulation


class RateLimitConfig(TypedDict):
    """At least one of the two is needed."""

    maxTxPerHour: NotRequired[int | None]
    maxTxPerDay: NotRequired[int | None]
    until: NotRequired[str | None]


class RateLimitRule(TypedDict):
    """Limits on orders signed or queued per hour and day. Further orders are refused with 429 and Retry-After."""

    type: Literal["rate-limit"]
    id: NotRequired[str | None]
    enabled: bool
    config: RateLimitConfig
    source: NotRequired[Literal["agent", "tenant"]]


class Receipt(TypedDict):
    """The statement, the Ed25519 signature over its canonical JSON (base64url), and the key's id in the JWK set."""

    receipt: dict[str, Any]
    signature: str
    kid: str


class RecentTransaction(TypedDict):
    """One order in a few words."""

    id: str
    agentId: str
    kind: Literal["bitcoin", "evm", "evm_message", "solana", "solana_message", "solana_x402", "typed_data", "x402"]
    toAddress: str | None
    value: str | None
    moved: list[Amount]
    status: Literal["broadcast", "confirmed", "failed", "pending_approval", "rejected", "signed"]
    chainId: int | None
    txHash: str | None
    createdAt: str


class RejectedCalls(TypedDict):
    """A rule refuses the batch, or its intent ended unexecuted; it keeps its reference: send another with a new one."""

    actionId: str
    txId: str | None
    results: list[Result]
    type: Literal["send_calls"]
    status: Literal["canceled", "expired", "failed", "rejected"]
    code: Literal["approval_denied", "policy_refused"]


# A rule refuses the transfer, a person denied it, or the agent withdrew it; send another with a new reference.
RejectedTransfer = TypedDict(
    "RejectedTransfer",
    {
        "id": "str",
        "actionId": "str",
        "type": "Literal['transfer']",
        "agentId": "str",
        "status": "Literal['broadcast', 'failed', 'pending_approval', 'rejected', 'signed']",
        "chainId": "int",
        "caip2": "str",
        "from": "str | None",
        "to": "str",
        "value": "str",
        "token": "str",
        "broadcast": "bool",
        "referenceId": "str | None",
        "txId": "str",
        "txHash": "str | None",
        "policyResults": "list[Result]",
        "createdAt": "str",
        "results": "list[Result]",
        "code": "Literal['approval_denied', 'policy_refused', 'withdrawn']",
    },
)


class Remaining(TypedDict):
    """A rolling limit and its current remainder, from the ledger that enforces it."""

    policyId: str
    window: Literal["day", "total", "week"]
    asset: str
    limit: str
    spent: str
    remaining: str


class ReplacementFees(TypedDict):
    """The fees of a replacement; if absent, those a node suggests, raised enough to be accepted."""

    maxFeePerGas: NotRequired[str | None]
    maxPriorityFeePerGas: NotRequired[str | None]


class Result(TypedDict):
    """The result of one rule; `policyId` is null for a result of the evaluation itself."""

    type: str
    passed: bool
    reason: str
    policyId: str | None


class Simulated(TypedDict):
    """The outcome of signing the order now. `needed`: requirements still missing, if no rule refuses it."""

    decision: Literal["queue", "refuse", "sign"]
    results: list[Result]
    effects: list[dict[str, Any]]
    fee: Fee | None
    budgets: list[Remaining]
    needed: list[Literal["approval", "funds", "rpc"]]


class SolanaMessageOrder(TypedDict):
    """A message for the Solana wallet, which signs the bytes themselves."""

    chainFamily: Literal["solana"]
    message: NotRequired[str | None]
    raw: NotRequired[str | None]
    chainId: NotRequired[int | None]
    referenceId: NotRequired[str | None]


class SolanaOrder(TypedDict):
    """A serialized Solana transaction, and the caller's statement of what it does; the two must agree."""

    transaction: str
    to: str
    value: str
    chainId: NotRequired[int]
    broadcast: NotRequired[bool]
    referenceId: NotRequired[str | None]


class SolanaQuestion(TypedDict):
    """The simulation of a Solana transaction."""

    kind: Literal["solana"]
    request: SolanaOrder


class SolanaSigned(TypedDict):
    """A signed Solana transaction."""

    txId: str
    signature: str
    broadcast: bool
    chainId: int
    caip2: str
    signedTransaction: NotRequired[str | None]


class Spend(TypedDict):
    """The sums that signed transactions moved, by calendar period: native EVM value, and each asset by itself."""

    today: str
    thisWeek: str
    thisMonth: str
    todayFormatted: str
    thisWeekFormatted: str
    thisMonthFormatted: str
    assets: list[AssetSpend]


class SpendingLimitConfig(TypedDict):
    """Amounts are in the smallest unit of the asset. At least one of the four limits is needed."""

    maxPerTransaction: NotRequired[str | None]
    maxPerTx: NotRequired[str | None]
    maxPerDay: NotRequired[str | None]
    maxPerWeek: NotRequired[str | None]
    maxTotal: NotRequired[str | None]
    asset: NotRequired[str | None]
    maxRentPerDay: NotRequired[str | None]
    alertPercents: NotRequired[list[int]]
    scope: NotRequired[Literal["agent", "set"]]
    until: NotRequired[str | None]


class SpendingLimitRule(TypedDict):
    """Limits on one asset per transaction, day and week, and in all. An order above a limit is refused."""

    type: Literal["spending-limit"]
    id: NotRequired[str | None]
    enabled: bool
    config: SpendingLimitConfig
    source: NotRequired[Literal["agent", "tenant"]]


class Sponsorship(TypedDict):
    """Sponsorship of the fees by another account."""

    enabled: bool


class ThrottledCalls(TypedDict):
    """A rate-limit rule has no room for so many; send the same request after `Retry-After` seconds."""

    actionId: str
    txId: str
    results: list[Result]
    type: Literal["send_calls"]
    status: Literal["rejected"]
    code: Literal["policy_rate_limited"]


# A rate-limit rule has no room for another transfer; send the same request after `Retry-After` seconds.
ThrottledTransfer = TypedDict(
    "ThrottledTransfer",
    {
        "id": "str",
        "actionId": "str",
        "type": "Literal['transfer']",
        "agentId": "str",
        "status": "Literal['broadcast', 'failed', 'pending_approval', 'rejected', 'signed']",
        "chainId": "int",
        "caip2": "str",
        "from": "str | None",
        "to": "str",
        "value": "str",
        "token": "str",
        "broadcast": "bool",
        "referenceId": "str | None",
        "txId": "str",
        "txHash": "str | None",
        "policyResults": "list[Result]",
        "createdAt": "str",
        "results": "list[Result]",
        "code": "Literal['policy_rate_limited']",
    },
)


class TimeWindowConfig(TypedDict):
    """At least one of hours, days, `notBefore` and `notAfter` is needed."""

    allowedHours: NotRequired[list[Hours]]
    allowedDays: NotRequired[list[int]]
    timezone: NotRequired[str]
    notBefore: NotRequired[str | None]
    notAfter: NotRequired[str | None]
    until: NotRequired[str | None]


class TimeWindowRule(TypedDict):
    """At which hours, on which days and between which moments orders may be signed. Otherwise they are refused."""

    type: Literal["time-window"]
    id: NotRequired[str | None]
    enabled: bool
    config: TimeWindowConfig
    source: NotRequired[Literal["agent", "tenant"]]


class TokenFunds(TypedDict):
    """One token. Fields that the token does not report, or reports in an unusable form, are null."""

    address: str
    symbol: str | None
    balance: str | None
    formatted: str | None
    decimals: NotRequired[int]
    note: NotRequired[str]


class TokenWorth(TypedDict):
    """One token, and its value if a price is known."""

    address: str
    symbol: str | None
    balance: str | None
    formatted: str | None
    usdValueText: NotRequired[str]
    note: NotRequired[str]


class Transaction(TypedDict):
    """The same, with the requested and the signed data."""

    id: str
    txId: str
    agentId: str
    kind: Literal["bitcoin", "evm", "evm_message", "solana", "solana_message", "solana_x402", "typed_data", "x402"]
    status: Literal["broadcast", "confirmed", "failed", "pending_approval", "rejected", "signed"]
    statusDetail: str | None
    reason: str | None
    toAddress: str | None
    value: str | None
    chainId: int | None
    caip2: str | None
    nonce: int | None
    txHash: str | None
    settledBy: str | None
    broadcast: bool
    referenceId: str | None
    actionId: str | None
    authorization: Authorized | None
    policyResults: list[Result]
    policyVersion: int
    effects: list[dict[str, Any]]
    replacesTxId: str | None
    createdAt: str
    signedAt: str | None
    broadcastAt: str | None
    confirmedAt: str | None
    data: Any
    signature: str | None
    signedTransaction: str | None
    finalizedTxHex: NotRequired[str]
    vsize: NotRequired[int]
    feeSats: NotRequired[str]


class TransactionOfCalls(TypedDict):
    """The transaction that one call became."""

    txId: str
    txHash: str | None
    status: Literal["broadcast", "confirmed", "failed", "pending_approval", "rejected", "signed"]


class TransactionPage(TypedDict):
    """A page of transactions; it ends before its limit where it reaches 4 MiB."""

    transactions: list[ListedTransaction]
    total: int
    totalIsEstimate: bool
    limit: int
    offset: int
    nextCursor: str | None


# A transfer and what became of it.
TransferAction = TypedDict(
    "TransferAction",
    {
        "id": "str",
        "actionId": "str",
        "type": "Literal['transfer']",
        "agentId": "str",
        "status": "Literal['broadcast', 'failed', 'pending_approval', 'rejected', 'signed']",
        "chainId": "int",
        "caip2": "str",
        "from": "str | None",
        "to": "str",
        "value": "str",
        "token": "str",
        "broadcast": "bool",
        "referenceId": "str | None",
        "txId": "str",
        "txHash": "str | None",
        "policyResults": "list[Result]",
        "createdAt": "str",
    },
)


class TransferOrder(TypedDict):
    """A payment in a chain's own coin, or in an ERC-20 token; the signer builds the transaction."""

    to: str
    value: NotRequired[str | None]
    amountWei: NotRequired[str | None]
    token: NotRequired[str | None]
    chainId: NotRequired[int | None]
    broadcast: NotRequired[bool]
    referenceId: NotRequired[str | None]
    sponsor: NotRequired[bool]


class TransferQuestion(TypedDict):
    """The simulation of a transfer."""

    kind: Literal["transfer"]
    request: TransferOrder


class TypedDataBody(TypedDict):
    """An EIP-712 document with eth_signTypedData_v4 semantics; exactly one of `message` and `value`."""

    domain: dict[str, Any]
    types: dict[str, list[TypedDataField]]
    primaryType: str
    message: NotRequired[dict[str, Any]]
    value: NotRequired[dict[str, Any]]
    referenceId: NotRequired[str | None]


class TypedDataConfig(TypedDict):
    """One kind of typed data."""

    type: str
    where: NotRequired[list[ConditionConfig]]


class TypedDataField(TypedDict):
    """One field of an EIP-712 struct type."""

    name: str
    type: str


class TypedDataSigned(TypedDict):
    """An EIP-712 signature: 65 bytes, r s v."""

    signature: str
    txId: str


class TypedDataSimulation(TypedDict):
    """The simulation of an EIP-712 document."""

    kind: Literal["typed_data"]
    request: TypedDataBody


class Wallet(TypedDict):
    """One address of an agent."""

    chainFamily: str
    address: str


class WalletAddresses(TypedDict):
    """The addresses of an agent's wallets."""

    evm: str
    solana: str


class Withdrawn(TypedDict):
    """An order that its agent took back; it is never signed."""

    txId: str
    approvalId: str
    resolvedAt: str
    resolvedBy: Literal["agent"]
    status: Literal["rejected"]
    statusDetail: Literal["withdrawn"]
