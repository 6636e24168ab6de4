"""The function that carries out each command; who may send it stands above the command itself."""

from custody.protocol.common import PublicKeys, Status
from custody.protocol.signer.agents import (
    ChangeAgent,
    DeleteAgent,
    FreezeAgent,
    FreezeTenant,
    FreezeTenantIn,
    HaveKeys,
    MintAgentToken,
    RevokeAgentTokens,
    UnfreezeAgent,
    UnfreezeTenant,
    UnfreezeTenantIn,
)
from custody.protocol.signer.approver_keys import RegisterApproverKey, RevokeApproverKey
from custody.protocol.signer.authority import (
    ChangeQuorum,
    ChangeSigner,
    CreateQuorum,
    CreateSigner,
    RevokeQuorum,
    RevokeSigner,
)
from custody.protocol.signer.bitcoin import FindBitcoinAddress
from custody.protocol.signer.calls import ChargeCall, EndCharge
from custody.protocol.signer.imports import BeginImport, FinishImport
from custody.protocol.signer.intents import (
    AuthorizeIntent,
    CloseIntent,
    CreateIntent,
    ExecuteIntent,
    ExpireIntent,
    FinishIntent,
    SendCalls,
)
from custody.protocol.signer.operation import (
    AcceptRestore,
    BreakQuorum,
    DeleteTenant,
    MendAuditLogs,
    RotateKeys,
    SealCheckpoint,
    TakePrices,
)
from custody.protocol.signer.orders import (
    Approve,
    BroadcastOutcome,
    ChainOutcome,
    Deny,
    Expire,
    Release,
    ReplaceEvm,
    SignOrder,
    Withdraw,
)
from custody.protocol.signer.payment_routes import (
    ChangePaymentRoute,
    CreatePaymentRoute,
    DeletePaymentRoute,
    PayForRoute,
)
from custody.protocol.signer.policies import CreateAgents, ReplacePolicies, VotePolicies
from custody.protocol.signer.policy_sets import CreatePolicySet, DeletePolicySet, ReplacePolicySet
from custody.protocol.signer.receipts import IssueReceipt
from custody.protocol.signer.secrets import (
    BeginRefresh,
    ChangeCredentialRoute,
    CreateCredentialRoute,
    CreateSecret,
    DeleteCredentialRoute,
    DeleteSecret,
    EndRefresh,
    RevealForRoute,
    RotateSecret,
)
from custody.protocol.signer.simulation import Simulate
from custody.protocol.signer.user_wallets import BeginUserImport, CreateUserWallet, FinishUserImport, SignUserOrder
from custody.worker.handlers import Handler, on
from signer import (
    addresses,
    agents,
    approvals,
    approver_keys,
    audit_log,
    audit_mend,
    bitcoin_accounts,
    chain_outcomes,
    charges,
    credential_routes,
    expiry,
    freeze,
    imports,
    pay_for_route,
    payment_routes,
    policy_sets,
    quorum_break,
    quorums,
    receipts,
    refreshes,
    releases,
    replace,
    replace_policies,
    reveal,
    secrets,
    sign_order,
    signers,
    simulate,
    status,
    tenants,
    user_wallets,
    withdrawals,
)
from signer.context import Signer
from signer.intents import create, decisions, execute, send_calls
from signer.rotation import accept, rotate

HANDLERS: tuple[Handler[Signer], ...] = (
    # agents
    on(CreateAgents, agents.create),
    on(ChangeAgent, agents.change),
    on(MintAgentToken, agents.mint_token),
    on(RevokeAgentTokens, agents.revoke_tokens),
    on(DeleteAgent, agents.delete),
    on(ReplacePolicies, replace_policies.replace),
    on(VotePolicies, replace_policies.vote),
    on(FreezeAgent, freeze.freeze_agent),
    on(FreezeTenant, freeze.freeze_tenant),
    on(UnfreezeAgent, freeze.unfreeze_agent),
    on(UnfreezeTenant, freeze.unfreeze_tenant),
    on(FreezeTenantIn, freeze.freeze_tenant_in),
    on(UnfreezeTenantIn, freeze.unfreeze_tenant_in),
    on(HaveKeys, addresses.have_keys),
    on(FindBitcoinAddress, bitcoin_accounts.find),
    on(BeginImport, imports.begin),
    on(FinishImport, imports.finish),
    on(CreateUserWallet, user_wallets.create),
    on(SignUserOrder, user_wallets.sign),
    on(BeginUserImport, user_wallets.begin_import),
    on(FinishUserImport, user_wallets.finish_import),
    # who else may authorise
    on(CreateSigner, signers.create),
    on(ChangeSigner, signers.change),
    on(RevokeSigner, signers.revoke),
    on(CreateQuorum, quorums.create),
    on(ChangeQuorum, quorums.change),
    on(RevokeQuorum, quorums.revoke),
    # secrets, credential routes, payment routes
    on(CreateSecret, secrets.create),
    on(RotateSecret, secrets.rotate),
    on(DeleteSecret, secrets.delete),
    on(CreateCredentialRoute, credential_routes.create),
    on(ChangeCredentialRoute, credential_routes.change),
    on(DeleteCredentialRoute, credential_routes.delete),
    # policy sets
    on(CreatePolicySet, policy_sets.create),
    on(ReplacePolicySet, policy_sets.replace),
    on(DeletePolicySet, policy_sets.delete),
    # payment routes
    on(CreatePaymentRoute, payment_routes.create),
    on(ChangePaymentRoute, payment_routes.change),
    on(DeletePaymentRoute, payment_routes.delete),
    on(PayForRoute, pay_for_route.pay),
    on(RevealForRoute, reveal.reveal),
    on(BeginRefresh, refreshes.begin),
    on(EndRefresh, refreshes.end),
    on(ChargeCall, charges.charge),
    on(EndCharge, charges.end),
    # orders
    on(SignOrder, sign_order.sign_order),
    on(Simulate, simulate.simulate),
    on(IssueReceipt, receipts.issue),
    on(ReplaceEvm, replace.replace),
    on(Approve, approvals.approve),
    on(Deny, approvals.deny),
    on(Withdraw, withdrawals.withdraw),
    # intents
    on(CreateIntent, create.create),
    on(SendCalls, send_calls.send_calls),
    on(AuthorizeIntent, decisions.authorize),
    on(CloseIntent, decisions.close),
    on(ExecuteIntent, execute.execute),
    on(FinishIntent, execute.finish),
    on(ExpireIntent, decisions.expire),
    # what becomes of orders
    on(RegisterApproverKey, approver_keys.register),
    on(RevokeApproverKey, approver_keys.revoke),
    on(BroadcastOutcome, chain_outcomes.note_sent),
    on(Expire, expiry.expire),
    on(Release, releases.release),
    on(ChainOutcome, chain_outcomes.learn),
    # the scheduler and the operator
    on(DeleteTenant, tenants.delete),
    on(RotateKeys, rotate.rotate),
    on(AcceptRestore, accept.accept),
    on(MendAuditLogs, audit_mend.mend),
    on(BreakQuorum, quorum_break.break_quorum),
    on(SealCheckpoint, audit_log.seal),
    # every worker
    on(PublicKeys, status.public_keys),
    on(Status, status.status),
    on(TakePrices, status.take_prices),
)
