"""An agent's rolling limits, with what an order would add to them. Pure."""

from typing import Final

from words.orders.order import Known, Order
from words.orders.phrases import is_unlimited
from words.shapes import Budget, Effect
from words.texts.amounts import amount_of, coins, in_coins, whole
from words.texts.bars import bar, percent
from words.texts.chains import EVM, coin_chain, native_coin
from words.texts.lines import Line
from words.texts.plain import clip

_NATIVE: Final = "evm:native"
_LAMPORTS: Final = "solana:native"
_RENT: Final = "solana:rent"
_FAMILIES: Final = {
    **dict.fromkeys(("evm", "typed_data", "evm_message", "x402"), "evm"),
    **dict.fromkeys(("solana", "solana_message", "solana_x402"), "solana"),
    "bitcoin": "bitcoin",
}
_WINDOWS: Final = {"day": "24 hours", "week": "7 days", "total": "its whole life"}
# What an order is worth is known to the service alone.
_DOLLARS: Final = "usd"


def limits(order: Order, known: Known) -> list[Line]:
    """Each limit as a bar and in words."""
    said: list[Line] = []
    related = [budget for budget in known.budgets if _relates(budget, order)]
    for budget in related:
        said += _limit(budget, order, known)
    if len(related) < len(known.budgets):
        said.append(Line(_others(known.budgets, order), "quiet"))
    return said


def _relates(budget: Budget, order: Order) -> bool:
    """Tell whether a budget limits what an order of this kind may move; all do, where there is no order."""
    family = _FAMILIES.get(order.kind)
    return not order.effects or family is None or budget.asset.partition(":")[0] in (family, _DOLLARS)


def _others(budgets: list[Budget], order: Order) -> str:
    # A limit that names no asset holds for the coin of each kind of chain, and the service tells it as EVM's alone.
    if _FAMILIES.get(order.kind) != "evm" and any(budget.asset == _NATIVE for budget in budgets):
        return (
            "This kind of chain may have limits that the service does not report here; the rules above have already "
            "applied them."
        )
    return "Other limits of this agent are for other kinds of chains."


def usage(order: Order, asset: str) -> int:
    """Sum what the order counts against limits of an asset: what it sends, lets others spend and gives away."""
    chain = coin_chain(asset)
    if chain is not None:
        return usage(order, _NATIVE) if chain == order.chain_id else 0
    rent = asset == _RENT
    counted = [one for one in order.effects if one.asset == (_LAMPORTS if rent else asset) and _counts(one)]
    return sum(whole(one.amount) or 0 for one in counted if not rent or (one.label or "").startswith("rent"))


def _limit(budget: Budget, order: Order, known: Known) -> list[Line]:
    spent, limit = whole(budget.spent), whole(budget.limit)
    window = _WINDOWS.get(budget.window, clip(budget.window, 24))
    if spent is None or limit is None:
        return [Line(f"A limit over {window} that cannot be parsed.", "warn")]
    # Once it is signed the order is in what was spent, so nothing is added any more.
    adds = usage(order, budget.asset) if order.status in ("", "pending", "pending_approval") else 0
    after = spent + adds

    def show(amount: int) -> str:
        if budget.asset == _NATIVE:
            return coins(str(amount), EVM)
        return amount_of(str(amount), budget.asset, order.chain_id, known.tokens.get(budget.asset))

    over = after > limit
    head = f"{bar(spent, limit, adds=adds)} {percent(after, limit)} of the limit over {window}"
    short = f": OVER THE LIMIT by {_short(after - limit, budget, order)}" if over else ""
    said = [Line(head + short, "bad" if over else None)]
    said.append(Line(f"  spent {show(spent)}", "quiet"))
    if adds:
        said.append(Line(f"  with this order {show(after)}"))
    elif any(effect.asset == budget.asset and is_unlimited(effect) for effect in order.effects):
        said.append(Line("  this order allows UNLIMITED spending, which no limit covers", "bad"))
    together = ", of all EVM chains together" if budget.asset == _NATIVE else ""
    said.append(Line(f"  limit {show(limit)}{together}", "quiet"))
    return said


def _short(amount: int, budget: Budget, order: Order) -> str:
    coin = EVM if budget.asset == _NATIVE else native_coin(budget.asset, order.chain_id)
    return in_coins(amount, coin) if coin else f"{amount:,} raw units"


def _counts(effect: Effect) -> bool:
    if effect.kind == "approval":
        return not is_unlimited(effect)
    return effect.kind == "transfer" or (effect.kind == "fee" and effect.to is not None) or effect.asset == "bitcoin"
