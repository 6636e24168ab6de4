// Types of what an agent sends and gets: made from sdk/agent.json, never edited.

/** Method and path of each operation. */
export const OPERATIONS = {
  getAccount: ["GET", "/agents/{agentId}/account"],
  getAgent: ["GET", "/agents/{agentId}"],
  getBalance: ["GET", "/agents/{agentId}/balance"],
  getBitcoinAddress: ["GET", "/vault/{agentId}/bitcoin/address"],
  getDashboard: ["GET", "/dashboard/{agentId}"],
  getMe: ["GET", "/me"],
  getReceipt: ["GET", "/vault/{agentId}/transactions/{txId}/receipt"],
  getTransaction: ["GET", "/vault/{agentId}/transactions/{txId}"],
  listCallableApis: ["GET", "/agents/{agentId}/apis"],
  listHistory: ["GET", "/vault/{agentId}/history"],
  listPendingTransactions: ["GET", "/vault/{agentId}/pending"],
  listPolicies: ["GET", "/agents/{agentId}/policies"],
  listTokenBalances: ["GET", "/agents/{agentId}/tokens"],
  listTransactions: ["GET", "/vault/{agentId}/transactions"],
  payDemand: ["POST", "/vault/{agentId}/x402"],
  replacePolicies: ["PUT", "/agents/{agentId}/policies"],
  replaceTransaction: ["POST", "/vault/{agentId}/transactions/{txId}/replace"],
  sendCalls: ["POST", "/vault/{agentId}/actions/send-calls"],
  signBitcoinPsbt: ["POST", "/vault/{agentId}/sign-bitcoin-psbt"],
  signEvmTransaction: ["POST", "/vault/{agentId}/sign"],
  signMessage: ["POST", "/vault/{agentId}/sign-message"],
  signSolanaTransaction: ["POST", "/vault/{agentId}/sign-solana"],
  signTypedData: ["POST", "/vault/{agentId}/sign-typed-data"],
  simulateOrder: ["POST", "/vault/{agentId}/simulate"],
  transferFunds: ["POST", "/vault/{agentId}/actions/transfer"],
  withdrawTransaction: ["POST", "/vault/{agentId}/transactions/{txId}/withdraw"],
} as const;

/** An agent. `frozen_at` and `frozen_reason` are set while it is frozen. */
export interface Agent {
  id: string;
  name: string;
  displayName: string | null;
  platformId: string | null;
  tenantId: string;
  walletAddresses: WalletAddresses;
  walletAddress: string;
  createdAt: string;
  frozenAt: string | null;
  frozenReason: string | null;
  erc8004TokenId: string | null;
  previousWallets: Array<PreviousWallet>;
}

/** An agent as an account. `capabilities` lists what its wallets can do; empty while it is frozen. */
export interface AgentAccount {
  id: string;
  type: string;
  agentId: string;
  walletAddress: string;
  wallets: Array<Wallet>;
  portfolio: Portfolio;
  capabilities: Array<string>;
  sponsorship: Sponsorship;
}

/** One wallet's balance on one chain. */
export interface AgentBalance {
  agentId: string;
  walletAddress: string;
  balances: Balances;
}

/** The agent. */
export interface AgentCard {
  id: string;
  tenantId: string;
  name: string;
  walletAddress: string;
  createdAt: string;
}

/** The holdings of one wallet on one chain; if no node responded, `native` is null and `note` says why. */
export interface AgentTokens {
  agentId: string;
  walletAddress: string;
  chainId: number;
  native: NativeFunds | null;
  tokens: Array<TokenFunds>;
  note?: string;
}

/** One list. */
export interface AllowedChainsConfig {
  chains: Array<number | string>;
  until?: string | null;
}

/** On which chains orders may be signed. On any other chain an order is refused. */
export interface AllowedChainsRule {
  type: "allowed-chains";
  id?: string | null;
  enabled: boolean;
  config: AllowedChainsConfig;
  source?: "agent" | "tenant";
}

/** The amount of one asset that an order moves. */
export interface Amount {
  asset: string;
  symbol: string | null;
  decimals: number | null;
  amount: string;
}

/** The threshold, the approvers, and the orders that need them. */
export interface ApprovalQuorumConfig {
  threshold: number;
  approvers: Array<ApproverConfig>;
  above?: string | null;
  asset?: string | null;
  until?: string | null;
}

/** A quorum of named people who must vote, each with their own key. Set by a person alone; only votes loosen it. */
export interface ApprovalQuorumRule {
  type: "approval-quorum";
  id?: string | null;
  enabled: boolean;
  config: ApprovalQuorumConfig;
  source?: "agent" | "tenant";
}

/** One list of either kind. */
export interface ApprovedAddressesConfig {
  addresses: Array<string>;
  mode?: "blacklist" | "whitelist";
  until?: string | null;
}

/** A list of allowed or of forbidden recipients. An order that pays, empowers or calls anybody else is refused. */
export interface ApprovedAddressesRule {
  type: "approved-addresses";
  id?: string | null;
  enabled: boolean;
  config: ApprovedAddressesConfig;
  source?: "agent" | "tenant";
}

/** One named person, and the keys by which their votes count. */
export interface ApproverConfig {
  userId: string;
  keys: Array<string>;
}

/** The spending of one asset, by calendar period: the sum of transfers, finite approvals and rent. */
export interface AssetSpend {
  asset: string;
  symbol: string | null;
  decimals: number | null;
  today: string;
  thisWeek: string;
  thisMonth: string;
}

/** By whom an order was authorised, as its receipt and its audit row say it too. */
export interface Authorized {
  quorum: string | null;
  signers: Array<string>;
  policyIds: Array<string>;
}

/** The amount is in the smallest unit of the asset. */
export interface AutoApproveThresholdConfig {
  threshold: string;
  asset?: string | null;
  until?: string | null;
}

/** Up to this amount of one asset no person is asked. An order above it is queued, never refused. */
export interface AutoApproveThresholdRule {
  type: "auto-approve-threshold";
  id?: string | null;
  enabled: boolean;
  config: AutoApproveThresholdConfig;
  source?: "agent" | "tenant";
}

/** A native balance in the smallest unit, and formatted for reading. */
export interface Balances {
  native: string;
  nativeFormatted: string;
  chainId: number;
  symbol: string;
}

/** One address, the key that spends from it, and output descriptors (BIP-380) of it and of its whole account. */
export interface BitcoinAddress {
  walletScope: string;
  address: string;
  addressType: string;
  network: string;
  publicKey: string;
  derivationPath: string;
  fingerprint: string;
  accountXpub: string;
  descriptor: string;
  receiveDescriptor: string;
  changeDescriptor: string;
  addressDescriptor: string;
}

/** A rolling limit and its remainder, from the ledger that enforces it. */
export interface Budget {
  policyId: string;
  window: "day" | "total" | "week";
  asset: string;
  limit: string;
  spent: string;
  remaining: string;
}

/** An API that an agent may call through the proxy, which puts in what the API wants; the agent needs no key. */
export interface CallableApi {
  hostPattern: string;
  pathPattern: string;
  method: string;
  enabled: boolean;
  costMicroUsd: number;
  maxMicroUsd: number;
  pays: boolean;
}

/** Up to 16 calls that are judged as one, and become as many transactions with consecutive nonces. */
export interface CallsOrder {
  calls: Array<OneCall>;
  chainId?: number | null;
  broadcast?: boolean;
  referenceId?: string | null;
  sponsor?: boolean;
}

/** At least one of the counts is needed. */
export interface CircuitBreakerConfig {
  minutes: number;
  refused?: number | null;
  failed?: number | null;
  until?: string | null;
}

/** So many refusals or failures within some minutes freeze the agent. It judges no order by itself. */
export interface CircuitBreakerRule {
  type: "circuit-breaker";
  id?: string | null;
  enabled: boolean;
  config: CircuitBreakerConfig;
  source?: "agent" | "tenant";
}

/** One condition on one argument. */
export interface ConditionConfig {
  arg: string;
  op: "eq" | "gt" | "gte" | "in" | "lt" | "lte" | "ne" | "notIn";
  value?: string;
  values?: Array<string>;
}

/** Constraints on one listed call. A call whose recipient or amount is unknown fails a constraint on it. */
export interface ConstraintConfig {
  recipientAllowlist?: Array<string> | null;
  recipientBlocklist?: Array<string> | null;
  spenderAllowlist?: Array<string> | null;
  spenderBlocklist?: Array<string> | null;
  maxAmount?: string | null;
  maxNativeValueWei?: string | null;
  abi?: string;
  where?: Array<ConditionConfig>;
}

/** One list. */
export interface ContractAllowlistConfig {
  contracts: Array<EntryConfig>;
  until?: string | null;
}

/** Permitted contract calls, with recipients and amounts. Other calls are refused; a plain payment is no call. */
export interface ContractAllowlistRule {
  type: "contract-allowlist";
  id?: string | null;
  enabled: boolean;
  config: ContractAllowlistConfig;
  source?: "agent" | "tenant";
}

/** The agent at a glance; `balances.evm` is null if no node responds. */
export interface Dashboard {
  agent: AgentCard;
  balances: Record<string, Balances | null>;
  spend: Spend;
  budgets: Array<Budget>;
  policies: Array<PolicyRule>;
  pendingApprovals: number;
  recentTransactions: Array<RecentTransaction>;
  note?: string;
}

/** The amount is in the smallest unit of the asset. */
export interface DelayConfig {
  minutes: number;
  above?: string | null;
  asset?: string | null;
  until?: string | null;
}

/** An order waits for some minutes, in which a person may deny it; then it is signed by itself. It never refuses. */
export interface DelayRule {
  type: "delay";
  id?: string | null;
  enabled: boolean;
  config: DelayConfig;
  source?: "agent" | "tenant";
}

/** One listed contract. Several entries may name one contract; one that permits is enough. */
export interface EntryConfig {
  address: string;
  selectors: Array<string>;
  chainId?: number | null;
  constraints?: Record<string, ConstraintConfig>;
  unread?: "allow" | "ask";
  typedData?: Array<TypedDataConfig>;
}

/** A message for the EVM wallet, which signs it as personal_sign does (EIP-191). */
export interface EvmMessageOrder {
  chainFamily: "evm";
  message?: string | null;
  raw?: string | null;
  chainId?: number | null;
  referenceId?: string | null;
}

/** An EVM transaction to sign: built by the signer from these fields, never from raw bytes. */
export interface EvmOrder {
  to: string;
  value: string;
  data?: string | null;
  chainId?: number | null;
  broadcast?: boolean;
  nonce?: number | null;
  gasLimit?: string | null;
  maxFeePerGas?: string | null;
  maxPriorityFeePerGas?: string | null;
  referenceId?: string | null;
}

/** The simulation of an EVM transaction. */
export interface EvmQuestion {
  kind: "evm";
  request: EvmOrder;
}

/** A signed EVM transaction; with its bytes if it was not broadcast. */
export interface EvmSigned {
  txId: string;
  txHash: string;
  signedTransaction?: string | null;
}

/** The batch was executed: one transaction for each call, in their order. */
export interface ExecutedCalls {
  actionId: string;
  intentId: string;
  transactions: Array<TransactionOfCalls>;
  type: "send_calls";
  status: "executed";
}

/** Answers are signed; docs/policies.md says how. */
export interface ExternalCheckConfig {
  url: string;
  publicKeys: Array<string>;
  onFailure?: "ask" | "refuse";
  timeoutSeconds?: number;
  until?: string | null;
}

/** A service of yours is asked about each order, and its signed answer allows it, asks a person or refuses it. */
export interface ExternalCheckRule {
  type: "external-check";
  id?: string | null;
  enabled: boolean;
  config: ExternalCheckConfig;
  source?: "agent" | "tenant";
}

/** The highest possible network fee, in the smallest unit. */
export interface Fee {
  asset: string;
  max: string;
}

/** From the start hour up to, but without, the end hour; a span may pass midnight. */
export interface Hours {
  start: number;
  end: number;
}

/** A transaction in a list; `data`, `signature` and `signedTransaction` only with `include=data`. */
export interface ListedTransaction {
  id: string;
  txId: string;
  agentId: string;
  kind: "bitcoin" | "evm" | "evm_message" | "solana" | "solana_message" | "solana_x402" | "typed_data" | "x402";
  status: "broadcast" | "confirmed" | "failed" | "pending_approval" | "rejected" | "signed";
  statusDetail: string | null;
  reason: string | null;
  toAddress: string | null;
  value: string | null;
  chainId: number | null;
  caip2: string | null;
  nonce: number | null;
  txHash: string | null;
  settledBy: string | null;
  broadcast: boolean;
  referenceId: string | null;
  actionId: string | null;
  authorization: Authorized | null;
  policyResults: Array<Result>;
  policyVersion: number;
  effects: Array<Record<string, unknown>>;
  replacesTxId: string | null;
  createdAt: string;
  signedAt: string | null;
  broadcastAt: string | null;
  confirmedAt: string | null;
  data?: unknown;
  signature?: string | null;
  signedTransaction?: string | null;
}

/** A credential; fields that its kind does not have are null. */
export interface Me {
  kind: "agent_token" | "app_client" | "platform_key" | "session" | "tenant_key";
  tenantId: string | null;
  agentId: string | null;
  userId: string | null;
  role: "admin" | "billing" | "developer" | "member" | "owner" | "viewer" | null;
  clientId: string | null;
  keyId: string | null;
  name: string | null;
  prefix: string | null;
  scopes: Array<string> | null;
  expiresAt: string | null;
}

/** Lists of sites and patterns; none of them means that every message waits for a person. */
export interface MessageAllowlistConfig {
  siweDomains?: Array<string>;
  siwsDomains?: Array<string>;
  patterns?: Array<string>;
  until?: string | null;
}

/** Messages that are signed without a person: sign-ins to listed sites, and texts that fit a pattern. */
export interface MessageAllowlistRule {
  type: "message-allowlist";
  id?: string | null;
  enabled: boolean;
  config: MessageAllowlistConfig;
  source?: "agent" | "tenant";
}

/** One of these, told apart by `chainFamily`. */
export type MessageOrder = EvmMessageOrder | SolanaMessageOrder;

/** A signature of a message. */
export interface MessageSigned {
  signature: string;
  txId: string;
}

/** The simulation of a message. */
export interface MessageSimulation {
  kind: "message";
  request: MessageOrder;
}

/** The chain's native coin. */
export interface NativeFunds {
  symbol: string;
  balance: string;
  formatted: string;
}

/** The chain's native coin, and its value if a price is known. */
export interface NativeWorth {
  symbol: string;
  formatted: string;
  usdValueText?: string;
}

/** Nothing is needed. */
export interface NewRecipientConfig {
  known?: Array<string>;
  until?: string | null;
}

/** A person approves the first order that pays, empowers or calls an address. It never refuses. */
export interface NewRecipientRule {
  type: "new-recipient";
  id?: string | null;
  enabled: boolean;
  config: NewRecipientConfig;
  source?: "agent" | "tenant";
}

/** One call of a batch. */
export interface OneCall {
  to: string;
  value?: string;
  data?: string | null;
  gasLimit?: string | null;
}

/** A demand to pay by x402, as an HTTP server, an MCP tool or an A2A agent makes it. */
export interface PaymentBody {
  demand: Record<string, unknown> | string;
  resource?: string | null;
  referenceId?: string | null;
}

/** A payment: send the request again with this header, or its value where the demand came in JSON. */
export interface PaymentSigned {
  txId: string;
  header: string;
  value: string;
  asset: string;
  amount: string;
  expiresAt: string;
}

/** Queued: a person must approve the order before it is signed; nothing needs to be sent again. */
export interface Pending {
  txId: string;
  approvalId: string;
  results: Array<Result>;
  status: "pending_approval";
  code: "approval_required";
  releaseAt: string | null;
}

/** One item of an agent's list of pending approvals. */
export interface PendingItem {
  queueId: string;
  status: "pending";
  requestedAt: string;
  transaction: PendingTransaction;
}

/** The order of a pending approval. */
export interface PendingTransaction {
  id: string;
  toAddress: string | null;
  value: string | null;
  chainId: number | null;
  policyResults: Array<Result>;
}

/** Queued: a person must approve the transfer before it is signed; nothing needs to be sent again. */
export interface PendingTransfer {
  id: string;
  actionId: string;
  type: "transfer";
  agentId: string;
  status: "broadcast" | "failed" | "pending_approval" | "rejected" | "signed";
  chainId: number;
  caip2: string;
  from: string | null;
  to: string;
  value: string;
  token: string;
  broadcast: boolean;
  referenceId: string | null;
  txId: string;
  txHash: string | null;
  policyResults: Array<Result>;
  createdAt: string;
  approvalId: string;
  results: Array<Result>;
  code: "approval_required";
  releaseAt: string | null;
}

/** A rate-limit rule has no room for another order; send the same request after `Retry-After` seconds. */
export interface PolicyRateLimited {
  txId: string;
  results: Array<Result>;
  code: "policy_rate_limited";
}

/** A rule refuses the order (`results` says which and why), a person denied it, or the agent withdrew it. */
export interface PolicyRefused {
  txId: string;
  results: Array<Result>;
  code: "approval_denied" | "policy_refused" | "withdrawn";
}

/** One of these, told apart by `type`. */
export type PolicyRule = SpendingLimitRule | ApprovedAddressesRule | AutoApproveThresholdRule | TimeWindowRule | RateLimitRule | AllowedChainsRule | ContractAllowlistRule | ApprovalQuorumRule | MessageAllowlistRule | PolicySetRule | NewRecipientRule | DelayRule | CircuitBreakerRule | ExternalCheckRule;

/** The set of the tenant. */
export interface PolicySetConfig {
  policySet: string;
  until?: string | null;
}

/** The rules of a policy set bind the agent besides its own. At most one, always enabled. */
export interface PolicySetRule {
  type: "policy-set";
  id?: string | null;
  enabled: boolean;
  config: PolicySetConfig;
  source?: "agent" | "tenant";
}

/** The agent's holdings on one chain. The total covers assets with a price; absent if none has one. */
export interface Portfolio {
  chainId: number;
  native: NativeWorth | null;
  tokens: Array<TokenWorth>;
  totalUsdText?: string;
  note?: string;
}

/** A wallet whose key an import replaced. Its key is kept; nothing is signed with it. */
export interface PreviousWallet {
  family: string;
  address: string;
}

/** The batch waits as an intent: a person authorises and executes it; see `/intents`. */
export interface ProposedCalls {
  actionId: string;
  intentId: string;
  results: Array<Result>;
  type: "send_calls";
  status: "pending_approval";
  code: "approval_required";
}

/** A PSBT whose inputs of one address are signed. Payments are read from its bytes, and it is never broadcast. */
export interface PsbtOrder {
  walletScope: string;
  psbtBase64: string;
  finalize?: boolean;
  referenceId?: string | null;
}

/** The simulation of a PSBT. */
export interface PsbtQuestion {
  kind: "bitcoin";
  request: PsbtOrder;
}

/** A signed PSBT; with its transaction, where that was asked for and every input is this wallet's. */
export interface PsbtSigned {
  transactionId: string;
  signedPsbtBase64: string;
  signedInputs: number;
  walletScope: string;
  walletAddress: string;
  addressType: string;
  network: string;
  finalizedTxHex?: string | null;
  txId?: string | null;
  vsize?: number | null;
  feeSats?: string | null;
}

/** One of these, told apart by `kind`. */
export type Question = EvmQuestion | TypedDataSimulation | SolanaQuestion | TransferQuestion | PsbtQuestion | MessageSimulation;

/** At least one of the two is needed. */
export interface RateLimitConfig {
  maxTxPerHour?: number | null;
  maxTxPerDay?: number | null;
  until?: string | null;
}

/** Limits on orders signed or queued per hour and day. Further orders are refused with 429 and Retry-After. */
export interface RateLimitRule {
  type: "rate-limit";
  id?: string | null;
  enabled: boolean;
  config: RateLimitConfig;
  source?: "agent" | "tenant";
}

/** The statement, the Ed25519 signature over its canonical JSON (base64url), and the key's id in the JWK set. */
export interface Receipt {
  receipt: Record<string, unknown>;
  signature: string;
  kid: string;
}

/** One order in a few words. */
export interface RecentTransaction {
  id: string;
  agentId: string;
  kind: "bitcoin" | "evm" | "evm_message" | "solana" | "solana_message" | "solana_x402" | "typed_data" | "x402";
  toAddress: string | null;
  value: string | null;
  moved: Array<Amount>;
  status: "broadcast" | "confirmed" | "failed" | "pending_approval" | "rejected" | "signed";
  chainId: number | null;
  txHash: string | null;
  createdAt: string;
}

/** A rule refuses the batch, or its intent ended unexecuted; it keeps its reference: send another with a new one. */
export interface RejectedCalls {
  actionId: string;
  txId: string | null;
  results: Array<Result>;
  type: "send_calls";
  status: "canceled" | "expired" | "failed" | "rejected";
  code: "approval_denied" | "policy_refused";
}

/** A rule refuses the transfer, a person denied it, or the agent withdrew it; send another with a new reference. */
export interface RejectedTransfer {
  id: string;
  actionId: string;
  type: "transfer";
  agentId: string;
  status: "broadcast" | "failed" | "pending_approval" | "rejected" | "signed";
  chainId: number;
  caip2: string;
  from: string | null;
  to: string;
  value: string;
  token: string;
  broadcast: boolean;
  referenceId: string | null;
  txId: string;
  txHash: string | null;
  policyResults: Array<Result>;
  createdAt: string;
  results: Array<Result>;
  code: "approval_denied" | "policy_refused" | "withdrawn";
}

/** A rolling limit and its current remainder, from the ledger that enforces it. */
export interface Remaining {
  policyId: string;
  window: "day" | "total" | "week";
  asset: string;
  limit: string;
  spent: string;
  remaining: string;
}

/** The fees of a replacement; if absent, those a node suggests, raised enough to be accepted. */
export interface ReplacementFees {
  maxFeePerGas?: string | null;
  maxPriorityFeePerGas?: string | null;
}

/** The result of one rule; `policyId` is null for a result of the evaluation itself. */
export interface Result {
  type: string;
  passed: boolean;
  reason: string;
  policyId: string | null;
}

/** The outcome of signing the order now. `needed`: requirements still missing, if no rule refuses it. */
export interface Simulated {
  decision: "queue" | "refuse" | "sign";
  results: Array<Result>;
  effects: Array<Record<string, unknown>>;
  fee: Fee | null;
  budgets: Array<Remaining>;
  needed: Array<"approval" | "funds" | "rpc">;
}

/** A message for the Solana wallet, which signs the bytes themselves. */
export interface SolanaMessageOrder {
  chainFamily: "solana";
  message?: string | null;
  raw?: string | null;
  chainId?: number | null;
  referenceId?: string | null;
}

/** A serialized Solana transaction, and the caller's statement of what it does; the two must agree. */
export interface SolanaOrder {
  transaction: string;
  to: string;
  value: string;
  chainId?: number;
  broadcast?: boolean;
  referenceId?: string | null;
}

/** The simulation of a Solana transaction. */
export interface SolanaQuestion {
  kind: "solana";
  request: SolanaOrder;
}

/** A signed Solana transaction. */
export interface SolanaSigned {
  txId: string;
  signature: string;
  broadcast: boolean;
  chainId: number;
  caip2: string;
  signedTransaction?: string | null;
}

/** The sums that signed transactions moved, by calendar period: native EVM value, and each asset by itself. */
export interface Spend {
  today: string;
  thisWeek: string;
  thisMonth: string;
  todayFormatted: string;
  thisWeekFormatted: string;
  thisMonthFormatted: string;
  assets: Array<AssetSpend>;
}

/** Amounts are in the smallest unit of the asset. At least one of the four limits is needed. */
export interface SpendingLimitConfig {
  maxPerTransaction?: string | null;
  maxPerTx?: string | null;
  maxPerDay?: string | null;
  maxPerWeek?: string | null;
  maxTotal?: string | null;
  asset?: string | null;
  maxRentPerDay?: string | null;
  alertPercents?: Array<number>;
  scope?: "agent" | "set";
  until?: string | null;
}

/** Limits on one asset per transaction, day and week, and in all. An order above a limit is refused. */
export interface SpendingLimitRule {
  type: "spending-limit";
  id?: string | null;
  enabled: boolean;
  config: SpendingLimitConfig;
  source?: "agent" | "tenant";
}

/** Sponsorship of the fees by another account. */
export interface Sponsorship {
  enabled: boolean;
}

/** A rate-limit rule has no room for so many; send the same request after `Retry-After` seconds. */
export interface ThrottledCalls {
  actionId: string;
  txId: string;
  results: Array<Result>;
  type: "send_calls";
  status: "rejected";
  code: "policy_rate_limited";
}

/** A rate-limit rule has no room for another transfer; send the same request after `Retry-After` seconds. */
export interface ThrottledTransfer {
  id: string;
  actionId: string;
  type: "transfer";
  agentId: string;
  status: "broadcast" | "failed" | "pending_approval" | "rejected" | "signed";
  chainId: number;
  caip2: string;
  from: string | null;
  to: string;
  value: string;
  token: string;
  broadcast: boolean;
  referenceId: string | null;
  txId: string;
  txHash: string | null;
  policyResults: Array<Result>;
  createdAt: string;
  results: Array<Result>;
  code: "policy_rate_limited";
}

/** At least one of hours, days, `notBefore` and `notAfter` is needed. */
export interface TimeWindowConfig {
  allowedHours?: Array<Hours>;
  allowedDays?: Array<number>;
  timezone?: string;
  notBefore?: string | null;
  notAfter?: string | null;
  until?: string | null;
}

/** At which hours, on which days and between which moments orders may be signed. Otherwise they are refused. */
export interface TimeWindowRule {
  type: "time-window";
  id?: string | null;
  enabled: boolean;
  config: TimeWindowConfig;
  source?: "agent" | "tenant";
}

/** One token. Fields that the token does not report, or reports in an unusable form, are null. */
export interface TokenFunds {
  address: string;
  symbol: string | null;
  balance: string | null;
  formatted: string | null;
  decimals?: number;
  note?: string;
}

/** One token, and its value if a price is known. */
export interface TokenWorth {
  address: string;
  symbol: string | null;
  balance: string | null;
  formatted: string | null;
  usdValueText?: string;
  note?: string;
}

/** The same, with the requested and the signed data. */
export interface Transaction {
  id: string;
  txId: string;
  agentId: string;
  kind: "bitcoin" | "evm" | "evm_message" | "solana" | "solana_message" | "solana_x402" | "typed_data" | "x402";
  status: "broadcast" | "confirmed" | "failed" | "pending_approval" | "rejected" | "signed";
  statusDetail: string | null;
  reason: string | null;
  toAddress: string | null;
  value: string | null;
  chainId: number | null;
  caip2: string | null;
  nonce: number | null;
  txHash: string | null;
  settledBy: string | null;
  broadcast: boolean;
  referenceId: string | null;
  actionId: string | null;
  authorization: Authorized | null;
  policyResults: Array<Result>;
  policyVersion: number;
  effects: Array<Record<string, unknown>>;
  replacesTxId: string | null;
  createdAt: string;
  signedAt: string | null;
  broadcastAt: string | null;
  confirmedAt: string | null;
  data: unknown;
  signature: string | null;
  signedTransaction: string | null;
  finalizedTxHex?: string;
  vsize?: number;
  feeSats?: string;
}

/** The transaction that one call became. */
export interface TransactionOfCalls {
  txId: string;
  txHash: string | null;
  status: "broadcast" | "confirmed" | "failed" | "pending_approval" | "rejected" | "signed";
}

/** A page of transactions; it ends before its limit where it reaches 4 MiB. */
export interface TransactionPage {
  transactions: Array<ListedTransaction>;
  total: number;
  totalIsEstimate: boolean;
  limit: number;
  offset: number;
  nextCursor: string | null;
}

/** A transfer and what became of it. */
export interface TransferAction {
  id: string;
  actionId: string;
  type: "transfer";
  agentId: string;
  status: "broadcast" | "failed" | "pending_approval" | "rejected" | "signed";
  chainId: number;
  caip2: string;
  from: string | null;
  to: string;
  value: string;
  token: string;
  broadcast: boolean;
  referenceId: string | null;
  txId: string;
  txHash: string | null;
  policyResults: Array<Result>;
  createdAt: string;
}

/** A payment in a chain's own coin, or in an ERC-20 token; the signer builds the transaction. */
export interface TransferOrder {
  to: string;
  value?: string | null;
  amountWei?: string | null;
  token?: string | null;
  chainId?: number | null;
  broadcast?: boolean;
  referenceId?: string | null;
  sponsor?: boolean;
}

/** The simulation of a transfer. */
export interface TransferQuestion {
  kind: "transfer";
  request: TransferOrder;
}

/** An EIP-712 document with eth_signTypedData_v4 semantics; exactly one of `message` and `value`. */
export interface TypedDataBody {
  domain: Record<string, unknown>;
  types: Record<string, Array<TypedDataField>>;
  primaryType: string;
  message?: Record<string, unknown>;
  value?: Record<string, unknown>;
  referenceId?: string | null;
}

/** One kind of typed data. */
export interface TypedDataConfig {
  type: string;
  where?: Array<ConditionConfig>;
}

/** One field of an EIP-712 struct type. */
export interface TypedDataField {
  name: string;
  type: string;
}

/** An EIP-712 signature: 65 bytes, r s v. */
export interface TypedDataSigned {
  signature: string;
  txId: string;
}

/** The simulation of an EIP-712 document. */
export interface TypedDataSimulation {
  kind: "typed_data";
  request: TypedDataBody;
}

/** One address of an agent. */
export interface Wallet {
  chainFamily: string;
  address: string;
}

/** The addresses of an agent's wallets. */
export interface WalletAddresses {
  evm: string;
  solana: string;
}

/** An order that its agent took back; it is never signed. */
export interface Withdrawn {
  txId: string;
  approvalId: string;
  resolvedAt: string;
  resolvedBy: "agent";
  status: "rejected";
  statusDetail: "withdrawn";
}
