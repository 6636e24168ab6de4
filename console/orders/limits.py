"""An agent's rolling limits, with what an order would add to them. Pure."""

from typing import Final

from console.orders.order import Known, Order
from console.orders.parties import gift
from console.orders.phrases import unlimited
from console.texts.amounts import amount_of, coins, in_coins, whole
from console.texts.chains import EVM, native_coin
from console.texts.plain import clipped
from console.texts.said import Said
from console.widgets.bars import bar, percent
from console.wire.shapes import Budget, Effect

_NATIVE: Final = "evm:native"
_FAMILIES: Final = {"evm": "evm", "typed_data": "evm", "solana": "solana", "bitcoin": "bitcoin"}
_WINDOWS: Final = {"day": "24 hours", "week": "7 days"}


def limits(order: Order, known: Known) -> list[Said]:
    """Each limit as a bar and in words."""
    said: list[Said] = []
    related = [budget for budget in known.budgets if _relates(budget, order)]
    for budget in related:
        said += _limit(budget, order, known)
    if len(related) < len(known.budgets):
        said.append(Said(_others(known.budgets, order), "quiet"))
    return said


def _relates(budget: Budget, order: Order) -> bool:
    """Whether it limits what an order of this kind may move; all of them, where there is no order."""
    family = _FAMILIES.get(order.kind)
    return not order.effects or family is None or budget.asset.partition(":")[0] == family


def _others(budgets: list[Budget], order: Order) -> str:
    # A limit that names no asset holds for the coin of each kind of chain, and the service tells it as EVM's alone.
    if _FAMILIES.get(order.kind) != "evm" and any(budget.asset == _NATIVE for budget in budgets):
        return (
            "There may be limits for this kind of chain that the service does not tell here: the rules' results above "
            "have judged the order by them."
        )
    return "Other limits of this agent are for other kinds of chains."


def added(order: Order, asset: str) -> int:
    """What the order counts against limits of an asset: what it sends, lets others spend and gives away."""
    return sum(whole(effect.amount) or 0 for effect in order.effects if effect.asset == asset and _counts(effect))


def _limit(budget: Budget, order: Order, known: Known) -> list[Said]:
    spent, limit = whole(budget.spent), whole(budget.limit)
    window = _WINDOWS.get(budget.window, clipped(budget.window, 24))
    if spent is None or limit is None:
        return [Said(f"A limit over {window} that cannot be read.", "warn")]
    # Once it is signed the order is in what was spent, so nothing is added any more.
    adds = added(order, budget.asset) if order.status in ("", "pending", "pending_approval") else 0
    after = spent + adds

    def shown(amount: int) -> str:
        if budget.asset == _NATIVE:
            return coins(str(amount), EVM)
        return amount_of(str(amount), budget.asset, order.chain_id, known.tokens.get(budget.asset))

    over = after > limit
    head = f"{bar(spent, limit, adds=adds)} {percent(after, limit)} of the limit over {window}"
    short = f": OVER THE LIMIT by {_short(after - limit, budget, order)}" if over else ""
    said = [Said(head + short, "bad" if over else None)]
    said.append(Said(f"  spent {shown(spent)}", "quiet"))
    if adds:
        said.append(Said(f"  with this order {shown(after)}"))
    elif any(effect.asset == budget.asset and unlimited(effect) for effect in order.effects):
        said.append(Said("  this order allows UNLIMITED spending, which no limit counts", "bad"))
    together = ", of all EVM chains together" if budget.asset == _NATIVE else ""
    said.append(Said(f"  limit {shown(limit)}{together}", "quiet"))
    return said


def _short(amount: int, budget: Budget, order: Order) -> str:
    coin = EVM if budget.asset == _NATIVE else native_coin(budget.asset, order.chain_id)
    return in_coins(amount, coin) if coin else f"{amount:,} raw units"


def _counts(effect: Effect) -> bool:
    if effect.kind == "approval":
        return not unlimited(effect)
    return effect.kind == "transfer" or gift(effect) or effect.asset == "bitcoin"
