"""For programs that use eth-account or web3.py: an account without a key, and a sender that takes no word of a node.

`vault_middleware` is the way for web3.py: the service chooses nonce and fees, so many payments at once are all mined,
and what waits for a person is paid when they say so. `VaultAccount` is for libraries that want an account: nonce and
fees are the caller's, one transaction after the other, and what comes back is compared with what was asked for.
"""

import contextlib
import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NoReturn

from eth_account import Account
from eth_account.datastructures import SignedMessage, SignedTransaction
from eth_account.messages import SignableMessage, encode_typed_data
from eth_account.signers.local import LocalAccount
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from eth_keys.exceptions import BadSignature
from eth_typing import ChecksumAddress, HexAddress, HexStr
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError
from hexbytes import HexBytes
from rlp.exceptions import RLPException

from custody_sdk import _types as types
from custody_sdk._asks import Signed, plain
from custody_sdk.client import AsyncVault, Vault
from custody_sdk.errors import BadArgument, NotAsked, VaultError

# Everything that a type 2 transaction has, and who sends it.
_FIELDS: Final = frozenset(
    {"type", "from", "to", "value", "data", "nonce", "gas", "chainId", "accessList"}
    | {"maxFeePerGas", "maxPriorityFeePerGas"}
)
_NEEDED: Final = ("nonce", "gas", "chainId", "maxFeePerGas", "maxPriorityFeePerGas")
# Methods of a node that would sign with a key, which there is none of.
_OF_KEYS: Final = ("eth_sign", "eth_signTransaction", "personal_", "eth_signTypedData", "wallet_", "eth_sendBundle")
_PERSONAL: Final = b"thereum Signed Message:\n"
_SAYS: Final = "to, value, data, nonce, gas, chainId, maxFeePerGas and maxPriorityFeePerGas"
_UNREADABLE: Final = (ValueError, TypeError, KeyError, RLPException, BadSignature, ValidationError)


class NoKey(VaultError):
    """The key never leaves the service, so nothing here can show it, or sign what nobody can read."""

    def __init__(self, what: str) -> None:
        super().__init__(0, "no_key", f"{what}: {NoKey.__doc__}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.sentence.partition(":")[0],)


class VaultAccount(LocalAccount):
    """An account of eth-account whose wallet is in the vault. It has no key: its parent's constructor is not called.

    Libraries take the chain from their node where nobody says it: with `chain_id` nothing is signed for another one.
    """

    def __init__(self, vault: Vault, *, chain_id: int | None = None, wait: float = 0) -> None:
        self._vault, self._chain_id, self._wait = vault, chain_id, wait
        self._address = ChecksumAddress(HexAddress(HexStr(vault.wallet()["walletAddresses"]["evm"])))

    def __repr__(self) -> str:
        return f"<VaultAccount {self._address}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an account holds a client and is not pickled: make one in each process")

    @property
    def key(self) -> NoReturn:
        """Raise: there is none."""
        raise NoKey("key")

    def __bytes__(self) -> NoReturn:
        raise NoKey("bytes(account)")

    def encrypt(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: there is nothing to encrypt."""
        raise NoKey("encrypt")

    def unsafe_sign_hash(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: a hash says nothing about what is signed."""
        raise NoKey("unsafe_sign_hash")

    def sign_authorization(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: EIP-7702 hands a wallet over to code."""
        raise NoKey("sign_authorization")

    def sign_transaction(self, transaction_dict: Mapping[str, Any], blobs: Any = None) -> SignedTransaction:
        """Return the transaction signed, if it is to the byte the one that was asked for."""
        if blobs:
            raise BadArgument(0, "unsupported", "blobs are not supported.")
        order = _order_of(transaction_dict, self._address)
        for field in _NEEDED:
            if transaction_dict.get(field) is None:
                raise BadArgument(
                    0, "bad_transaction", f"{field} is missing; `vault_middleware` leaves it to the service."
                )
        if self._chain_id not in (None, order["chainId"]):
            raise BadArgument(0, "bad_transaction", f"chainId is not {self._chain_id}.")
        name = "tx-" + hashlib.sha256(json.dumps(order, sort_keys=True).encode()).hexdigest()[:48]
        signed = self._vault.send(name, order | {"broadcast": False}, wait=self._wait)
        return _same_transaction(signed, order, self._address)

    def sign_message(self, signable_message: SignableMessage) -> SignedMessage:
        """Return the signature of a message (EIP-191, `personal_sign`); of anything else raise."""
        prefix, body = _PERSONAL + str(len(signable_message.body)).encode(), signable_message.body
        if signable_message.version != b"E" or signable_message.header != prefix:
            raise NoKey("sign_message of what is no text; for documents use sign_typed_data")
        try:
            said: str | bytes = body.decode()
        except UnicodeDecodeError:
            said = body
        name = "message-" + hashlib.sha256(body).hexdigest()[:48]
        return self._checked_signature(self._vault.sign_message(name, said, wait=self._wait), signable_message)

    def sign_typed_data(
        self,
        domain_data: dict[str, Any] | None = None,
        message_types: dict[str, Any] | None = None,
        message_data: dict[str, Any] | None = None,
        full_message: dict[str, Any] | None = None,
    ) -> SignedMessage:
        """Return the signature of an EIP-712 document."""
        signable = encode_typed_data(domain_data, message_types, message_data, full_message)
        document = full_message or {
            "domain": domain_data,
            "types": message_types,
            "primaryType": _primary(message_types or {}),
            "message": message_data,
        }
        document = plain(document)
        name = "document-" + hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:48]
        return self._checked_signature(self._vault.sign_typed_data(name, document, wait=self._wait), signable)

    def _checked_signature(self, signed: Signed, signable: SignableMessage) -> SignedMessage:
        signature, signer = _hex(signed.signature, 65), ""
        with contextlib.suppress(*_UNREADABLE):
            # What eth-account understands by it must be what the wallet signed.
            signer = Account.recover_message(signable, signature=signature)
        if signer != self._address:
            raise NotAsked(200, "not_asked", "The signature is of something else.", {"txId": signed.tx_id})
        r, s, v = int.from_bytes(signature[:32]), int.from_bytes(signature[32:64]), signature[64]
        hashed = keccak(b"\x19" + signable.version + signable.header + signable.body)
        return SignedMessage(HexBytes(hashed), r, s, v, HexBytes(signature))


def _order_of(given: Mapping[str, Any], own: str) -> types.EvmOrder:
    """Return the order of a transaction; what an order cannot say raises before anything is sent."""
    fields = dict(given)
    if "input" in fields:
        fields.setdefault("data", fields.pop("input"))
    if extra := sorted(name for name in fields if name not in _FIELDS):
        raise BadArgument(0, "unsupported", f"{', '.join(extra)[:200]}: only type 2 is signed, with {_SAYS}.")
    if fields.get("accessList") or _number(fields.get("type"), 2) != 2:
        raise BadArgument(0, "unsupported", f"only type 2 without an access list is signed, with {_SAYS}.")
    if not fields.get("to"):
        raise BadArgument(0, "unsupported", "a transaction without `to` creates a contract, which no rule could judge.")
    sender = fields.get("from")
    if sender is not None and _text(sender).lower() != own.lower():
        raise BadArgument(0, "bad_transaction", f"from is another wallet: this one is {own}.")
    order: dict[str, Any] = {"to": _text(fields["to"]), "value": str(_number(fields.get("value"), 0))}
    data = fields.get("data")
    if data not in (None, "", "0x", b""):
        order["data"] = _text(data)
    numbers = {name: _number(fields[name], 0) for name in _NEEDED if fields.get(name) is not None}
    for name, number in numbers.items():
        # The order's own names and kinds: chain and nonce are numbers there, the rest is text.
        order["gasLimit" if name == "gas" else name] = number if name in ("chainId", "nonce") else str(number)
    return order  # type: ignore[return-value]


def _same_transaction(signed: Signed, order: types.EvmOrder, own: str) -> SignedTransaction:
    """Return a signed transaction, if it is this wallet's and says what was asked for and nothing else."""
    raw = _hex(signed.signed_transaction, None)
    wanted = {
        "type": 2,
        "chainId": order["chainId"],
        "nonce": order["nonce"],
        "gas": int(order["gasLimit"] or 0),
        "maxFeePerGas": int(order["maxFeePerGas"] or 0),
        "maxPriorityFeePerGas": int(order["maxPriorityFeePerGas"] or 0),
        "to": order["to"],
        "value": int(order["value"]),
        "data": order.get("data") or "0x",
        "accessList": (),
    }
    parts: dict[str, Any] = {}
    try:
        found = TypedTransaction.from_bytes(HexBytes(raw))
        # The hash of what is signed covers each field; the bytes must have no other spelling.
        if found.hash() == TypedTransaction.from_dict(wanted).hash() and found.encode() == raw:
            parts = found.as_dict() if Account.recover_transaction(raw) == own else {}
    except _UNREADABLE:
        pass
    if not parts:
        raise NotAsked(
            200, "not_asked", "The bytes are not the transaction that was asked for.", {"txId": signed.tx_id}
        )
    return SignedTransaction(HexBytes(raw), HexBytes(keccak(raw)), parts["r"], parts["s"], parts["v"])


def vault_middleware(vault: Vault | AsyncVault, *, wait: float = 0) -> Callable[[Any], Any]:
    """Return what web3.py 7 and 8 inject: `w3.middleware_onion.inject(vault_middleware(vault), layer=0)`.

    `eth_sendTransaction` then asks the vault, which chooses the gas limit, and the nonce and fees that are not given.
    `AsyncWeb3` wants an `AsyncVault`.
    """
    from custody_sdk._web3 import Sender  # noqa: PLC0415  web3.py is needed here alone

    return partial(Sender, vault=vault, wait=wait)


def order_to_send(params: Any, own: str) -> tuple[str, types.EvmOrder]:
    """Return the order of what `eth_sendTransaction` is given, under a name of its own."""
    given = dict(params[0])
    # web3.py asks a node for it where nobody said it; the service estimates by itself.
    given.pop("gas", None)
    return f"web3-{uuid.uuid4().hex}", _order_of(given, own)


def refuse_keys(method: str) -> None:
    """Raise for a method that a node would answer with a key of its own."""
    if method.startswith(_OF_KEYS):
        raise BadArgument(0, "unsupported", f"{method} is not supported: sign by the vault's own methods.")


def _primary(message_types: Mapping[str, Any]) -> str:
    """Return the type that no other refers to, as eth-account chooses it."""
    uses = {name: {str(field["type"]).partition("[")[0] for field in fields} for name, fields in message_types.items()}
    below = {used for name, parts in uses.items() for used in parts if used != name}
    found = [name for name in message_types if name not in below and name != "EIP712Domain"]
    if len(found) != 1:
        raise BadArgument(0, "bad_document", "the primary type is not clear: give full_message, with primaryType.")
    return found[0]


def _number(value: Any, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, str):
        value = int(value, 16) if value.startswith("0x") else int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadArgument(0, "bad_transaction", "numbers are whole and not below 0.")
    return value


def _text(value: Any) -> str:
    """Return an address or calldata in hex."""
    text = value if isinstance(value, str) else "0x" + bytes(value).hex()
    return text if text.startswith("0x") else "0x" + text


def _hex(text: str | None, size: int | None) -> bytes:
    try:
        found = bytes.fromhex((text or "").removeprefix("0x"))
    except ValueError:
        found = b""
    if not found or (size is not None and len(found) != size):
        raise NotAsked(200, "not_asked", "The answer has no signature.")
    return found
