"""The exact values of an order, for comparison: ids, addresses, raw data. Pure."""

from typing import Final

from words.orders.addresses import checksum_address
from words.orders.document import document_lines
from words.orders.message_in_words import KINDS as MESSAGES
from words.orders.message_in_words import message_lines
from words.orders.order import Known, Order
from words.orders.psbt_in_words import network_of, psbt_details
from words.orders.solana_message import Instruction, instructions
from words.texts.amounts import quote, whole
from words.texts.chains import BitcoinNetwork, chain_name
from words.texts.lines import Line
from words.texts.moments import clock, moment
from words.texts.plain import clip

_RAW: Final = 600
_VALUE: Final = 200
_MOST_LINES: Final = 200
# What the service can read, by the first four bytes.
_CALLS: Final = {
    "0xa9059cbb": "transfer",
    "0x23b872dd": "transferFrom",
    "0x095ea7b3": "approve",
    "0x39509351": "increaseAllowance",
    "0xa457c2d7": "decreaseAllowance",
    "0xd505accf": "permit",
    "0x8fcbaf0c": "permit",
    "0xe3ee160e": "transferWithAuthorization",
    "0xef55bec6": "receiveWithAuthorization",
    "0x87517c45": "approve",
    "0x36c78516": "transferFrom",
    "0x42842e0e": "safeTransferFrom",
    "0xb88d4fde": "safeTransferFrom",
    "0xf242432a": "safeTransferFrom",
    "0x2eb2c2d6": "safeBatchTransferFrom",
    "0xa22cb465": "setApprovalForAll",
    "0xac9650d8": "multicall",
    "0x5ae401dc": "multicall",
}


def details(order: Order, known: Known) -> list[Line]:
    """Everything by its name, and then what is signed as far as it is no longer than a screen or two."""
    transaction = known.transaction
    named = [
        ("transaction", order.tx_id),
        ("digest", order.digest),
        ("kind", order.kind),
        ("chain", _chain(order, known)),
        ("to", order.to_address and checksum_address(order.to_address)),
        ("value", _value(order)),
        ("asked for", clock(moment(order.asked_at))),
        ("nonce", None if transaction is None or transaction.nonce is None else str(transaction.nonce)),
        ("reference", transaction.reference_id if transaction else None),
        (
            "broadcast",
            None if transaction is None else "yes" if transaction.broadcast else "no: the agent broadcasts it",
        ),
    ]
    said = [Line(f"{name:<13}{clip(value, _VALUE)}") for name, value in named if value]
    return said + data_lines(order.kind, known.data, network_of(order, known))


def data_lines(kind: str, data: object, network: BitcoinNetwork | None = None) -> list[Line]:
    """Show the signed data: calldata with its first four bytes read, a document in lines, anything else as it is."""
    if not data:
        return []
    if kind in MESSAGES:
        return message_lines(data)
    if isinstance(data, str):
        if kind == "evm":
            return [Line(_call(data)), Line(f"  {clip(data, _RAW)}", "quiet")]
        name = "Solana message (base64)" if kind == "solana" else "PSBT (base64)" if kind == "bitcoin" else "data"
        called = _instructions(data) if kind == "solana" else psbt_details(data, network) if kind == "bitcoin" else []
        return [*called, Line(f"{name}, {len(data):,} characters:"), Line(f"  {clip(data, _RAW)}", "quiet")]
    return document_lines(data)


def _chain(order: Order, known: Known) -> str:
    if order.kind == "bitcoin":
        network = network_of(order, known)
        return f"{network.shown}, {network.caip2}" if network else "a network of Bitcoin"
    return "none" if order.chain_id is None else f"{order.chain_id}, {chain_name(order.chain_id)}"


def _value(order: Order) -> str | None:
    amount = whole(order.value)
    return order.value if amount is None else f"{amount:,}"


def _call(data: str) -> str:
    body = data.lower().removeprefix("0x")
    selector = f"0x{body[:8]}"
    name = _CALLS.get(selector)
    return f"calldata, {len(body) // 2:,} bytes, function {selector}" + (f" ({name})" if name else "")


def _instructions(data: str) -> list[Line]:
    found = instructions(data)
    if found is None:
        return [Line("instructions: the message cannot be decoded here", "warn")]
    lines = [_instruction(number, one) for number, one in enumerate(found[:_MOST_LINES], 1)]
    if (more := len(found) - _MOST_LINES) > 0:
        lines.append(Line(f"  …and {more:,} more, not shown here.", "warn"))
    return [Line(f"instructions: {len(found):,}"), *lines]


def _instruction(number: int, one: Instruction) -> Line:
    if one.memo is not None:
        return Line(f"  {number}. {one.program}: {quote(one.memo, _VALUE)}")
    if not one.known:
        return Line(f"  {number}. {one.program}: {one.name or 'a program that is not known here'}", "warn")
    return Line(f"  {number}. {one.program}: {one.name}")
