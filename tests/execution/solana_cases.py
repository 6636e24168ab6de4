"""Cases on Solana: rules and an order are drawn, judged, signed, executed by the real programs, and compared."""

from collections import Counter, defaultdict

from solders.hash import Hash
from solders.message import to_bytes_versioned
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from custody.chains.solana.orders import SolanaOrder
from custody.kit.errors import Invalid
from custody.policies.judge import judge
from custody.policies.types import Facts, Verdict
from signer.orders.solana import SOLANA_TRANSACTION
from tests.execution import laws, rule_sets, solana_orders
from tests.execution.cases import Case, Tally, Violation
from tests.execution.draws import Draws
from tests.execution.evm_cases import facts_drawn, inputs, ours
from tests.execution.laws import ENDLESS, EVERYTHING, Family, Power, Seen
from tests.execution.solana_orders import Order
from tests.execution.solana_world import (
    AGENT,
    AUXILIARY,
    COIN_MINT,
    FEE_MINT,
    HOLDERS,
    KEY,
    NEW_MINT,
    PEOPLE,
    SPONSOR,
    SPONSOR_KEY,
    WRAPPED,
    Executed,
    Held,
    associated_account,
    cluster,
)

COIN = "solana:native"
_ASSETS = (COIN, *(f"solana:{mint}" for mint in (COIN_MINT, COIN_MINT, COIN_MINT, NEW_MINT, FEE_MINT, WRAPPED)))
_PEOPLE = tuple(
    str(one)
    for one in (
        *PEOPLE,
        *PEOPLE,
        *PEOPLE,
        *AUXILIARY.values(),
        AGENT,
        *(associated_account(who, COIN_MINT) for who in PEOPLE),
    )
)
_CHAINS = (101, 101, 101, 102)
FAMILY = Family(COIN, {}, (101,))


def judge_order(sent: list[rule_sets.Sent], facts: Facts, order: Order) -> tuple[Verdict, bytes] | None:
    """The verdict over an order and its signed bytes, or None if it is refused whatever the rules say."""
    recent = cluster().blockhash
    encoded = order.encode(recent if isinstance(recent, Hash) else Hash.default())
    if encoded is None:
        return None
    us = ours(str(AGENT))
    try:
        body = SolanaOrder(encoded, order.to, str(order.value), broadcast=False)
        draft = SOLANA_TRANSACTION.check(body, inputs())
        decoded = SOLANA_TRANSACTION.effects(draft, us)
        final = SOLANA_TRANSACTION.finish(draft, decoded, us)
    except Invalid:
        return None
    verdict = judge(rule_sets.read(sent), decoded.subject, facts)
    signed = SOLANA_TRANSACTION.sign(final, KEY).raw if verdict.decision == "sign" else b""
    return verdict, signed or b""


def case(number: int) -> Case:
    """One case by its number."""
    draws = Draws("solana", number)
    plain = solana_orders.draw_order(draws)
    order, more = plain, False
    if draws.chance(35):
        mutate = draws.one(solana_orders.MUTATIONS)
        order, more = mutate(draws, plain), mutate in solana_orders.ADDING
    near = rule_sets.Near(_ASSETS, (*_PEOPLE, order.to), (), _CHAINS, (3_000_000, 10_000_000))
    sent = rule_sets.draw_rules(draws, near)
    return Case(number, order, plain if more else None, sent, facts_drawn(draws, _ASSETS))


def run(case: Case, tally: Tally) -> list[Violation]:
    """Judge, sign, execute, compare; gives what law A or B says against it."""
    found = judge_order(case.rules, case.facts, case.order)
    if found is None:
        tally.count("refused without rules")
        return []
    verdict, signed = found
    tally.count(verdict.decision)
    wrong: list[Violation] = []
    if case.plain is not None and (before := judge_order(case.rules, case.facts, case.plain)) is not None:
        tally.count("compared")
        if laws.milder(before[0], verdict, hidden=case.hidden):
            why = f"{before[0].decision} without what was added, {verdict.decision} with it"
            wrong.append(Violation("B", why, case))
    if verdict.decision != "sign":
        return wrong
    executed = cluster().execute(_sponsor(signed))
    what = sum_effects(executed)
    tally.count("executed")
    tally.count("succeeded", by=executed.succeeded)
    tally.count("moved", by=not what.nothing)
    return wrong + [
        Violation("A", why, case) for why in laws.find_breaches(case.rules, case.facts, verdict, what, FAMILY)
    ]


def _sponsor(signed: bytes) -> bytes:
    """The transaction with the signature of the sponsor, who pays the fee and signs last."""
    transaction = VersionedTransaction.from_bytes(signed)
    message = transaction.message
    signers = message.account_keys[: message.header.num_required_signatures]
    if SPONSOR not in signers:
        return signed
    signatures = list(transaction.signatures)
    signatures[signers.index(SPONSOR)] = SPONSOR_KEY.sign_message(to_bytes_versioned(message))
    return bytes(VersionedTransaction.populate(message, signatures))


def sum_effects(executed: Executed) -> Seen:
    """Sum up a transaction's effects on the agent, over the accounts by who owns them then."""
    held: Counter[tuple[str, str]] = Counter()
    where: defaultdict[str, set[str]] = defaultdict(set)
    for key, one in executed.after.items():
        if one != executed.before.get(key):
            where[str(one.owner)].add(str(key))
    for accounts, sign in ((executed.before, -1), (executed.after, 1)):
        for key, one in accounts.items():
            # Wrapped lamports are a token.
            held[_holder(key, one), COIN] += sign * (one.lamports - (one.amount if one.mint == WRAPPED else 0))
            if one.mint is not None:
                held[str(one.owner), f"solana:{one.mint}"] += sign * one.amount
    burnt = -sum(
        one.amount * sign
        for accounts, sign in ((executed.before, -1), (executed.after, 1))
        for one in accounts.values()
        if one.mint == WRAPPED
    )
    fee = burnt - sum(by for (_, what), by in held.items() if what == COIN)
    payer = next(iter(executed.before))
    held[str(payer), COIN] += fee
    us = str(AGENT)
    lost = {what: -by for (who, what), by in held.items() if who == us}
    # What was unwrapped is ours as lamports.
    wrapped = f"solana:{WRAPPED}"
    lost[wrapped] = max(0, lost.get(wrapped, 0) + min(0, lost.get(COIN, 0)))
    return Seen(
        lost=lost,
        gained={place: by for place, by in held.items() if place[0] != us},
        powers=_powers(executed),
        used={},
        acts=(),
        fee=fee,
        where={who: frozenset(places) for who, places in where.items()},
    )


def _holder(key: Pubkey, account: Held) -> str:
    """Find the holder of an account's lamports: its owner, where anybody could derive that from the addresses."""
    known = account.owner == AGENT or key in HOLDERS
    return str(account.owner if known else key)


def _powers(executed: Executed) -> list[Power]:
    found = []
    for key, one in executed.after.items():
        old = executed.before.get(key)
        if one.owner != AGENT or one.mint is None:
            continue
        more = one.delegated - (old.delegated if old and old.delegate == one.delegate else 0)
        if one.delegate is not None and more > 0:
            found.append(Power(str(one.delegate), f"solana:{one.mint}", more))
        if one.closes not in (None, AGENT) and (old is None or old.closes != one.closes):
            found.append(Power(str(one.closes), EVERYTHING, ENDLESS))
    return found
