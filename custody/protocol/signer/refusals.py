"""Refusals of the signer that the api raises too, or names in the contract: one definition for both."""

from custody.kit.errors import Conflict, Forbidden, Invalid, NotFound, TooMany, Unauthenticated, Unavailable


class AlreadyReplaced(Conflict):
    """Another transaction has used this nonce since."""


class ApprovalAbsent(NotFound):
    """No such approval."""


class ApprovalChanged(Conflict):
    """The order has changed since you read it: its digest differs. Read it again before you decide."""


class ApprovalExpired(Conflict):
    """This approval has expired; the agent must send the request again."""


class ApprovalResolved(Conflict):
    """This approval has already been decided."""


class ApprovalStale(Conflict):
    """This message has other signers, so its blockhash cannot be renewed; the agent must send the request again."""


class ApproverKeyAbsent(NotFound):
    """No such approver key."""


class ApproverKeyRevoked(Conflict):
    """This key was revoked for good; enrol another one."""


class ApproverKeyTaken(Conflict):
    """This tenant has this approver key already; every person registers a key of their own."""


class BadApproverKey(Invalid):
    """publicKey: must be the SPKI of a P-256 key in standard base64, 91 bytes with an uncompressed point."""


class BadCredentialId(Invalid):
    """credentialId: must be base64url without padding, of 1 to 1,023 bytes."""


class TooManyAccounts(Conflict):
    """The agent has reached its limit of Bitcoin accounts. Use an existing account with another address index."""


class AuthorizationStale(Conflict):
    """The signer or quorum behind this order is no longer valid. Deny the order; the agent must send it again."""


class AutomationDisabled(Forbidden):
    """This tenant does not take this kind of authorization."""


class BadDescription(Invalid):
    """description: must have at most 1,000 characters and no NUL."""


class BadExpiry(Invalid):
    """expiresAt: give an ISO 8601 time in the future with its zone, such as 2100-01-31T12:00:00Z."""


class BadNotBefore(Invalid):
    """notBefore: give an ISO 8601 time with its zone that is earlier than expiresAt, or null."""


class BadPublicKey(Invalid):
    """publicKey: give a P-256 key as standard base64 of its SubjectPublicKeyInfo, the point uncompressed."""


class BadThreshold(Invalid):
    """threshold: must be at least 1, and at most the number of members."""


class RefreshUnderWay(Conflict):
    """Another process is refreshing the access token of this secret; ask again in a moment."""


class CredentialRouteAbsent(NotFound):
    """No such credential route."""


class PaymentRouteAbsent(NotFound):
    """No such payment route."""


class CredentialsMoving(Conflict):
    """Concurrent changes to secrets or credential routes collided; repeat the request."""


class CredentialRefused(Invalid):
    """issueCredential: only signers of keyType hmac have a credential; a p256 signer signs with its own key."""


class FrozenByOperator(Conflict):
    """The operator froze this tenant, and only the operator can unfreeze it; nothing was changed."""


class NoQuorum(Conflict):
    """This agent has no enabled approval-quorum rule, so there is nothing to break."""


class NotEvm(Conflict):
    """Only an EVM transaction that is signed and not final can be replaced."""


class NotRecorded(Conflict):
    """This transaction was signed before the service recorded what a receipt states, so it has no receipt."""


class NotSigned(Conflict):
    """This transaction was not signed, so it has no receipt."""


class PoliciesByAdmins(Forbidden):
    """Only an owner or admin may set policies on agents; omit applyPolicies."""


class PoliciesMoving(Conflict):
    """Another request changed the policies at the same time; read them again and repeat the request."""


class PolicySetAbsent(NotFound):
    """No such policy set."""


class PolicySetNamed(Conflict):
    """Agents name this policy set; replace their rules first."""


class PolicySetStays(Conflict):
    """The set of every agent cannot be deleted; replace its rules by none."""


class UnknownPolicySet(Invalid):
    """A rule names a policy set that this tenant does not have; make it first."""


class PolicyLoosened(Forbidden):
    """An agent or an app client may only tighten policies."""


class QuorumNotMet(Forbidden):
    """Too few members of the key quorum agreed; each subject and each key counts once."""


class QuorumByPerson(Forbidden):
    """Only a person with a recent second factor may add or change an approval-quorum rule."""


class QuorumNeeded(Forbidden):
    """Named approvers must vote for this: send a vote with the approval, or looser policies to .../policies/votes."""


class QuorumAbsent(NotFound):
    """No such key quorum of this agent."""


class QuorumRevoked(Conflict):
    """This key quorum was revoked; create a new one."""


class RequestTimeRequired(Unauthenticated):
    """A signed request needs X-Service-Request-Timestamp or X-Service-Request-Expires-At."""


class SecretAbsent(NotFound):
    """No such secret."""


class SecretNameTaken(Conflict):
    """A secret with this name already exists."""


class SecretOfRouteFixed(Invalid):
    """secretId: the secret of a route cannot change; create a new route for the other secret and delete this one."""


class SignerPermission(Forbidden):
    """The signer lacks the permission that this route needs."""


class SignerAbsent(NotFound):
    """No such signer of this agent."""


class MetadataTooLarge(Invalid):
    """metadata: must be at most 4 KiB as JSON."""


class SignerRevoked(Conflict):
    """This signer was revoked; create a new one."""


class SignerRequired(Forbidden):
    """This action needs a signer of the agent: send X-Service-Signer-Id with X-Service-Signature, or a key quorum's."""


class SignerUnknown(Unauthenticated):
    """This agent has no active signer or key quorum with this id."""


class TooManyApproverKeys(Conflict):
    """You have 8 approver keys, as many as one may have; revoke one first."""


class TooManyBatches(TooMany):
    """Too many agent batches of this tenant are queued; retry when one has finished."""


class TooManyQuorums(Conflict):
    """An agent has at most 32 living key quorums; revoke one first."""


class TooManySigners(Conflict):
    """An agent has at most 64 living signers; revoke one first."""


class TransactionAbsent(NotFound):
    """No such transaction."""


class TransactionFinal(Conflict):
    """The chain has already used this nonce; the transaction can no longer be replaced."""


class TypedDataAmbiguous(Invalid):
    """Two independent implementations do not read this document alike, so it is not signed."""


class AgentIdReserved(Invalid):
    """id: an id that begins with `user-wallet-` is for wallets of people; choose another one."""


class WalletOfPerson(Forbidden):
    """This wallet belongs to a person of the tenant, who alone signs with it, at /user/me/wallet."""


class UserSignerRefused(Invalid):
    """A signer of a person's wallet has a credential that is made here, and may neither export nor administer."""


class PsbtAmbiguous(Invalid):
    """psbtBase64: two readers differ about it. Leave out hints and signatures of others, or use another library."""


class UnknownMember(Invalid):
    """A member is no living signer or key quorum of this agent."""


class UnknownPermission(Invalid):
    """permissions: an unknown word."""


class UnknownPolicy(Invalid):
    """policyIds: no rule of this agent has this id."""


class UnknownRouteField(Invalid):
    """Unknown field of a credential route."""


class UnknownApprover(Invalid):
    """A person whom the rule names is no member of this tenant with this living approver key; register it first."""


class UnknownSubject(Invalid):
    """subjectId: no member of this tenant has this user id."""


class ValueOutOfRange(Invalid):
    """value is larger than 2^256 - 1."""


class UnsupportedChain(Invalid):
    """Transfers are made on EVM chains only; chainId names another."""


class ValueTooLong(Invalid):
    """value: must be at most 64 KiB as UTF-8."""


class VoteRefused(Forbidden):
    """This vote does not count."""


class IntentAbsent(NotFound):
    """No such intent."""


class IntentTampered(Unavailable):
    """This intent is not what the signer wrote; nothing of it is carried out. The operator's log says more."""


class IntentNotPending(Conflict):
    """This intent is not pending any more."""


class IntentNotAuthorized(Conflict):
    """Only an authorised intent is executed."""


class IntentClosed(Conflict):
    """This intent is over already."""


class IntentChanged(Conflict):
    """The intent differs from what you read: its digest is another one. Read it again before you decide."""


class OwnIntent(Forbidden):
    """The proposer of an intent may not authorise it: another owner or admin must."""


class PersonRequired(Forbidden):
    """Intents of this type change who may do what: an owner or admin must propose them, signed in."""


class TooManyIntents(Conflict):
    """This tenant has 1,000 intents that are not over; close some of them."""


class NonceOpen(Conflict):
    """An earlier transaction of this wallet was signed and never sent; send or replace it first."""


class ResultTooLarge(Invalid):
    """executionResult has at most 16 KiB."""
