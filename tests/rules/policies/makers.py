"""Rules, orders and facts with good defaults, for tests of the policy engine."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from eth_abi import encode

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.solana.family import SOLANA_NATIVE
from custody.chains.types import Call, Effect, Subject
from custody.kit.validation import explain
from custody.policies.kinds import PolicyRule
from custody.policies.rules import ParsedRule, invalid_rule, parse
from custody.policies.types import Facts, Spend

ALICE = "0x" + "a1" * 20
BOB = "0x" + "b0" * 20
TOKEN_CONTRACT = "0x" + "7a" * 20
TOKEN = f"evm:1:{TOKEN_CONTRACT}"
TRANSFER = "0xa9059cbb"
APPROVE = "0x095ea7b3"
UNKNOWN = "0xdeadbeef"
# A Monday.
NOON = datetime(2025, 6, 2, 12, 30, 15, tzinfo=UTC)


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as a caller writes it: nobody has looked at it yet."""

    id: str | None = None
    type: str
    enabled: bool = True
    config: dict[str, Any]


def rule(type_, config, *, enabled=True, id=None):
    return Sent(id=id, type=type_, enabled=enabled, config=config)


def typed_rules(*given: Sent) -> list[PolicyRule]:
    """The rules as a route decodes them."""
    try:
        return msgspec.convert(msgspec.to_builtins(given), list[PolicyRule])
    except msgspec.ValidationError as problem:
        raise invalid_rule(problem, explain(problem, list[PolicyRule]).says) or problem from None


def rules(*given: Sent) -> tuple[ParsedRule, ...]:
    numbers = iter(range(1000))
    return parse(typed_rules(*given), lambda: f"rule-{next(numbers)}")


def facts(day=0, week=0, asset=EVM_NATIVE, **changes) -> Facts:
    return Facts(**{"now": NOON, "spend": {asset: Spend(day, max(day, week))}, **changes})


def evm(*effects, calls=(), destination=ALICE, chain_id=1) -> Subject:
    return Subject("evm", "evm", chain_id, f"eip155:{chain_id}", destination, effects, calls)


def typed_data(*effects, chain_id=1, contract=TOKEN_CONTRACT) -> Subject:
    caip2 = None if chain_id is None else f"eip155:{chain_id}"
    return Subject("evm", "typed_data", chain_id, caip2, contract, effects, (), contract)


def unknown(**changes) -> Subject:
    """Typed data of a kind that is on no list."""
    subject = typed_data(**changes)
    effect = Effect("unread", None, 0, BOB, subject.verifying_contract, unknown=True, label="SafeOp")
    return msgspec.structs.replace(subject, effects=(effect,))


def native(amount, to=ALICE, fee=7) -> Subject:
    return evm(Effect("transfer", EVM_NATIVE, amount, BOB, to), Effect("fee", EVM_NATIVE, fee), destination=to)


def token_call(amount, to=ALICE, selector=TRANSFER, value=0, chain_id=1) -> Subject:
    given = encode(["address", "uint256"], [to, amount])
    call = Call(chain_id, TOKEN_CONTRACT, selector, value, recipient=to, amount=amount, decoded=True, arguments=given)
    effect = Effect("transfer", f"evm:{chain_id}:{TOKEN_CONTRACT}", amount, BOB, to, call=call)
    return evm(effect, calls=(call,), destination=TOKEN_CONTRACT, chain_id=chain_id)


def approval_call(amount, spender=ALICE) -> Subject:
    given = encode(["address", "uint256"], [spender, amount])
    call = Call(1, TOKEN_CONTRACT, APPROVE, spender=spender, amount=amount, decoded=True, arguments=given)
    effect = Effect("approval", TOKEN, amount, BOB, spender=spender, unlimited=amount >= 2**128, call=call)
    return evm(effect, calls=(call,), destination=TOKEN_CONTRACT)


def unread_call(value=0, selector=UNKNOWN, contract=TOKEN_CONTRACT) -> Subject:
    call = Call(1, contract, selector, value)
    coins = (Effect("transfer", EVM_NATIVE, value, BOB, contract),) if value else ()
    unread = Effect("unread", None, 0, BOB, contract, call=call, label="all of the call", size=4)
    return evm(*coins, unread, calls=(call,), destination=contract)


def suffixed_call(amount=5, to=ALICE, size=1) -> Subject:
    """A token transfer with bytes behind its arguments."""
    read = token_call(amount, to)
    behind = Effect("unread", None, 0, BOB, TOKEN_CONTRACT, call=read.calls[0], label="behind the arguments", size=size)
    return msgspec.structs.replace(read, effects=(*read.effects, behind))


def rent(amount=2_039_280, owner="them") -> Subject:
    """One token to somebody, whose token account we ("us") pay for unless the owner is ourselves."""
    token = Effect("transfer", "solana:mint", 1, "us", owner)
    paid = Effect("fee", SOLANA_NATIVE, amount, "us", owner, label="rent")
    return Subject("solana", "solana", 101, None, owner, (token, paid, Effect("fee", SOLANA_NATIVE, 5_000, "us")))


def permit(amount, spender=ALICE, **changes) -> Subject:
    return typed_data(Effect("approval", TOKEN, amount, BOB, spender=spender, unlimited=amount >= 2**128), **changes)
