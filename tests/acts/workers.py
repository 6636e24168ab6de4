"""Commands that no route asks for."""

from tests.acts.act import ABSENT, OPERATOR, PUBLIC, Act

ACTS = (
    Act((), PUBLIC, command="PublicKeys", nothing={}, senders="api proxy"),
    Act((), PUBLIC, command="Status", nothing={}, senders="api operator proxy scheduler"),
    Act((), PUBLIC, command="SealCheckpoint", nothing={}, senders="scheduler"),
    Act((), PUBLIC, command="TakePrices", nothing={"body": b"{}", "signature": ""}, senders="scheduler"),
    Act((), OPERATOR, command="RotateKeys", nothing={"act": "status"}, senders="operator"),
    Act((), OPERATOR, command="AcceptRestore", nothing={}, senders="operator"),
    Act((), OPERATOR, command="MendAuditLogs", nothing={"logs": ["absent"]}, senders="operator"),
    Act((), OPERATOR, command="CreatePlatformKey", nothing={"name": "x", "scopes": ["absent"]}, senders="operator"),
    Act((), OPERATOR, command="RevokePlatformKey", nothing={"key": ABSENT}, senders="operator"),
    Act((), OPERATOR, command="ListPlatformKeys", nothing={}, senders="operator"),
    Act((), OPERATOR, command="RotateIdentity", nothing={"act": "step"}, senders="operator"),
)
