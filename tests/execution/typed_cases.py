"""Cases of typed data: a document is drawn, judged and signed, and then somebody else uses the signature."""

from collections.abc import Callable
from typing import Any

import msgspec

from custody.chains.evm.address import keccak256 as keccak
from custody.chains.evm.typed_order import TypedDataField, TypedDataOrder
from custody.kit.errors import Invalid
from custody.policies.judge import judge
from custody.policies.types import Facts, Verdict
from signer.orders.typed_data import TYPED_DATA
from tests.execution import evm_orders, laws, rule_sets
from tests.execution.cases import Case, Tally, Violation
from tests.execution.chain import CHAIN_ID, Chain, Outcome
from tests.execution.contracts import call
from tests.execution.draws import Draws
from tests.execution.evm_cases import ASSETS, CHAINS, facts_drawn, inputs, ours
from tests.execution.evm_orders import Order
from tests.execution.evm_sight import FAMILY, sum_outcomes
from tests.execution.evm_world import (
    AGENT,
    CONTRACTS,
    KEY,
    NFT,
    PEOPLE,
    PERMIT2,
    PLAIN,
    ROUTER,
    SAFE,
    STRANGER,
    TOKEN,
    WALLET,
    ZERO,
    asset,
    raw,
    world,
)

_AMOUNTS = (0, 1, 5, 5, 8, 50, 100, 2**128, 2**160 - 1)
_LATE = 2**47
_DETAILS = "PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)"
_PERMISSIONS = "TokenPermissions(address token,uint256 amount)"
_3009 = "address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce"


class Document(msgspec.Struct, frozen=True):
    """A document, and what its spender or anybody else does with the signature: from whom, to whom, with which data."""

    body: TypedDataOrder
    contract: str
    use: Callable[[bytes], tuple[str, str, bytes]]
    assets: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.body.primary_type} for {CONTRACTS.get(self.contract)}, {self.body.domain}: {self.body.value}"


def _document(contract: str, domain: dict[str, Any], spelled: str, value: dict[str, Any]) -> TypedDataOrder:
    types: dict[str, list[TypedDataField]] = {}
    for struct in spelled.split(")")[:-1]:
        name, fields = struct.split("(")
        types[name] = [TypedDataField(*reversed(field.split(" "))) for field in fields.split(",") if field]
    whole = domain | {"chainId": CHAIN_ID, "verifyingContract": contract}
    return TypedDataOrder(whole, types, spelled.split("(", maxsplit=1)[0], value)


def draw_document(draws: Draws) -> Document:
    """One document."""
    return draws.one(
        (_permit, _dai, _authorization, _authorization, _permit2, _permit2, _transfer, _transfer, _safe, _safe)
    )(draws)


_TOKEN_DOMAIN = {"name": "Token", "version": "1"}


def _split(signature: bytes) -> tuple[int, bytes, bytes]:
    return signature[64], signature[:32], signature[32:64]


def _permit(draws: Draws) -> Document:
    spender, amount = draws.one((*PEOPLE, ROUTER)), draws.one(_AMOUNTS)
    value = {"owner": AGENT, "spender": spender, "value": str(amount), "nonce": "0", "deadline": str(_LATE)}
    spelled = "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
    permit = "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)"

    def use(signature: bytes) -> tuple[str, str, bytes]:
        return STRANGER, TOKEN, call("Token", permit, AGENT, spender, amount, _LATE, *_split(signature))

    return Document(_document(TOKEN, _TOKEN_DOMAIN, spelled, value), TOKEN, use)


def _dai(draws: Draws) -> Document:
    spender, allowed = draws.one((*PEOPLE, ROUTER)), draws.chance(60)
    value = {"holder": AGENT, "spender": spender, "nonce": "0", "expiry": "0", "allowed": allowed}
    spelled = "Permit(address holder,address spender,uint256 nonce,uint256 expiry,bool allowed)"
    permit = "permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)"

    def use(signature: bytes) -> tuple[str, str, bytes]:
        return STRANGER, TOKEN, call("Token", permit, AGENT, spender, 0, 0, allowed, *_split(signature))

    return Document(_document(TOKEN, _TOKEN_DOMAIN, spelled, value), TOKEN, use)


def _authorization(draws: Draws) -> Document:
    to, amount, kind = draws.one(PEOPLE), draws.one(_AMOUNTS), draws.one(("Transfer", "Receive"))
    nonce = bytes(32)
    value = {"from": AGENT, "to": to, "value": str(amount), "validAfter": "0", "validBefore": str(_LATE)}
    function = f"{kind.lower()}WithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"

    def use(signature: bytes) -> tuple[str, str, bytes]:
        return to, TOKEN, call("Token", function, AGENT, to, amount, 0, _LATE, nonce, *_split(signature))

    body = _document(TOKEN, _TOKEN_DOMAIN, f"{kind}WithAuthorization({_3009})", value | {"nonce": "0x" + nonce.hex()})
    return Document(body, TOKEN, use)


def _permit2(draws: Draws) -> Document:
    spender = draws.one((*PEOPLE, ROUTER))
    several = [(draws.one((TOKEN, PLAIN)), draws.one(_AMOUNTS)) for _ in range(1 + draws.below(2))]
    details = [
        {
            "token": token,
            "amount": str(amount),
            "expiration": str(_LATE),
            "nonce": str(int((token, spender) == (TOKEN, ROUTER))),
        }
        for token, amount in dict(several).items()
    ]
    tuples = [(one["token"], int(one["amount"]), _LATE, int(one["nonce"])) for one in details]
    single = len(details) == 1
    name, field = ("PermitSingle", "PermitDetails details") if single else ("PermitBatch", "PermitDetails[] details")
    value = {"details": details[0] if single else details, "spender": spender, "sigDeadline": str(_LATE)}
    shape = "(address,uint160,uint48,uint48)" + ("" if single else "[]")
    function = f"permit(address,({shape},address,uint256),bytes)"

    def use(signature: bytes) -> tuple[str, str, bytes]:
        permit = (tuples[0] if single else tuples, spender, _LATE)
        return STRANGER, PERMIT2, call("Permit2", function, AGENT, permit, signature)

    body = _document(
        PERMIT2, {"name": "Permit2"}, f"{name}({field},address spender,uint256 sigDeadline){_DETAILS}", value
    )
    return Document(body, PERMIT2, use, tuple(asset(token) for token, _ in several))


_WITNESS = "Witness(address to,uint256 validAfter)"


def _transfer(draws: Draws) -> Document:
    """A transfer by Permit2; its spender takes all of it, to itself."""
    spender, witness = draws.one(PEOPLE), draws.chance(30)
    several = [(draws.one((TOKEN, PLAIN)), draws.one(_AMOUNTS)) for _ in range(1 + draws.below(2) * (not witness))]
    nonce, single = draws.below(1_000), len(several) == 1
    permitted = [{"token": token, "amount": str(amount)} for token, amount in several]
    many = "" if single else "[]"
    value: dict[str, Any] = {"permitted": permitted[0] if single else permitted, "spender": spender}
    value |= {"nonce": str(nonce), "deadline": str(_LATE)}
    kind = "Permit" + ("" if single else "Batch") + ("WitnessTransferFrom" if witness else "TransferFrom")
    more = ",Witness witness" if witness else ""
    spelled = (
        f"{kind}(TokenPermissions{many} permitted,address spender,uint256 nonce,uint256 deadline{more}){_PERMISSIONS}"
    )
    if witness:
        spelled += _WITNESS
        value["witness"] = {"to": spender, "validAfter": "0"}
    amounts = [(spender, amount) for _, amount in several]
    start = f"((address,uint256){many},uint256,uint256),(address,uint256){many},address"
    permit = (several[0] if single else several, nonce, _LATE), amounts[0] if single else amounts, AGENT

    def use(signature: bytes) -> tuple[str, str, bytes]:
        if not witness:
            return spender, PERMIT2, call("Permit2", f"permitTransferFrom({start},bytes)", *permit, signature)
        function = f"permitWitnessTransferFrom({start},bytes32,string,bytes)"
        made = keccak(keccak(_WITNESS.encode()) + raw(spender).rjust(32, b"\0") + bytes(32))
        text = f"Witness witness){_PERMISSIONS}{_WITNESS}"
        return spender, PERMIT2, call("Permit2", function, *permit, made, text, signature)

    return Document(
        _document(PERMIT2, {"name": "Permit2"}, spelled, value),
        PERMIT2,
        use,
        tuple(asset(token) for token, _ in several),
    )


def _safe(draws: Draws) -> Document:
    """A transaction of the agent's Safe, which anybody may bring to it."""
    inner = draws.one((evm_orders.draw_order(draws, depth=1), Order(draws.one(PEOPLE), draws.one((0, 5)), b"")))
    spelled = (
        "SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,"
        "uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)"
    )
    refund, price = draws.one((ZERO, *PEOPLE)), draws.one((0, 5))
    value = {"to": inner.to, "value": str(inner.value), "data": "0x" + inner.data.hex()}
    operation = int(draws.chance(8))
    value |= {
        "operation": str(operation),
        "safeTxGas": "0",
        "baseGas": str(price),
        "gasPrice": str(price),
        "gasToken": ZERO,
    }
    value |= {"refundReceiver": refund, "nonce": "0"}
    function = "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)"

    def use(signature: bytes) -> tuple[str, str, bytes]:
        rest = (operation, 0, price, price, ZERO, refund, signature)
        return STRANGER, SAFE, call("Safe", function, inner.to, inner.value, inner.data, *rest)

    return Document(_document(SAFE, {}, spelled, value), SAFE, use)


# ---- what can be done to a document


def _mutate(draws: Draws, document: Document) -> Document:
    body = document.body
    match draws.below(4):
        case 0:
            name = draws.one(("Order", "Permit2", "Transfer"))
            types = {(name if each == body.primary_type else each): fields for each, fields in body.types.items()}
            changed = msgspec.structs.replace(body, types=types, primary_type=name)
        case 1:
            changed = msgspec.structs.replace(
                body, domain=body.domain | {"verifyingContract": draws.one((TOKEN, NFT, WALLET, SAFE))}
            )
        case 2:
            changed = msgspec.structs.replace(
                body, domain={key: one for key, one in body.domain.items() if key != "chainId"}
            )
        case _:
            more = [*body.types[body.primary_type], TypedDataField("extra", "uint256")]
            types = body.types | {body.primary_type: more}
            changed = msgspec.structs.replace(body, types=types, value=body.value | {"extra": "0"})
    return msgspec.structs.replace(document, body=changed)


def judge_document(sent: list[rule_sets.Sent], facts: Facts, document: Document) -> tuple[Verdict, bytes] | None:
    """The verdict over a document and its signature, or None if it is wrong by itself."""
    try:
        draft = TYPED_DATA.check(document.body, inputs())
    except Invalid:
        return None
    decoded = TYPED_DATA.effects(draft, ours())
    verdict = judge(rule_sets.read(sent), decoded.subject, facts)
    if verdict.decision != "sign":
        return verdict, b""
    final = TYPED_DATA.finish(draft, decoded, ours())
    return verdict, bytes.fromhex(TYPED_DATA.sign(final, KEY).signature.removeprefix("0x"))


def case(number: int) -> Case:
    """One case by its number."""
    draws = Draws("typed", number)
    plain = draw_document(draws)
    document = _mutate(draws, plain) if draws.chance(25) else plain
    selectors = ("0xa9059cbb", "0x095ea7b3", "0xd505accf", "0xe3ee160e", "0x87517c45", "0x36c78516", "0x6a761202")
    calls = [(document.contract, selector) for selector in draws.some(selectors, 4)]
    people = (*PEOPLE, *PEOPLE, *PEOPLE, document.contract, ROUTER, TOKEN)
    assets = (*document.assets, *((asset(TOKEN),) * 2), *ASSETS)
    sent = rule_sets.draw_rules(draws, rule_sets.Near(assets, people, calls, CHAINS))
    return Case(number, document, None, sent, facts_drawn(draws, ASSETS))


def run(case: Case, tally: Tally) -> list[Violation]:
    """Judge, sign, let others use it, compare."""
    found = judge_document(case.rules, case.facts, case.order)
    if found is None:
        tally.count("wrong by itself")
        return []
    verdict, signature = found
    tally.count(verdict.decision)
    if verdict.decision != "sign":
        return []
    chain = world()
    with chain.case():
        outcome = _use(chain, case.order, signature)
        what = sum_outcomes([outcome])
    tally.count("executed")
    tally.count("succeeded", by=outcome.succeeded)
    tally.count("moved", by=not what.nothing)
    found_wrong = laws.find_breaches(case.rules, case.facts, verdict, what, FAMILY, typed=case.order.contract)
    return [Violation("A", why, case) for why in found_wrong]


def _use(chain: Chain, document: Document, signature: bytes) -> Outcome:
    return chain.act(*(raw(one) if isinstance(one, str) else one for one in document.use(signature)))
