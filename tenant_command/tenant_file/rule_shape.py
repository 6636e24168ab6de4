"""The shape of policy rules in files. A policy set is named where the API has its id."""

from typing import Any, Final

from tenant_command.kinds import (
    Amount,
    Chain,
    Flag,
    ListOf,
    MapOf,
    Maybe,
    Moment,
    Of,
    Record,
    Text,
    Variants,
    Whole,
)

_TEXTS: Final = ListOf(Text(), unordered=True)
_LIMIT: Final = Of(Maybe(Amount()), None)
_WHERE: Final = ListOf(
    Record({"arg": Of(Text()), "op": Of(Text()), "value": Of(Text(), open=True), "values": Of(_TEXTS, open=True)}),
    unordered=True,
)
_CONSTRAINTS: Final = Record(
    {
        **{
            name: Of(Maybe(_TEXTS), None)
            for name in ("recipientAllowlist", "recipientBlocklist", "spenderAllowlist", "spenderBlocklist")
        },
        "maxAmount": _LIMIT,
        "maxNativeValueWei": _LIMIT,
        "abi": Of(Text(), open=True),
        "where": Of(_WHERE, []),
    }
)
_CONTRACT: Final = Record(
    {
        "address": Of(Text()),
        "selectors": Of(_TEXTS),
        "chainId": Of(Maybe(Whole()), None),
        "constraints": Of(MapOf(_CONSTRAINTS), {}),
        "unread": Of(Text(), "ask"),
        "typedData": Of(ListOf(Record({"type": Of(Text()), "where": Of(_WHERE, [])})), open=True),
    }
)
_APPROVER: Final = Record({"userId": Of(Text()), "keys": Of(_TEXTS)})
_HOURS: Final = Record({"start": Of(Whole()), "end": Of(Whole())})

CONFIGS: Final[dict[str, dict[str, Of]]] = {
    "spending-limit": {
        **dict.fromkeys(("maxPerTransaction", "maxPerTx", "maxPerDay", "maxPerWeek", "maxTotal"), _LIMIT),
        "asset": Of(Maybe(Text()), None),
        "maxRentPerDay": _LIMIT,
        "alertPercents": Of(ListOf(Whole()), [80, 100]),
        "scope": Of(Text(), "agent"),
    },
    "approved-addresses": {"addresses": Of(_TEXTS), "mode": Of(Text(), "whitelist")},
    "auto-approve-threshold": {"threshold": Of(Amount()), "asset": Of(Maybe(Text()), None)},
    "time-window": {
        "allowedHours": Of(ListOf(_HOURS), []),
        "allowedDays": Of(ListOf(Whole(), unordered=True), []),
        "timezone": Of(Text(), "UTC"),
        "notBefore": Of(Maybe(Moment()), None),
        "notAfter": Of(Maybe(Moment()), None),
    },
    "rate-limit": {"maxTxPerHour": Of(Maybe(Whole()), None), "maxTxPerDay": Of(Maybe(Whole()), None)},
    "allowed-chains": {"chains": Of(ListOf(Chain(), unordered=True))},
    "contract-allowlist": {"contracts": Of(ListOf(_CONTRACT))},
    "approval-quorum": {
        "threshold": Of(Whole()),
        "approvers": Of(ListOf(_APPROVER)),
        "above": _LIMIT,
        "asset": Of(Maybe(Text()), None),
    },
    "message-allowlist": {
        "siweDomains": Of(_TEXTS, []),
        "siwsDomains": Of(_TEXTS, []),
        "patterns": Of(_TEXTS, []),
    },
    "policy-set": {"policySet": Of(Text())},
    "new-recipient": {"known": Of(_TEXTS, [])},
    "circuit-breaker": {
        "minutes": Of(Whole()),
        "refused": Of(Maybe(Whole()), None),
        "failed": Of(Maybe(Whole()), None),
    },
    "external-check": {
        "url": Of(Text()),
        "publicKeys": Of(_TEXTS),
        "onFailure": Of(Text(), "ask"),
        "timeoutSeconds": Of(Whole(), 3),
    },
    "delay": {"minutes": Of(Whole()), "above": _LIMIT, "asset": Of(Maybe(Text()), None)},
}


def _rule(config: dict[str, Of]) -> Record:
    return Record(
        {
            "type": Of(Text()),
            "id": Of(Maybe(Text()), None),
            "enabled": Of(Flag(), True),
            "config": Of(Record({**config, "until": Of(Maybe(Moment()), None)})),
        }
    )


RULES: Final = ListOf(Variants({kind: _rule(config) for kind, config in CONFIGS.items()}))


def is_enabled(rule: dict[str, Any]) -> bool:
    """Tell whether a rule is evaluated."""
    return rule.get("enabled", True) is not False
