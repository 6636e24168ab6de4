"""A second, slower implementation of the rules for limits, thresholds and what they leave uncovered.

It reads the configs as sent and shares nothing with the engine but the types of its input.
"""

from datetime import datetime

COINS = {"evm": "evm:native", "solana": "solana:native"}


def decide(rules, subject, facts):
    """The decision over an order under enabled spending-limit and auto-approve-threshold rules."""
    hard = soft = False
    named = set()
    for rule in (rule for rule in rules if rule.enabled):
        if (end := rule.config.get("until")) and datetime.fromisoformat(end) <= facts.now:
            is_soft = rule.type == "auto-approve-threshold"
            hard, soft = hard or not is_soft, soft or (is_soft and not facts.approving)
        asset = rule.config.get("asset", COINS[subject.family])
        named |= {rule.config["asset"]} if "asset" in rule.config else set(COINS.values())
        new = sum(effect.amount for effect in subject.effects if asset in _names(effect, subject) and _counts(effect))
        new = sum(facts.worth.values()) if asset == "usd" else new
        if rule.type == "auto-approve-threshold":
            soft = soft or (new > int(rule.config["threshold"]) and not facts.approving)
        elif new > 0:
            hard = hard or _over(rule.config, new, facts.spend.get(asset), facts.floor.get(asset, 0))
        if "maxRentPerDay" in rule.config:
            named.add("solana:rent")
            rent = sum(effect.amount for effect in subject.effects if "solana:rent" in _names(effect, subject))
            before = facts.spend.get("solana:rent")
            hard = hard or bool(rent and rent + (before.day if before else 0) > int(rule.config["maxRentPerDay"]))
    loose = [effect for effect in subject.effects if named and _loose(effect, subject, named, facts.worth)]
    mine = "usd" in named or any(_limits_on(effect, subject, named) for effect in loose)
    if loose and facts.uncovered == "refuse":
        hard = True
    elif loose and (facts.uncovered == "queue" or mine):
        soft = soft or not facts.approving
    return "refuse" if hard else "queue" if soft else "sign"


def _names(effect, subject):
    more = {("evm:native", "transfer"): f"evm:{subject.chain_id}:native", ("solana:native", "fee"): "solana:rent"}
    other = more.get((effect.asset, effect.kind))
    return {effect.asset, other} if other and (effect.kind != "fee" or effect.to) else {effect.asset}


def _limits_on(effect, subject, named):
    """Return what is limited, of that which an uncovered effect is about."""
    if effect.kind != "unread":
        return _names(effect, subject) & named
    if not effect.call and (not effect.unknown or not subject.verifying_contract):
        return named
    tokens = {name for name in named if name.startswith("evm:") and "0x" in name}
    return (
        tokens if subject.chain_id is None else {name for name in tokens if name.startswith(f"evm:{subject.chain_id}:")}
    )


def _counts(effect):
    return (effect.kind != "fee" or _deposit(effect)) and not effect.nft and not _has_no_limit(effect)


def _deposit(effect):
    return bool(effect.to)


def _has_no_limit(effect):
    return effect.kind == "approval" and effect.amount >= 1 << 128


def _over(config, new, spend, floor):
    bounds = {"maxPerTx": new}
    for name, window in (("maxPerDay", "day"), ("maxPerWeek", "week"), ("maxTotal", "total")):
        bounds[name] = (getattr(spend, window) if spend else 0) + (new if new > floor else floor)
    return any(name in config and reached > int(config[name]) for name, reached in bounds.items())


def _loose(effect, subject, named, worth):
    if effect.kind == "fee" and not _deposit(effect):
        return False
    if effect.kind == "unread" or effect.nft or _has_no_limit(effect):
        return True
    nothing = effect.amount == 0 and (effect.asset in COINS.values() or subject.kind == "typed_data")
    priced = _coin(effect, subject) in worth
    if "usd" in named and effect.amount and not priced:
        return True
    return not _names(effect, subject) & named and not nothing and not ("usd" in named and priced)


def _coin(effect, subject):
    return f"evm:{subject.chain_id}:native" if effect.asset == "evm:native" else effect.asset
