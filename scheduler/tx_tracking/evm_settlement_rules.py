"""The judgement of a node's answers on payments by x402 that an EVM wallet signed. Pure.

Whom it pays takes a payment to the chain, in a transaction that nobody here knows. What is known is its nonce, which
the token (EIP-3009) or Permit2 marks as used: by the payment, or because the wallet gave it up. Only a log tells which.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from custody.chains.evm.address import parse_address
from custody.chains.evm.rpc import quantity
from custody.chains.evm.selectors import PERMIT2
from custody.chains.evm.typed_order import TypedDataOrder
from custody.kit.errors import Invalid, UpstreamFailed
from custody.kit.shapes import MAX_UINT256
from scheduler.tx_tracking.types import NOTHING, Followed, News, Verdict

# No payment can be used for longer than 600 s. Before this age a node that says it is over has a clock that is wrong.
MAY_LAPSE_SECONDS: Final = 660.0
# From this age on a used nonce counts as paid also where no log says by what: a node may serve none that are so old.
LOGLESS_SECONDS: Final = 900.0
# Logs that one question may bring; more of them say nothing.
MAX_LOGS: Final = 500
_STATE, _BITMAP = bytes.fromhex("e94a0102"), bytes.fromhex("4fe02b44")
# AuthorizationUsed, AuthorizationCanceled, UnorderedNonceInvalidation, Transfer.
_USED: Final = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5"
_CANCELED: Final = "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81"
_INVALIDATED: Final = "0x3704902f963766a4e561bbaab6e6cdc1b1dd12f6e9e99648da8843b3f46b918d"
_TRANSFER: Final = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
_HEX: Final = frozenset("0123456789abcdef")


class Claim(msgspec.Struct, frozen=True):
    """The part of a signed payment that is followed: its nonce on `token`, or on Permit2, and until which second."""

    method: Literal["eip3009", "permit2"]
    token: str
    payer: str
    payee: str
    nonce: int
    until: int
    most: int
    least: int

    def __repr__(self) -> str:
        return f"Claim({self.method})"


class Log(msgspec.Struct, frozen=True):
    """A log that is what was asked for, and where it stands."""

    kind: str
    words: bytes
    block: int
    block_hash: str
    by: str


class Moment(msgspec.Struct, frozen=True):
    """The block at final depth, as one node shows it."""

    height: int
    hash: str
    time: int


class Seen(msgspec.Struct, frozen=True):
    """The things that a node showed of one payment at that block; None where that could not be had.

    `logs` are those whose blocks are the chain's; `named`, by hash, whether a transaction has the payment's nonce.
    """

    used: bool | None = None
    logs: tuple[Log, ...] | None = None
    named: Mapping[str, bool] = {}


def claim_of(raw: bytes, wallet: str) -> Claim | None:
    """Read the document of a payment as the wallet signed it; None for what is none."""
    try:
        order = msgspec.json.decode(raw, type=TypedDataOrder)
        value, contract = order.value, parse_address(order.domain["verifyingContract"])
        if order.primary_type == "TransferWithAuthorization":
            nonce, amount = int(value["nonce"], 16), int(value["value"])
            payee, until = parse_address(value["to"]), int(value["validBefore"])
            claim = Claim("eip3009", contract, parse_address(value["from"]), payee, nonce, until, amount, amount)
        elif order.primary_type == "PermitWitnessTransferFrom" and contract == PERMIT2:
            permitted, witness = value["permitted"], value["witness"]
            most, nonce, until = int(permitted["amount"]), int(value["nonce"]), int(value["deadline"])
            least = 0 if "facilitator" in witness else most
            token, payee = parse_address(permitted["token"]), parse_address(witness["to"])
            # The payer is not in the document: it is the wallet.
            claim = Claim("permit2", token, parse_address(wallet), payee, nonce, until, most, least)
        else:
            return None
    except (msgspec.MsgspecError, Invalid, KeyError, TypeError, ValueError, AttributeError):
        return None
    return claim if 0 <= claim.nonce <= MAX_UINT256 else None


def state_question(claim: Claim) -> tuple[str, str]:
    """The contract that is asked whether the nonce is used, and the calldata."""
    payer = bytes.fromhex(claim.payer[2:]).rjust(32, b"\0")
    if claim.method == "eip3009":
        return claim.token, "0x" + (_STATE + payer + claim.nonce.to_bytes(32)).hex()
    return PERMIT2, "0x" + (_BITMAP + payer + (claim.nonce >> 8).to_bytes(32)).hex()


def used_in(claim: Claim, answer: Any) -> bool | None:
    """Read whether the nonce is used; None where the answer is not one word, or no truth value."""
    if not isinstance(answer, str) or len(answer) != 66 or answer[:2] != "0x" or not _HEX.issuperset(answer[2:]):
        return None
    word = int(answer, 16)
    if claim.method == "permit2":
        return bool(word >> (claim.nonce & 0xFF) & 1)
    return bool(word) if word in (0, 1) else None


def log_questions(claim: Claim, first: int, last: int) -> list[dict[str, Any]]:
    """The logs of some blocks that could say what the nonce was used for."""
    blocks = {"fromBlock": hex(first), "toBlock": hex(last)}
    payer = _word(int(claim.payer, 16))
    if claim.method == "eip3009":
        return [blocks | {"address": claim.token, "topics": [[_USED, _CANCELED], payer, _word(claim.nonce)]}]
    return [
        blocks | {"address": claim.token, "topics": [_TRANSFER, payer, _word(int(claim.payee, 16))]},
        blocks | {"address": PERMIT2, "topics": [_INVALIDATED, payer]},
    ]


def logs_in(claim: Claim, question: Mapping[str, Any], answer: Any) -> tuple[Log, ...] | None:
    """Read the logs that an answer has; None where one of them is not what was asked for, or twice the same."""
    if not isinstance(answer, list) or len(answer) > MAX_LOGS:
        return None
    try:
        logs = tuple(_log(question, each) for each in answer)
    except (UpstreamFailed, KeyError, TypeError, ValueError, AttributeError):
        return None
    places = {(each["blockHash"], each["logIndex"]) for each in answer}
    return tuple(log for log in logs if _is_about(claim, log)) if len(places) == len(answer) else None


def candidates(claim: Claim, logs: Sequence[Log]) -> list[str]:
    """The transactions of which must be asked whether they have the payment's nonce in them."""
    return list(dict.fromkeys(log.by for log in logs if claim.method == "permit2" and log.kind == _TRANSFER))


def names_nonce(claim: Claim, hash_: str, answer: Any) -> bool:
    """Say whether a transaction has the nonce in its calldata, as one that takes the payment has."""
    if not isinstance(answer, dict) or str(answer.get("hash")).lower() != hash_.lower():
        return False
    return _word(claim.nonce)[2:] in str(answer.get("input")).lower()


def verdict(followed: Followed, claim: Claim, at: Moment, seen: Seen) -> Verdict:
    """Judge what is certain about a payment."""
    final = {"block": at.height, "block_hash": at.hash}
    if seen.used is None:
        return NOTHING
    if not seen.used:
        if at.time > claim.until and followed.age_seconds >= MAY_LAPSE_SECONDS:
            return Verdict((News(id=followed.id, word="lapsed", **final),))  # type: ignore[arg-type]
        return NOTHING
    taken, given_up = _split(claim, seen)
    if len({log.by for log in taken}) > 1 or (taken and given_up and claim.method == "eip3009"):
        # A nonce is used once: the node contradicts itself, so it is asked again.
        return NOTHING
    if taken:
        [log, *_] = taken
        word: Literal["confirmed", "canceled"] = "confirmed"
        return Verdict((News(id=followed.id, word=word, block=log.block, block_hash=log.block_hash, by=log.by),))
    if given_up and not candidates(claim, seen.logs or ()):
        [log, *_] = given_up
        word = "canceled"
        return Verdict((News(id=followed.id, word=word, block=log.block, block_hash=log.block_hash, by=log.by),))
    if given_up or followed.age_seconds < LOGLESS_SECONDS:
        return NOTHING
    return Verdict((News(id=followed.id, word="confirmed", **final),))  # type: ignore[arg-type]


def moment_in(answer: Any, height: int) -> Moment | None:
    """Read the block at final depth; None for another one, or none."""
    try:
        if quantity(answer["number"]) != height or not _is_hash(answer["hash"]):
            return None
        return Moment(height, answer["hash"], quantity(answer["timestamp"]))
    except (UpstreamFailed, KeyError, TypeError, AttributeError):
        return None


def _split(claim: Claim, seen: Seen) -> tuple[list[Log], list[Log]]:
    logs = seen.logs or ()
    taken = [log for log in logs if log.kind == _USED or (log.kind == _TRANSFER and seen.named.get(log.by))]
    return taken, [log for log in logs if log.kind in (_CANCELED, _INVALIDATED)]


def _is_about(claim: Claim, log: Log) -> bool:
    """Say whether it could be the payment's: of a transfer by its amount, of an invalidation by its bit."""
    if log.kind == _TRANSFER:
        return len(log.words) == 32 and claim.least <= int.from_bytes(log.words) <= claim.most
    if log.kind == _INVALIDATED:
        word, mask = int.from_bytes(log.words[:32]), int.from_bytes(log.words[32:])
        return len(log.words) == 64 and word == claim.nonce >> 8 and bool(mask >> (claim.nonce & 0xFF) & 1)
    return True


def _log(question: Mapping[str, Any], found: Mapping[str, Any]) -> Log:
    """Read one log strictly: of the contract, topics and blocks that were asked for."""
    topics = [topic.lower() for topic in found["topics"]]
    first, *others = question["topics"]
    kinds = first if isinstance(first, list) else [first]
    block = quantity(found["blockNumber"])
    is_asked_for = (
        found["address"].lower() == question["address"]
        and topics[0] in kinds
        and topics[1:] == others
        and int(question["fromBlock"], 16) <= block <= int(question["toBlock"], 16)
        and found.get("removed", False) is False
        and _is_hash(found["blockHash"])
        and _is_hash(found["transactionHash"])
    )
    if not is_asked_for or quantity(found["logIndex"]) > MAX_UINT256:
        raise ValueError("not what was asked for")
    words = bytes.fromhex(found["data"].removeprefix("0x"))
    return Log(topics[0], words, block, found["blockHash"], found["transactionHash"].lower())


def _is_hash(text: Any) -> bool:
    return isinstance(text, str) and len(text) == 66 and text[:2] == "0x" and _HEX.issuperset(text[2:].lower())


def _word(number: int) -> str:
    return "0x" + number.to_bytes(32).hex()
