"""An order as a person types it, made into what `simulate` is asked; what is wrong is said at its field. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from words.texts.amounts import coins
from words.texts.chains import CHAINS, Coin
from words.texts.chains import EVM as EVM_COINS

EVM, TYPED_DATA, MESSAGE, SOLANA, BITCOIN = "evm", "typed_data", "message", "solana", "bitcoin"
# The API's name of a field, and the input it belongs to.
FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    EVM: {"to": "to", "value": "value", "chainId": "chain", "data": "data"},
    TYPED_DATA: dict.fromkeys(("domain", "types", "primaryType", "value", "request"), "document"),
    MESSAGE: dict.fromkeys(("chainFamily", "message", "raw", "chainId", "referenceId", "request"), "body"),
    SOLANA: {"transaction": "transaction", "to": "recipient", "value": "declared", "chainId": "cluster"},
    BITCOIN: {"walletScope": "scope", "psbtBase64": "psbt"},
}
# What is refused before it is judged names no field, but its code says which it is.
_CODES: Final = {
    "unknown_chain": {EVM: "chain", SOLANA: "cluster", MESSAGE: "body"},
    "bad_message": {MESSAGE: "body"},
    "message_not_ours": {MESSAGE: "body"},
    "bad_typed_data": {TYPED_DATA: "document"},
    "solana_malformed": {SOLANA: "transaction"},
    "solana_unsupported": {SOLANA: "transaction"},
    "declared_mismatch": {SOLANA: "declared"},
    "bad_wallet_scope": {BITCOIN: "scope"},
    "psbt_malformed": {BITCOIN: "psbt"},
    "psbt_ambiguous": {BITCOIN: "psbt"},
    "psbt_unproven_input": {BITCOIN: "psbt"},
    "psbt_sighash": {BITCOIN: "psbt"},
    "psbt_no_own_input": {BITCOIN: "psbt"},
    "psbt_fee": {BITCOIN: "psbt"},
    "psbt_nonstandard_output": {BITCOIN: "psbt"},
    "fee_above_cap": {BITCOIN: "psbt"},
}
_AMOUNT: Final = re.compile(r"([0-9]{1,80})(?:\.([0-9]{1,80}))?(?: ?([A-Za-z]{1,12}))?\Z")
_GWEI: Final = 9


class BadField(Exception):
    """Something typed cannot be read: where, and how it would be."""

    def __init__(self, field: str, sentence: str) -> None:
        self.field = field
        self.sentence = sentence
        super().__init__(sentence)


def question(kind: str, typed: Mapping[str, str]) -> dict[str, Any]:
    """The body that `simulate` takes, or BadField."""
    given = {name: text.strip() for name, text in typed.items()}
    build = {EVM: _evm, TYPED_DATA: _typed_data, MESSAGE: _message, SOLANA: _solana, BITCOIN: _bitcoin}[kind]
    return {"kind": kind, "request": build(given)}


def field_of(kind: str, data: Mapping[str, Any]) -> str | None:
    """Find the field of the form that a refusal of the API is about; None if it does not say."""
    named = data.get("fields")
    for name in named if isinstance(named, list) else ():
        top = re.split(r"[.\[]", str(name).removeprefix("request."))[0]
        if field := FIELDS[kind].get(top):
            return field
    return _CODES.get(str(data.get("code")), {}).get(kind)


def coin_of(kind: str, chain: str) -> Coin:
    """The coin that an amount is typed in."""
    known = CHAINS.get(int(chain)) if chain.isascii() and chain.isdecimal() and len(chain) <= 16 else None
    if kind == SOLANA:
        return CHAINS[101].coin
    return known.coin if known and known.coin.smallest == "wei" else EVM_COINS


def said_back(field: str, text: str, coin: Coin) -> str:
    """An amount as it is understood, in both units; or what is wrong with it."""
    try:
        return f"= {coins(str(amount(field, text, coin)), coin)}"
    except BadField as bad:
        return bad.sentence


def amount(field: str, text: str, coin: Coin) -> int:
    """Smallest units of `0.5`, `0.5 ETH`, `3 gwei`, `20 wei`; nothing is 0. Exact, or BadField."""
    if not text.strip():
        return 0
    found = _AMOUNT.match(text.strip())
    units = {
        coin.symbol.lower(): coin.decimals,
        coin.smallest: 0,
        **({"gwei": _GWEI} if coin.smallest == "wei" else {}),
    }
    unit = (found[3] or coin.symbol).lower() if found else ""
    if coin is EVM_COINS:
        units |= {chain.coin.symbol.lower(): 18 for chain in CHAINS.values() if chain.coin.smallest == "wei"}
    if found is None or unit not in units:
        raise BadField(
            field, f"Write a number, in {coin.symbol}, or with its unit: 0.5 {coin.symbol}, 20 {coin.smallest}."
        )
    places, fraction = units[unit], (found[2] or "").rstrip("0")
    if len(fraction) > places:
        raise BadField(field, f"It has more decimals than {places}, so it is not a whole number of {coin.smallest}.")
    return int(found[1] + fraction.ljust(places, "0"))


def _evm(given: Mapping[str, str]) -> dict[str, Any]:
    value = amount("value", given["value"], coin_of(EVM, given["chain"]))
    request: dict[str, Any] = {"to": _require(given, "to", "the destination address"), "value": str(value)}
    if given["chain"]:
        request["chainId"] = _chain("chain", given["chain"])
    return request | ({"data": given["data"]} if given["data"] else {})


def _typed_data(given: Mapping[str, str]) -> dict[str, Any]:
    document = _object(given, "document", "the document as JSON")
    # Wallets call it `message`; the API has the word of the signing libraries.
    if "message" in document and "value" not in document:
        document["value"] = document.pop("message")
    return document


def _message(given: Mapping[str, str]) -> dict[str, Any]:
    return _object(given, "body", "the message as JSON, as sign-message takes it")


def _solana(given: Mapping[str, str]) -> dict[str, Any]:
    request = {
        "transaction": _require(given, "transaction", "the transaction in base64"),
        "to": _require(given, "recipient", "the address that the transaction pays"),
        "value": str(amount("declared", given["declared"], coin_of(SOLANA, ""))),
    }
    return request | ({"chainId": _chain("cluster", given["cluster"])} if given["cluster"] else {})


def _bitcoin(given: Mapping[str, str]) -> dict[str, Any]:
    scope = _require(given, "scope", "the address that signs, like bitcoin:mainnet:p2wpkh:0:0:0")
    return {"walletScope": scope, "psbtBase64": _require(given, "psbt", "the PSBT in base64")}


def _require(given: Mapping[str, str], field: str, what: str) -> str:
    if not given[field]:
        raise BadField(field, f"Write {what}.")
    return given[field]


def _object(given: Mapping[str, str], field: str, what: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(_require(given, field, what), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as problem:
        raise BadField(field, f"Not a JSON object: {problem}.") from None


def _chain(field: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 16):
        raise BadField(field, "Write the chain's number, such as 1 or 8453.")
    return int(text)
