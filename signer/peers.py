"""Which process may send which message on which socket, as one table."""

from custody.protocol import messages as m

# The uid of the operator (root, or the owner of the state folder) is matched separately.
API = frozenset(
    {
        m.CreateTenant, m.DeleteTenant, m.PutJudgingConfig, m.CreateAgents, m.DeleteAgent, m.ReplacePolicies,
        m.MintAgentToken,
        m.RevokeAgentTokens, m.SignEvm, m.SignTypedData, m.SignSolana, m.Approve, m.Deny, m.PublicKeys, m.Status,
        m.BroadcastOutcome, m.CreateSecret, m.RotateSecret, m.DeleteSecret, m.CreateCredentialRoute,
        m.ChangeCredentialRoute, m.DeleteCredentialRoute,
    }
)  # fmt: skip
SCHEDULER = frozenset({m.BroadcastOutcome, m.Status})
OPERATOR = frozenset({m.Status})
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
