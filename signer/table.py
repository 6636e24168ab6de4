"""Every message: which story tells it, who may send it with which credential, and what a person needs for it.

Who may call a route is said again beside the route, for early refusal; this table is what counts (design 2).
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from custody.identity.mfa import Action
from custody.identity.roles import ADMINS, ANYBODY, BUILDERS, READERS
from custody.kit.shapes import Role
from custody.protocol import messages as m
from signer import (
    agents,
    approvals,
    audit_log,
    credential_routes,
    decide,
    expiry,
    following,
    receipts,
    replace,
    replace_policies,
    secrets,
    simulate,
)
from signer.administration import (
    app_clients,
    app_secrets,
    config,
    deliveries,
    freeze,
    platform_keys,
    request_signatures,
    signing_keys,
    tenants,
    webhooks,
)
from signer.context import Ask, Signer
from signer.people import devices, email_codes, members, passkeys, recovery, sessions, sign_in, sms, step_up, totp
from signer.proofs import Proven, ProvenPlatform, ProvenSession, WrongKind
from signer.rotation import accept, rotate

Story = Callable[[Signer, Any, Ask[Any]], Awaitable[m.Outcome | tuple[m.Outcome, bool]]]

NOBODY: frozenset[str] = frozenset()
AGENT = frozenset({"agent"})
SESSION = frozenset({"session"})
PLATFORM_KEY = frozenset({"platform_key"})
TENANT = frozenset({"tenant_key", "app_client", "session"})
# Whoever decides over money is a person or holds the tenant's own key, never an integration.
DECIDER = frozenset({"tenant_key", "session"})


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One message. `by`: kinds of proof, none for a message that brings its own evidence."""

    story: Story
    by: frozenset[str] = NOBODY
    roles: frozenset[Role] = ADMINS
    action: Action | None = None
    scope: str | None = None
    proof_optional: bool = False
    # Looks for its earlier answer itself, in the same round trip in which it reads what it judges.
    replays_itself: bool = False

    def admit(self, caller: Proven) -> None:
        """Raise unless this caller may send the message, now."""
        if isinstance(caller, ProvenSession):
            caller.need(self.roles, self.action)
        if isinstance(caller, ProvenPlatform) and self.scope is not None:
            caller.need(self.scope)

    def check_kind(self, kind: str) -> None:
        """Raise WrongKind unless the message takes this kind of credential."""
        if kind not in self.by:
            raise WrongKind(_wanted(self.by))


def _wanted(by: frozenset[str]) -> str:
    if by == AGENT:
        return "Only an agent signs; use the agent's own token."
    if by == SESSION:
        return "Only a person who is signed in may do this."
    if by == PLATFORM_KEY:
        return "Only a platform key may do this."
    return "This kind of credential may not do that."


def _signs(story: Story) -> Row:
    return Row(story=story, by=AGENT | SESSION, action="vaultSigning", replays_itself=True)


def _of_tenant(story: Story, roles: frozenset[Role] = ADMINS) -> Row:
    return Row(story=story, by=TENANT, roles=roles, action="tenantAdmin")


def _of_admin(story: Story, action: Action = "tenantAdmin") -> Row:
    return Row(story=story, by=SESSION, action=action)


def _of_person(story: Story) -> Row:
    return Row(story=story, by=SESSION, roles=ANYBODY)


TABLE: dict[type, Row] = {
    # tenants and agents
    m.CreateTenant: Row(story=tenants.create, by=PLATFORM_KEY | SESSION, roles=ANYBODY, scope=tenants.WRITE_SCOPE),
    m.DeleteTenant: Row(story=tenants.delete, by=PLATFORM_KEY, scope=tenants.WRITE_SCOPE),
    m.PutConfig: Row(story=config.put, by=DECIDER, action="tenantAdmin"),
    m.CreateAgents: _of_tenant(agents.create, BUILDERS),
    m.MintAgentToken: _of_tenant(agents.mint_token, BUILDERS),
    m.RevokeAgentTokens: _of_tenant(agents.revoke_tokens),
    m.DeleteAgent: Row(story=agents.delete, by=frozenset({"tenant_key", "app_client"})),
    m.ReplacePolicies: Row(story=replace_policies.replace, by=TENANT | AGENT, action="tenantAdmin"),
    # administration of a tenant
    m.PutAppClients: _of_admin(app_clients.put),
    m.DeleteAppClient: _of_admin(app_clients.delete),
    m.NewAppSecret: _of_admin(app_secrets.rotate),
    m.RevokeAppSecret: _of_admin(app_secrets.revoke),
    m.NewSigningKey: _of_admin(signing_keys.create),
    m.RevokeSigningKey: _of_admin(signing_keys.revoke),
    m.Freeze: Row(story=freeze.freeze, by=DECIDER, action="approvals"),
    m.Unfreeze: _of_admin(freeze.unfreeze, "approvals"),
    # webhooks
    m.CreateWebhook: _of_admin(webhooks.create, "webhooks"),
    m.ChangeWebhook: _of_admin(webhooks.change, "webhooks"),
    m.DeleteWebhook: _of_admin(webhooks.delete, "webhooks"),
    m.SendWebhookTest: _of_admin(deliveries.send_test, "webhooks"),
    m.RetryDelivery: _of_admin(deliveries.retry, "webhooks"),
    m.ReplayDelivery: _of_admin(deliveries.replay, "webhooks"),
    m.SignDelivery: Row(story=webhooks.sign),
    # the operator: members, and keys of his own
    m.PutMember: Row(story=members.put, by=PLATFORM_KEY, scope=members.WRITE_SCOPE),
    m.RemoveMember: Row(story=members.remove, by=PLATFORM_KEY, scope=members.WRITE_SCOPE),
    m.CreatePlatformKey: Row(story=platform_keys.create, by=PLATFORM_KEY),
    m.RevokePlatformKey: Row(story=platform_keys.revoke, by=PLATFORM_KEY),
    m.ListPlatformKeys: Row(story=platform_keys.list_all, by=PLATFORM_KEY),
    m.RotateKeys: Row(story=rotate.rotate, by=PLATFORM_KEY),
    m.AcceptRestore: Row(story=accept.accept, by=PLATFORM_KEY),
    # secrets and credential routes
    m.CreateSecret: _of_tenant(secrets.create, BUILDERS),
    m.RotateSecret: _of_tenant(secrets.rotate, BUILDERS),
    m.DeleteSecret: _of_tenant(secrets.delete, BUILDERS),
    m.CreateCredentialRoute: _of_tenant(credential_routes.create, BUILDERS),
    m.ChangeCredentialRoute: _of_tenant(credential_routes.change, BUILDERS),
    m.DeleteCredentialRoute: _of_tenant(credential_routes.delete, BUILDERS),
    # whoever asks, when the request is signed
    m.CheckRequestSignature: Row(
        story=request_signatures.check, by=TENANT | AGENT | PLATFORM_KEY, roles=ANYBODY, replays_itself=True
    ),
    # signing, and a person's decision over it
    m.SignEvm: _signs(decide.decide),
    m.SignTypedData: _signs(decide.decide),
    m.SignSolana: _signs(decide.decide),
    # about orders and signatures: nothing is changed
    m.Simulate: Row(story=simulate.simulate, by=TENANT | AGENT, roles=READERS),
    m.IssueReceipt: Row(story=receipts.issue, by=TENANT | AGENT, roles=READERS),
    m.ReplaceEvm: _signs(replace.replace),
    m.Approve: Row(story=approvals.approve, by=DECIDER, action="approvals"),
    m.Deny: Row(story=approvals.deny, by=DECIDER, action="approvals"),
    # of the scheduler: the database's clock is the evidence
    m.Expire: Row(story=expiry.expire),
    m.ChainOutcome: Row(story=following.learn),
    # the sealed log: nobody asks, and the rows are the evidence
    m.SealCheckpoint: Row(story=audit_log.seal),
    # people: the message is the evidence
    m.NewNonce: Row(story=sign_in.new_nonce),
    m.SignInWithWallet: Row(story=sign_in.with_wallet),
    m.NewEmailCode: Row(story=email_codes.new_code),
    m.SignInWithEmail: Row(story=email_codes.sign_in),
    m.RefreshSession: Row(story=sessions.refresh),
    m.NewSignInChallenge: Row(story=passkeys.new_sign_in_challenge),
    m.SignInWithPasskey: Row(story=passkeys.sign_in),
    m.NewDeviceCode: Row(story=devices.new_code),
    m.PollDeviceCode: Row(story=devices.poll),
    # people: with their session
    m.EndSession: _of_person(sessions.end),
    m.SwitchTenant: _of_person(sessions.switch),
    # second factors: who has one needs one to change them, which each story judges
    m.EnrolTotp: _of_person(totp.enrol),
    m.ConfirmTotp: _of_person(totp.confirm),
    m.RemoveTotp: _of_person(totp.remove),
    m.NewRecoveryCodes: _of_person(recovery.renew),
    m.EnrolSms: _of_person(sms.enrol),
    m.ConfirmSms: _of_person(sms.confirm),
    m.NewSmsCode: _of_person(sms.new_code),
    m.NewPasskeyChallenge: _of_person(passkeys.new_challenge),
    m.RegisterPasskey: _of_person(passkeys.register),
    m.RemovePasskey: _of_person(passkeys.remove),
    m.StepUp: _of_person(step_up.step_up),
    m.LookAtDevice: _of_person(devices.look),
    m.DecideDevice: _of_person(devices.decide),
}
