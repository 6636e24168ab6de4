"""Addresses on the lists of an agent's rules, and who set each list. Pure."""

from typing import Final

from words.shapes import PolicyRule

_BLOCKED: Final = "BLOCKED"
_APPROVED: Final = "approved"


def names_on_lists(rules: list[PolicyRule]) -> dict[str, str]:
    """Addresses on the lists of an agent's rules, with which list it is; an approved list only if the tenant set it."""
    found: dict[str, str] = {}
    for rule in rules:
        kind = _list_kind(rule)
        if kind is None or (kind == _APPROVED and rule.source == "agent"):
            continue
        for address in _addresses(rule):
            # What is blocked by one list is blocked, whichever others it stands on.
            if kind == _BLOCKED or address not in found:
                found[address] = f"on the {kind} list of this agent"
    return found


def self_listed(rules: list[PolicyRule]) -> frozenset[str]:
    """Addresses that the agent itself put on a list of approved ones: nobody else vouches for them."""
    own = [rule for rule in rules if rule.source == "agent" and _list_kind(rule) == _APPROVED]
    return frozenset(address for rule in own for address in _addresses(rule))


def own_rules(rules: list[PolicyRule]) -> frozenset[str]:
    """The ids of rules that the agent itself set."""
    return frozenset(rule.id for rule in rules if rule.id and rule.source == "agent")


def address_key(address: str) -> str:
    """The spelling by which an address is looked up: the case of an EVM one is only its checksum."""
    return address.lower() if address[:2].lower() == "0x" else address


def _list_kind(rule: PolicyRule) -> str | None:
    if rule.type != "approved-addresses" or not rule.enabled:
        return None
    return _BLOCKED if rule.config.get("mode") == "blacklist" else _APPROVED


def _addresses(rule: PolicyRule) -> list[str]:
    addresses = rule.config.get("addresses")
    return [address_key(one) for one in addresses if isinstance(one, str)] if isinstance(addresses, list) else []
