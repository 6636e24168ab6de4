"""Effects of transactions on the agent on the EVM chain, from the slots and balances that they changed."""

from collections import Counter
from collections.abc import Sequence

from custody.chains.evm.family import EVM_NATIVE, coin_of
from tests.execution.chain import CHAIN_ID, NOW, Change, Outcome
from tests.execution.contracts import contracts_by_name
from tests.execution.evm_world import AGENT, CONTRACTS, NFT, OURS, PERMIT2, SAFE, asset
from tests.execution.laws import ENDLESS, EVERYTHING, Act, Family, Power, Seen

COIN = EVM_NATIVE
FAMILY = Family(EVM_NATIVE, {EVM_NATIVE: (EVM_NATIVE, coin_of(CHAIN_ID))}, (CHAIN_ID, f"eip155:{CHAIN_ID}"))
# What of a contract's state is nobody's money.
_COUNTERS = frozenset(("_totalSupply", "_nonces", "used", "nonceBitmap", "nonce"))


class Unexplained(AssertionError):
    """A contract changed what the tests do not know."""


def sum_outcomes(outcomes: Sequence[Outcome]) -> Seen:
    """Sum up the effects of several transactions together."""
    held: Counter[tuple[str, str]] = Counter()
    powers: Counter[tuple[str, str]] = Counter()
    for outcome in outcomes:
        for who, by in outcome.coins.items():
            held[_text(who), COIN] += by
        for change in outcome.changes:
            _read(change, held, powers)
    lost: Counter[str] = Counter()
    for (who, what), by in held.items():
        if who in OURS:
            lost[what] -= by
    return Seen(
        lost=lost,
        gained={place: by for place, by in held.items() if place[0] not in OURS},
        powers=[Power(who, what, more) for (who, what), more in powers.items() if more > 0 and who not in OURS],
        used={place: -more for place, more in powers.items() if more < 0},
        acts=[
            Act(_text(frame.contract), frame.selector, frame.value)
            for outcome in outcomes
            for frame in outcome.frames
            if _text(frame.sender) == AGENT
        ],
        fee=sum(outcome.fee for outcome in outcomes),
    )


def _read(change: Change, held: Counter[tuple[str, str]], powers: Counter[tuple[str, str]]) -> None:
    contract = _text(change.contract)
    name = contracts_by_name()[CONTRACTS[contract]].storage.get(str(change.slot)) if contract in CONTRACTS else None
    what, by, keys = asset(contract), change.after - change.before, change.keys
    match name, len(keys):
        case (("_balances" | "balanceOf"), _) if contract != NFT:
            held[_address(keys[-1]), what] += by
        case "_owners", 1:
            held[_address(change.before), what] -= change.before > 0
            held[_address(change.after), what] += change.after > 0
        case (("_allowances" | "allowance"), 2) if contract != PERMIT2:
            powers[_address(keys[1]), what] += by * (_address(keys[0]) in OURS)
        case "allowance", 3:
            by = _live(change.after) - _live(change.before)
            powers[_address(keys[2]), asset(_address(keys[1]))] += by * (_address(keys[0]) in OURS)
        case "_tokenApprovals", 1:
            powers[_address(change.after), what] += change.after > 0
        case "_operatorApprovals", 2:
            powers[_address(keys[1]), what] += ENDLESS * (_address(keys[0]) in OURS and change.after > 0)
        case _ if name in _COUNTERS or (contract == NFT and name == "_balances"):
            pass
        case _ if contract == SAFE:
            powers["anyone who rules the Safe", EVERYTHING] += ENDLESS
        case _:
            raise Unexplained(f"{CONTRACTS.get(contract, contract)} changed {name or change.slot} at {keys}")


def _live(packed: int) -> int:
    """The amount of an allowance of Permit2's that has not expired."""
    return packed & (2**160 - 1) if (packed >> 160) & (2**48 - 1) >= NOW else 0


def _text(who: bytes) -> str:
    return "0x" + who.hex()


def _address(key: int) -> str:
    return f"0x{key:040x}"
