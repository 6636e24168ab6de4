"""The function that carries out each command; who may send it stands above the command itself."""

from custody.protocol.common import PublicKeys, Status
from custody.protocol.identity.api_keys import CreateApiKey, CreateApiKeyIn, RevokeApiKey, RevokeApiKeyIn
from custody.protocol.identity.channels import (
    ChangeChannel,
    CreateChannel,
    DeleteChannel,
    OpenChannel,
    RetryNotice,
    TestChannel,
)
from custody.protocol.identity.credentials import (
    CheckRequestSignature,
    CreateAppSecret,
    CreatePlatformKey,
    CreateSigningKey,
    DeleteAppClient,
    ListPlatformKeys,
    PutAppClients,
    RevokeAppSecret,
    RevokePlatformKey,
    RevokeSigningKey,
    RotateIdentity,
)
from custody.protocol.identity.devices import DecideDevice, LookAtDevice, NewDeviceCode, PollDeviceCode
from custody.protocol.identity.domains import (
    DeleteSsoDomain,
    DiscoverSignOn,
    DomainSeen,
    PutSsoDomain,
    VerifySsoDomain,
)
from custody.protocol.identity.factors import (
    ConfirmSms,
    ConfirmTotp,
    EnrolSms,
    EnrolTotp,
    NewItemChallenge,
    NewPasskeyChallenge,
    NewRecoveryCodes,
    NewSmsCode,
    RegisterPasskey,
    RemovePasskey,
    RemoveTotp,
    StepUp,
    TouchItem,
)
from custody.protocol.identity.identities import LinkIdentity, RemediateWallets, UnlinkIdentity
from custody.protocol.identity.invitations import AcceptInvitation, PutInvitation, RevokeInvitation
from custody.protocol.identity.members import ChangeMember, EndMembership, InviteMember, WithdrawInvitation
from custody.protocol.identity.oidc import PutOidcProviders, PutProviderKeys
from custody.protocol.identity.origins import LookUpOrigin
from custody.protocol.identity.sessions import EndSession, RefreshSession, SwitchTenant
from custody.protocol.identity.sign_in import (
    NewEmailCode,
    NewNonce,
    NewSignInChallenge,
    SignInWithEmail,
    SignInWithPasskey,
    SignInWithWallet,
)
from custody.protocol.identity.sign_on import (
    BeginSignIn,
    DeleteSaml,
    ExchangeCode,
    FinishOAuth,
    FinishSaml,
    GrantCode,
    LookAtSignIn,
    MakeSamlKey,
    OpenSignIn,
    PutSaml,
    TestSignOn,
)
from custody.protocol.identity.tenants import (
    CreateTenant,
    PutConfig,
    PutMember,
    PutTokens,
    ReadTokens,
    RemoveMember,
    Vouch,
)
from custody.protocol.identity.users import (
    AssignExternalId,
    ChangeUser,
    ConnectOrCreateUser,
    CreateUser,
    DeactivateUser,
    DeleteUser,
    ReactivateUser,
)
from custody.protocol.identity.webhooks import (
    ChangeWebhook,
    CreateWebhook,
    DeleteWebhook,
    ReplayDelivery,
    RetryDelivery,
    RollWebhookSecret,
    SendWebhookTest,
    SignDelivery,
)
from custody.worker.handlers import Handler, on
from identity import status, vouch
from identity.administration import (
    api_keys,
    app_clients,
    app_secrets,
    channels,
    config,
    deliveries,
    origins,
    platform_keys,
    request_signatures,
    signing_keys,
    tenants,
    tokens,
    webhooks,
)
from identity.context import Identity
from identity.people import (
    colleagues,
    devices,
    email_codes,
    identities,
    invitations,
    lifecycle,
    members,
    passkeys,
    provisioning,
    recovery,
    sessions,
    sign_in,
    sms,
    step_up,
    totp,
    wallet_policy,
)
from identity.rotation import rotate
from identity.sign_on import (
    begin,
    domain_acts,
    exchange,
    granting,
    keys,
    oauth,
    put_oidc_providers,
    saml,
    saml_configs,
    saml_keys,
    trying,
)

HANDLERS: tuple[Handler[Identity], ...] = (
    # signing in
    on(NewNonce, sign_in.new_nonce),
    on(SignInWithWallet, sign_in.with_wallet),
    on(NewEmailCode, email_codes.new_code),
    on(SignInWithEmail, email_codes.sign_in),
    on(NewSignInChallenge, passkeys.new_sign_in_challenge),
    on(SignInWithPasskey, passkeys.sign_in),
    # signing in at identity providers
    on(BeginSignIn, begin.begin),
    on(OpenSignIn, oauth.open_sign_in),
    on(FinishOAuth, oauth.finish),
    on(ExchangeCode, exchange.exchange),
    on(LookAtSignIn, granting.look),
    on(GrantCode, granting.grant),
    on(FinishSaml, saml.finish),
    on(TestSignOn, trying.begin),
    on(PutSaml, saml_configs.put),
    on(DeleteSaml, saml_configs.delete),
    on(MakeSamlKey, saml_keys.make),
    # tenants' OIDC providers
    on(PutOidcProviders, put_oidc_providers.put),
    on(PutProviderKeys, keys.put),
    # sessions
    on(RefreshSession, sessions.refresh),
    on(EndSession, sessions.end),
    on(SwitchTenant, sessions.switch),
    # devices
    on(NewDeviceCode, devices.new_code),
    on(PollDeviceCode, devices.poll),
    on(LookAtDevice, devices.look),
    on(DecideDevice, devices.decide),
    # second factors
    on(EnrolTotp, totp.enrol),
    on(ConfirmTotp, totp.confirm),
    on(RemoveTotp, totp.remove),
    on(NewRecoveryCodes, recovery.renew),
    on(EnrolSms, sms.enrol),
    on(ConfirmSms, sms.confirm),
    on(NewSmsCode, sms.new_code),
    on(NewPasskeyChallenge, passkeys.new_challenge),
    on(RegisterPasskey, passkeys.register),
    on(RemovePasskey, passkeys.remove),
    on(StepUp, step_up.step_up),
    on(NewItemChallenge, passkeys.new_item_challenge),
    on(TouchItem, step_up.touch_item),
    # tenants and members
    on(CreateTenant, tenants.create),
    on(PutConfig, config.put),
    on(PutTokens, tokens.put),
    on(ReadTokens, tokens.read),
    on(PutMember, members.put),
    on(RemoveMember, members.remove),
    on(PutInvitation, invitations.put),
    on(RevokeInvitation, invitations.revoke),
    on(AcceptInvitation, invitations.accept),
    on(ChangeMember, colleagues.change),
    on(EndMembership, colleagues.end),
    on(InviteMember, colleagues.invite),
    on(WithdrawInvitation, colleagues.withdraw),
    # what people sign in with
    on(LinkIdentity, identities.link),
    on(UnlinkIdentity, identities.unlink),
    on(RemediateWallets, wallet_policy.remediate),
    on(Vouch, vouch.vouch),
    # people whom the operator names
    on(CreateUser, provisioning.create),
    on(AssignExternalId, provisioning.assign),
    on(ChangeUser, lifecycle.change),
    on(DeactivateUser, lifecycle.deactivate),
    on(ReactivateUser, lifecycle.reactivate),
    on(DeleteUser, lifecycle.delete),
    on(ConnectOrCreateUser, provisioning.connect_or_create),
    # a tenant's API keys
    on(CreateApiKey, api_keys.create),
    on(RevokeApiKey, api_keys.revoke),
    on(CreateApiKeyIn, api_keys.create_in),
    on(RevokeApiKeyIn, api_keys.revoke_in),
    # app clients, request-signing keys, platform keys
    on(PutAppClients, app_clients.put),
    on(DeleteAppClient, app_clients.delete),
    on(LookUpOrigin, origins.look_up),
    on(CreateAppSecret, app_secrets.rotate),
    on(RevokeAppSecret, app_secrets.revoke),
    on(CreateSigningKey, signing_keys.create),
    on(RevokeSigningKey, signing_keys.revoke),
    on(CreatePlatformKey, platform_keys.create),
    on(RevokePlatformKey, platform_keys.revoke),
    on(ListPlatformKeys, platform_keys.list_all),
    on(CheckRequestSignature, request_signatures.check),
    on(RotateIdentity, rotate.rotate),
    # single sign-on: e-mail domains
    on(PutSsoDomain, domain_acts.put),
    on(VerifySsoDomain, domain_acts.verify),
    on(DeleteSsoDomain, domain_acts.delete),
    on(DomainSeen, domain_acts.record),
    on(DiscoverSignOn, domain_acts.discover),
    # webhooks
    on(CreateWebhook, webhooks.create),
    on(ChangeWebhook, webhooks.change),
    on(RollWebhookSecret, webhooks.roll_secret),
    on(DeleteWebhook, webhooks.delete),
    on(SendWebhookTest, deliveries.send_test),
    on(RetryDelivery, deliveries.retry),
    on(ReplayDelivery, deliveries.replay),
    on(SignDelivery, webhooks.sign),
    # notification channels
    on(CreateChannel, channels.create),
    on(ChangeChannel, channels.change),
    on(DeleteChannel, channels.delete),
    on(TestChannel, channels.test),
    on(RetryNotice, channels.retry),
    on(OpenChannel, channels.open_target),
    # every worker
    on(PublicKeys, status.public_keys),
    on(Status, status.status),
)
