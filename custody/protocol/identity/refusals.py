"""Refusals of identity that the api raises too, or names in the contract: one definition for both."""

from custody.kit.errors import Conflict, Forbidden, Gone, Invalid, NotFound, TooMany, Unauthenticated, Unavailable


class AccountUnknown(Forbidden):
    """Nobody of this tenant has this account, and the tenant lets nobody in by sign-on alone; ask for an invitation."""


class ApiKeyAbsent(NotFound):
    """No such active API key."""


class AlreadyMember(Conflict):
    """You are already a member of this tenant; the invitation changes nothing."""


class AppClientAbsent(NotFound):
    """No such app client."""


class AppClientTaken(Conflict):
    """An app client with this id already exists."""


class AppSecretAbsent(NotFound):
    """No such active secret."""


class BadApiKey(Invalid):
    """apiKeyHash must be 64 lower-case hex digits (a SHA-256), or a raw key of 32 to 256 characters."""


class BadApprovalConfig(Invalid):
    """approvalConfig or authAbuseConfig is not valid."""


class BadChannelTarget(Invalid):
    """The target is not one that this kind of channel may have."""


class BadClientState(Invalid):
    """state: it must be at most 512 printable ASCII characters."""


class BadCodeChallenge(Invalid):
    """code_challenge must be 43 characters in base64url, and code_challenge_method S256."""


class BadRedirectUri(Invalid):
    """redirect_uri: it is not on the list of this app client; add it to allowedRedirectUrls, character by character."""


class BadTokens(Invalid):
    """A token must be `evm:<chainId>:<address>` or `solana:<mint>`, be named once, and not be called like a coin."""


class ChallengeInvalid(Unauthenticated):
    """The challenge is unknown, used, older than five minutes or issued for another purpose; request new options."""


class ChannelAbsent(NotFound):
    """No such notification channel."""


class ChannelDisabled(Conflict):
    """This notification channel is disabled; enable it first."""


class ChannelTested(TooMany):
    """This notification channel was tested in the last minute; retry later."""


class CodeInvalid(Unauthenticated):
    """The code is wrong, used, or older than ten minutes."""


class CodeRedirectMismatch(Unauthenticated):
    """redirect_uri is not the one that this code was sent to; begin again."""


class CodeTenantMismatch(Unauthenticated):
    """The code belongs to another tenant or provider; begin again."""


class CodeVerifierMismatch(Unauthenticated):
    """code_verifier does not belong to this code; begin again."""


class Deactivated(Unauthenticated):
    """This account is deactivated."""


class DefaultTaken(Conflict):
    """Another app client is already the default; change that one first."""


class DeliveryAbsent(NotFound):
    """No such delivery."""


class DeliveryDelivered(Conflict):
    """This delivery has already been delivered; replay it to send its event again."""


class DeliveryUnderWay(Conflict):
    """This delivery is still pending or being sent; wait until it has been delivered or has failed."""


class DeviceCodeAbsent(NotFound):
    """No device of your tenants shows this code, or the code has expired."""


class DeviceDecided(Conflict):
    """This code was already approved or denied."""


class EmailMismatch(Forbidden):
    """The invitation is for another address than those that you have proven; add that one to your account first."""


class EmailUnverified(Forbidden):
    """The invitation is for an address that you have not proven; sign in with a code sent to it, or add it."""


class DnsRecordMissing(Conflict):
    """The TXT record is not there, or says something else; publish exactly `expected` at `name`, then verify again."""


class DomainTaken(Conflict):
    """Another tenant has verified this domain and its record is still published; remove that record, then verify."""


class EnrolmentAbsent(Conflict):
    """No enrolment is waiting for its first code; start the enrolment again."""


class EventForgotten(Conflict):
    """The event of this delivery is older than 30 days and has been deleted."""


class ExchangeCodeInvalid(Unauthenticated):
    """The code is unknown, used, or older than a minute; begin again."""

    def __init__(self) -> None:
        super().__init__(code="code_invalid")


class ExternalIdNeedsTenant(Invalid):
    """walletExternalId belongs to a tenant: send tenantId with it."""


class ExternalIdSet(Conflict):
    """This user already has another walletExternalId in this tenant; it is never changed."""


class ExternalIdTaken(Conflict):
    """This walletExternalId is another user's in this tenant; find them with GET /platform/users/lookup."""


class FactorAbsent(NotFound):
    """No such second factor."""


class FactorExists(Conflict):
    """You already have an authenticator; remove it before you enrol another."""


class HigherRole(Forbidden):
    """Only an owner gives or takes the roles owner and admin."""


class IdentityAbsent(NotFound):
    """No such linked identity."""


class IdentityChoice(Invalid):
    """Send exactly one of `wallet`, `email` and `oauth`."""


class IdentityTaken(Conflict):
    """This identity belongs to another account; sign in with it and unlink it there first."""


class InvitationAbsent(NotFound):
    """No such pending invitation."""


class InvitationAccepted(Conflict):
    """This invitation was already accepted; it works once."""


class InvitationExpired(Gone):
    """This invitation has expired; ask for a new one."""


class InvitationInvalid(NotFound):
    """No invitation to this tenant has this token; compare it with the one you were sent."""


class InvitationRevoked(Gone):
    """This invitation was revoked or replaced by a newer one; use the newest, or ask for one."""


class InvitationTokenRequired(Invalid):
    """Send the invitation's `token`: this tenant lets nobody join by their address alone."""


class KeysWanted(Unavailable):
    """The keys of the identity provider are being fetched; retry shortly."""


class LastApiKey(Conflict):
    """Without this key the tenant has no active API key: make a new one first, or repeat with {"force": true}."""


class LastLoginMethod(Conflict):
    """This is the account's last way to sign in: link or register another first."""


class LastOwner(Conflict):
    """This is the tenant's last owner: make another member owner first, or repeat with {"force": true}."""


class MemberAbsent(NotFound):
    """This user is not a member of this tenant."""


class MemberElsewhere(Conflict):
    """This person is a member of another tenant, which may rely on this wallet; only they can unlink it."""


class MembershipRemoved(Forbidden):
    """You were removed from this tenant; an administrator must invite you again."""


class NoFactor(Conflict):
    """Recovery codes replace a second factor; enrol a second factor first."""


class NonceInvalid(Unauthenticated):
    """The nonce is unknown, used or older than five minutes; get a new one from GET /auth/nonce."""


class NoticeAbsent(NotFound):
    """No such message."""


class NoticeNotFailed(Conflict):
    """Only a message that has failed is sent again."""


class NoticeTriedEnough(Conflict):
    """This message was tried 20 times and is not sent any more."""


class NotAMember(Forbidden):
    """You are not a member of this tenant."""

    def __init__(self) -> None:
        super().__init__(code="not_a_member")


class NotLinkable(Conflict):
    """A tenant's own provider signs people in to that tenant alone; link Google, Discord, X, a wallet or an address."""


class NotWallet(Conflict):
    """This linked account is no wallet; the wallet policy removes wallets only."""


class NotSubscribed(Conflict):
    """The webhook is no longer subscribed to this event."""


class OneWalletOnly(Conflict):
    """This tenant allows one linked wallet for each person; unlink the other first."""


class LastOwnerStays(Conflict):
    """You are this tenant's last owner: make another member owner first."""


class OwnAccount(Conflict):
    """This is your own account; unlink its wallets with DELETE /auth/identities/{id}."""


class OwnerOnly(Forbidden):
    """Only an owner may do this to an owner."""


class PasskeyAbsent(NotFound):
    """No such passkey."""


class PasskeyCloned(Unauthenticated):
    """This passkey's counter went backwards, as a clone's does; sign in another way and remove it."""


class PasskeyInvalid(Unauthenticated):
    """The passkey's response is not valid for this site."""


class PasskeyMalformed(Invalid):
    """Not a WebAuthn response in JSON form."""


class PasskeyRefused(Invalid):
    """This passkey cannot be registered: user verification is missing, or the response or key is invalid."""


class PasskeyTaken(Conflict):
    """This passkey is already registered."""


class PasskeyUnknown(Unauthenticated):
    """This passkey is not registered here."""


class PersonRequired(Forbidden):
    """Only a signed-in owner or admin may change authAbuseConfig or appClients; omit them."""


class ProviderAbsent(NotFound):
    """No such provider, or it is switched off here."""


class RefreshTokenInvalid(Unauthenticated):
    """The refresh token is not valid; sign in again."""


class RefreshTokenReused(Unauthenticated):
    """This refresh token was used before, so its session has ended; sign in again."""


class RegistrationClosed(Forbidden):
    """Registration is closed: ask the operator to make you a member of a tenant."""


class RetryBudgetUsed(Conflict):
    """This delivery has used all attempts that its webhook allows; replay it to send its event again."""


class SamlConfigAbsent(NotFound):
    """This tenant has no SAML configuration."""


class SamlUnsolicited(Invalid):
    """This answer belongs to no sign-in that began here: start in your application, not at the identity provider."""


class SessionAbsent(NotFound):
    """No such session."""


class SignInStateInvalid(Invalid):
    """This sign-in is unknown, used, older than ten minutes, or was begun in another browser; begin again."""


class SignatureInvalid(Unauthenticated):
    """The signature was not made by the wallet named in the message."""


class SignatureKeyUnknown(Unauthenticated):
    """No active key may sign this request; check X-Service-Signing-Key-Id."""


class SigningKeyAbsent(NotFound):
    """No such active key."""


class SiweChainUnknown(Unauthenticated):
    """The message names a chain that is not configured here."""


class SsoDomainAbsent(NotFound):
    """This tenant has no such domain."""


class SsoRequired(Forbidden):
    """This tenant requires single sign-on for your e-mail domain; sign in by one of `methods`."""


class TenantIdReserved(Invalid):
    """This tenant id is reserved; choose another."""


class TenantKeyTaken(Conflict):
    """This API key already belongs to another tenant; every tenant needs its own."""


class TenantTaken(Conflict):
    """A tenant with this id already exists."""


class TestNotReplayed(Conflict):
    """A test delivery cannot be replayed; send a new test."""


class TooManyApiKeys(Conflict):
    """A tenant may have at most 10 API keys that work; revoke one first."""


class TooManyAppClients(Conflict):
    """A tenant may have at most 50 app clients, of 3 MiB together; remove some, or make their lists shorter."""


class TooManyAppSecrets(Conflict):
    """An app client may have at most 10 active secrets; revoke one first."""


class TooManyAttempts(TooMany):
    """Too many attempts; wait before the next one."""


class TooManyInvitations(Conflict):
    """A tenant may have at most 500 pending invitations; revoke one first."""


class TooManyPasskeys(Conflict):
    """You already have 20 passkeys; remove one that you do not use."""


class TooManySentAgain(TooMany):
    """A webhook may get at most 100 tests and replays a minute, and have at most 100 of them open; retry later."""


class TooManySigningKeys(Conflict):
    """A tenant may have at most 10 active request-signing keys; revoke one first."""


class TooManySamlKeys(Conflict):
    """Three keys open assertions already; wait until one ends, or end them at once with formerDays 0."""


class TooManySsoDomains(Conflict):
    """A tenant may have at most 20 domains; delete one that it does not use."""


class TooManyWebhookSecrets(Conflict):
    """Four secrets of this webhook are in use: wait until one ends, or end them all with {"overlapSeconds": 0}."""


class UnknownAppClient(Invalid):
    """client_id: the tenant has no such app client, or it is switched off."""


class UserAbsent(NotFound):
    """No such user."""


class UserActive(Conflict):
    """Only a deactivated user is deleted: send POST /platform/users/{userId}/deactivate first."""


class UserHasTenant(Conflict):
    """The user has an own tenant, whose wallets would be lost: delete `tenantId` first, or leave them deactivated."""


class UserUnverified(Unauthenticated):
    """The passkey did not verify you (by PIN, fingerprint or face); this action requires user verification."""


class WebhookAbsent(NotFound):
    """No such webhook."""


class WebhookDeleted(Conflict):
    """The webhook of this delivery was deleted."""


class WebhookDisabled(Conflict):
    """This webhook is disabled; enable it first."""


class WebhookUrlChanged(Conflict):
    """The webhook's URL has changed since; an event is sent only to the URL it was recorded for."""
