"""Which process may send which message on which socket, as one table."""

from custody.protocol import messages as m

# The uid of the operator (root, or the owner of the state folder) is matched separately.
API = frozenset(
    {
        m.CreateTenant, m.DeleteTenant, m.PutJudgingConfig, m.CreateAgents, m.DeleteAgent, m.ReplacePolicies,
        m.MintAgentToken,
        m.RevokeAgentTokens, m.SignEvm, m.SignTypedData, m.SignSolana, m.Approve, m.Deny, m.PublicKeys, m.Status,
        m.BroadcastOutcome,
    }
)  # fmt: skip
SCHEDULER = frozenset({m.BroadcastOutcome, m.Status})
OPERATOR = frozenset({m.Status})

SIGN_SOCKET: dict[str, frozenset[type]] = {"api": API, "scheduler": SCHEDULER, "operator": OPERATOR}


def names_of(uid: int, peer_uids: dict[str, int], own_uid: int) -> frozenset[str]:
    """The processes a peer with this uid may claim to be; empty for a stranger."""
    named = {name for name in SIGN_SOCKET if peer_uids.get(name, own_uid) == uid and name != "operator"}
    if uid in (0, own_uid):
        named.add("operator")
    return frozenset(named)
