"""Which process may send which message on which socket, as one table."""

from custody.protocol import messages as m

# The uid of the operator (root, or the owner of the state folder) is matched separately.
API = frozenset(
    {
        # tenants, agents, secrets, signing
        m.CreateTenant, m.DeleteTenant, m.PutConfig, m.CreateAgents, m.DeleteAgent, m.ReplacePolicies, m.MintAgentToken,
        m.RevokeAgentTokens, m.CreateSecret, m.RotateSecret, m.DeleteSecret, m.CreateCredentialRoute,
        m.ChangeCredentialRoute, m.DeleteCredentialRoute, m.SignEvm, m.SignTypedData, m.SignSolana,
        m.ReplaceEvm, m.Approve, m.Deny, m.BroadcastOutcome, m.CheckRequestSignature, m.PublicKeys, m.Status,
        m.Simulate, m.IssueReceipt,
        # administration of a tenant
        m.PutAppClients, m.DeleteAppClient, m.NewAppSecret, m.RevokeAppSecret, m.NewSigningKey, m.RevokeSigningKey,
        m.Freeze, m.Unfreeze, m.PutMember, m.RemoveMember,
        # webhooks
        m.CreateWebhook, m.ChangeWebhook, m.DeleteWebhook, m.SendWebhookTest, m.RetryDelivery, m.ReplayDelivery,
        # people
        m.NewNonce, m.SignInWithWallet, m.NewEmailCode, m.SignInWithEmail, m.RefreshSession, m.NewDeviceCode,
        m.PollDeviceCode, m.LookAtDevice, m.DecideDevice, m.EndSession,
        m.SwitchTenant,
        # second factors
        m.NewSignInChallenge, m.SignInWithPasskey, m.EnrolTotp, m.ConfirmTotp, m.RemoveTotp, m.NewRecoveryCodes,
        m.EnrolSms, m.ConfirmSms, m.NewSmsCode, m.NewPasskeyChallenge, m.RegisterPasskey, m.RemovePasskey, m.StepUp,
    }
)  # fmt: skip
SCHEDULER = frozenset({m.SignDelivery, m.ChainOutcome, m.Expire, m.SealCheckpoint, m.Status})
OPERATOR = frozenset(
    {m.Status, m.CreatePlatformKey, m.RevokePlatformKey, m.ListPlatformKeys, m.RotateKeys, m.AcceptRestore}
)
PROXY = frozenset({m.RevealForRoute, m.PublicKeys, m.Status})

type Table = dict[str, frozenset[type]]

SIGN_SOCKET: Table = {"api": API, "scheduler": SCHEDULER, "operator": OPERATOR}
# A socket of its own, so that who reaches the values of secrets reaches nothing that signs, and the other way round.
REVEAL_SOCKET: Table = {"proxy": PROXY}


def names_of(uid: int, table: Table, peer_uids: dict[str, int], own_uid: int) -> frozenset[str]:
    """The processes of a socket that a peer with this uid may claim to be; empty for a stranger."""
    named = {name for name in table if peer_uids.get(name, own_uid) == uid and name != "operator"}
    if uid in (0, own_uid) and "operator" in table:
        named.add("operator")
    return frozenset(named)
