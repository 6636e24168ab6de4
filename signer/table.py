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
)
from custody.protocol.signer.orders import (
    Approve,
    BroadcastOutcome,
    ChainOutcome,
    Deny,
    Expire,
    IssueReceipt,
    ReplaceEvm,
    SignOrder,
    Simulate,
)
from custody.protocol.signer.policies import CreateAgents, ReplacePolicies, VotePolicies
from custody.protocol.signer.secrets import (
    ChangeCredentialRoute,
    CreateCredentialRoute,
    CreateSecret,
    DeleteCredentialRoute,
    DeleteSecret,
    RevealForRoute,
    RotateSecret,
)
from custody.protocol.signer.user_wallets import BeginUserImport, CreateUserWallet, FinishUserImport
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
    credential_routes,
    expiry,
    freeze,
    imports,
    quorum_break,
    quorums,
    receipts,
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
    on(BeginUserImport, user_wallets.begin_import),
    on(FinishUserImport, user_wallets.finish_import),
    # who else may authorise
    on(CreateSigner, signers.create),
    on(ChangeSigner, signers.change),
    on(RevokeSigner, signers.revoke),
    on(CreateQuorum, quorums.create),
    on(ChangeQuorum, quorums.change),
    on(RevokeQuorum, quorums.revoke),
    # secrets and credential routes
    on(CreateSecret, secrets.create),
    on(RotateSecret, secrets.rotate),
    on(DeleteSecret, secrets.delete),
    on(CreateCredentialRoute, credential_routes.create),
    on(ChangeCredentialRoute, credential_routes.change),
    on(DeleteCredentialRoute, credential_routes.delete),
    on(RevealForRoute, reveal.reveal),
    # orders
    on(SignOrder, sign_order.sign_order),
    on(Simulate, simulate.simulate),
    on(IssueReceipt, receipts.issue),
    on(ReplaceEvm, replace.replace),
    on(Approve, approvals.approve),
    on(Deny, approvals.deny),
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
)
