"""Hypothesis strategies for policy sets, orders and facts, drawn from a small world so that they meet."""

from datetime import timedelta

import msgspec
from hypothesis import strategies as st

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Call, Effect, Subject
from custody.policies.types import Facts, Spend
from tests.rules.policies.makers import (
    ALICE,
    APPROVE,
    BOB,
    NOON,
    TOKEN,
    TOKEN_CONTRACT,
    TRANSFER,
    UNKNOWN,
    Sent,
    approval_call,
    native,
    permit,
    rent,
    suffixed_call,
    token_call,
    typed_data,
    unknown,
    unread_call,
)

COIN = "evm:1:native"
ASSETS = (None, EVM_NATIVE, TOKEN, "solana:native", COIN, "evm:10:native", "usd")
SELECTORS = (TRANSFER, APPROVE, UNKNOWN)
addresses = st.sampled_from((ALICE, BOB, TOKEN_CONTRACT))
amounts = st.integers(0, 12)
decimals = amounts.map(str)


def _dictionaries(required=None, **optional):
    return st.fixed_dictionaries(required or {}, optional=optional)


def _some(strategy, most=3):
    return st.lists(strategy, max_size=most, unique=True)


_limit = _dictionaries(
    {"maxPerDay": decimals},
    maxPerTx=decimals,
    maxPerWeek=decimals,
    maxTotal=decimals,
    asset=st.sampled_from(ASSETS[1:]),
    alertPercents=st.sampled_from(([], [50], [50, 100])),
)
_rent_limit = _dictionaries({"maxPerDay": decimals, "maxRentPerDay": decimals}, asset=st.just("solana:native"))
_threshold = _dictionaries({"threshold": decimals}, asset=st.sampled_from(ASSETS[1:]))
_approved = _dictionaries({"addresses": _some(addresses), "mode": st.sampled_from(("whitelist", "blacklist"))})
_window = _dictionaries(
    {"allowedDays": st.lists(st.integers(0, 6), min_size=1, max_size=7, unique=True)},
    allowedHours=st.lists(st.sampled_from(({"start": 9, "end": 17}, {"start": 20, "end": 4})), max_size=2),
    timezone=st.sampled_from(("UTC", "Europe/Berlin")),
    notBefore=st.sampled_from(("2025-06-01T00:00:00Z", "2025-06-03T06:00:00+02:00")),
    notAfter=st.sampled_from(("2025-06-04T00:00:00Z", "2025-06-05T23:00:00+02:00")),
)
_rate = _dictionaries({"maxTxPerHour": st.integers(1, 4)}, maxTxPerDay=st.integers(1, 4))
_chains = _dictionaries({"chains": st.lists(st.sampled_from((1, 10, "eip155:1", "eip155:10")), min_size=1, max_size=3)})
_constraints = {
    "maxAmount": decimals,
    "maxNativeValueWei": decimals,
    "recipientAllowlist": _some(addresses),
    "recipientBlocklist": _some(addresses),
    "spenderAllowlist": _some(addresses),
    "spenderBlocklist": _some(addresses),
}
# What the drawn calls are given, so that conditions on it meet them.
_ABIS = {TRANSFER: "transfer(address who,uint256 amount)", APPROVE: "approve(address who,uint256 amount)"}
_condition = st.one_of(
    st.builds(
        lambda op, value: {"arg": "amount", "op": op, "value": value},
        st.sampled_from(("eq", "ne", "lt", "lte", "gt", "gte")),
        decimals.filter(lambda value: value != "0"),
    ),
    st.builds(
        lambda op, values: {"arg": "who", "op": op, "values": values},
        st.sampled_from(("in", "notIn")),
        st.lists(addresses, min_size=2, max_size=3, unique=True),
    ),
)


# Few at a time: a constraint on what a call does not have fails, and with all of them every call would.
@st.composite
def _constraint(draw, selector):
    names = draw(st.lists(st.sampled_from(tuple(_constraints)), max_size=2, unique=True))
    found = {name: draw(_constraints[name]) for name in names}
    if selector in _ABIS and draw(st.booleans()):
        found |= {"abi": _ABIS[selector], "where": [draw(_condition)]}
    return found


@st.composite
def _entries(draw):
    entries = []
    for selector in draw(st.lists(st.sampled_from(SELECTORS), max_size=3, unique=True)):
        selectors = [selector, "0x00000001"] if draw(st.booleans()) else [selector]
        constraints = {name: draw(_constraint(name)) for name in selectors if draw(st.booleans())}
        entry = {"address": TOKEN_CONTRACT, "selectors": selectors, "constraints": constraints}
        more = _dictionaries(chainId=st.sampled_from((1, 10)), unread=st.sampled_from(("ask", "allow")))
        entries.append(entry | draw(more))
        if len(selectors) > 1:
            break
    return {"contracts": entries}


# Before the moments at which orders are drawn, among them, and behind them; most rules have no end.
_ends = st.sampled_from((None, None, None, "2025-06-02T00:00:00Z", "2025-06-04T12:00:00+02:00", "2026-01-01T00:00:00Z"))


def _ending(configs):
    return st.builds(lambda config, until: config | ({"until": until} if until else {}), configs, _ends)


CONFIGS = {
    "spending-limit": st.one_of(_limit, _limit, _rent_limit),
    "auto-approve-threshold": _threshold,
    "approved-addresses": _approved,
    "time-window": _window,
    "rate-limit": _rate,
    "allowed-chains": _chains,
    "contract-allowlist": _entries(),
    "new-recipient": _dictionaries(known=_some(addresses)),
    "delay": _dictionaries({"minutes": st.integers(1, 3)}, above=decimals),
}
CONFIGS = {kind: _ending(configs) for kind, configs in CONFIGS.items()}
# The types that bound what an order moves or where it goes are drawn more often; they have the subtle laws.
kinds = st.sampled_from((*CONFIGS, "spending-limit", "contract-allowlist", "auto-approve-threshold"))
enabled = st.sampled_from((True, True, True, False))


def rule_of(type_):
    return CONFIGS[type_].flatmap(lambda config: enabled.map(lambda on: Sent(type=type_, enabled=on, config=config)))


rule_drawn = kinds.flatmap(rule_of)
sets = st.lists(rule_drawn, max_size=4)


@st.composite
def successors(draw, old):
    """A set made from another by the changes people make: keep, alter, drop, add, and renumber."""
    new = []
    for index, rule in enumerate(old):
        change = draw(st.sampled_from(("keep", "keep", "alter", "alter", "drop")))
        if change == "keep":
            new.append(msgspec.structs.replace(rule, id=f"rule-{index}"))
        elif change == "alter":
            new.append(msgspec.structs.replace(draw(alter(rule)), id=f"rule-{index}"))
    added = draw(st.lists(rule_drawn, max_size=2))
    return new + [msgspec.structs.replace(rule, id=f"added-{index}") for index, rule in enumerate(added)]


@st.composite
def alter(draw, rule):
    """The rule with some fields drawn again."""
    fresh = draw(CONFIGS[rule.type])
    chosen = {name: value for name, value in fresh.items() if draw(st.booleans())}
    if "until" not in fresh and draw(st.booleans()):
        chosen["until"] = None
    config = rule.config | chosen if rule.type != "contract-allowlist" else _mix(draw, rule.config, fresh)
    if "maxRentPerDay" in config:
        # Only a rule on Solana has it.
        config = config | {"asset": "solana:native"}
    return Sent(type=rule.type, enabled=rule.enabled or draw(st.booleans()), config=config)


def _mix(draw, old, fresh):
    """The old entries with some gone and some constraints tightened, or something else altogether."""
    if draw(st.booleans()):
        return fresh
    entries = [msgspec.json.decode(msgspec.json.encode(entry)) for entry in old["contracts"] if draw(st.booleans())]
    for entry in entries:
        if len(entry["selectors"]) > 1 and draw(st.booleans()):
            entry["constraints"].pop(entry["selectors"].pop(), None)
        if draw(st.booleans()):
            entry["unread"] = draw(st.sampled_from(("ask", "allow")))
        for name in entry["selectors"]:
            if draw(st.booleans()):
                entry["constraints"][name] = draw(_constraint(name))
    return {"contracts": entries}


MAKERS = {
    "native": lambda amount, to: native(amount, to=to),
    "token": lambda amount, to: token_call(amount, to=to),
    "token on another chain": lambda amount, to: token_call(amount, to=to, chain_id=10),
    "approval": approval_call,
    "permit": permit,
    "authorization": lambda amount, to: typed_data(Effect("transfer", TOKEN, amount, BOB, to)),
}


def _odd(to):
    """Orders beside the scale of amounts: unread, NFT, unlimited, other families."""
    call = Call(1, TOKEN_CONTRACT, TRANSFER, recipient=to, amount=1, decoded=True)
    nft = Effect("transfer", TOKEN, 1, BOB, to, nft=True, call=call)
    lamports = Effect("transfer", "solana:native", 3, to="x")
    return (
        unread_call(contract=to),
        unread_call(value=3, selector=APPROVE),
        unread_call(value=9),
        suffixed_call(3, to=to),
        typed_data(contract=to),
        typed_data(chain_id=None),
        typed_data(Effect("unread", None, 0)),
        unknown(),
        unknown(contract=None),
        approval_call(2**128, spender=to),
        permit(2**128, spender=to),
        Subject("evm", "evm", 1, "eip155:1", TOKEN_CONTRACT, (nft,), (call,)),
        Subject("solana", "solana", 101, None, "x", (lamports,)),
        rent(3),
        rent(3, owner="us"),
    )


plain_orders = st.builds(
    lambda make, amount, to: MAKERS[make](amount, to), st.sampled_from(tuple(MAKERS)), amounts, addresses
)
odd_orders = addresses.flatmap(lambda to: st.sampled_from(_odd(to)))
orders = st.one_of(plain_orders, odd_orders)

_spent = st.dictionaries(
    st.sampled_from((EVM_NATIVE, TOKEN, "solana:native", COIN, "solana:rent", "usd")),
    st.builds(lambda day, more, ever: Spend(day, day + more, day + more + ever), *[st.integers(0, 10)] * 3),
)
facts_drawn = st.builds(
    Facts,
    now=st.integers(0, 24 * 7).map(lambda hours: NOON + timedelta(hours=hours)),
    spend=_spent,
    floor=st.dictionaries(st.sampled_from((EVM_NATIVE, TOKEN, COIN, "usd")), st.integers(0, 6)),
    worth=st.dictionaries(st.sampled_from((TOKEN, COIN, "solana:native")), st.integers(0, 6)),
    orders_last_hour=st.integers(0, 4),
    orders_last_day=st.integers(0, 4),
    empty_policy=st.sampled_from(("allow", "deny")),
    uncovered=st.sampled_from(("queue", "allow", "refuse")),
    approving=st.booleans(),
    waited=st.sampled_from((0, 60, 180)),
    recipients=st.frozensets(
        st.tuples(
            st.sampled_from(("paid", "empowered", "called")), addresses.map(lambda address: f"eip155:1:{address}")
        ),
        max_size=4,
    ),
)

_ALL_ORDERS = [
    *(make(amount, to) for make in MAKERS.values() for amount in (0, 3, 6, 12) for to in (ALICE, TOKEN_CONTRACT)),
    *_odd(BOB),
    *_odd(TOKEN_CONTRACT),
]
_SOME_FACTS = [
    Facts(now=NOON),
    Facts(now=NOON, recipients={("paid", f"eip155:1:{ALICE}"), ("called", f"eip155:1:{TOKEN_CONTRACT}")}),
    Facts(now=NOON, empty_policy="deny", uncovered="allow"),
    Facts(now=NOON, uncovered="allow", worth={TOKEN: 4, COIN: 2}, spend={"usd": Spend(3, 5)}, floor={"usd": 3}),
    Facts(now=NOON + timedelta(hours=10), uncovered="refuse", orders_last_hour=2, orders_last_day=2),
    Facts(now=NOON + timedelta(hours=60), approving=True, orders_last_day=3, spend={EVM_NATIVE: Spend(2, 4)}),
    Facts(now=NOON, uncovered="allow", spend={TOKEN: Spend(1, 3), EVM_NATIVE: Spend(0, 5)}, floor={TOKEN: 4}),
]
# Drawing orders is slower than judging them, so each drawn pair of sets meets all of these.
CASES = [(order, facts) for order in _ALL_ORDERS for facts in _SOME_FACTS]
