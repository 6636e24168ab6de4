"""ERC-6492: the signature of a contract wallet whose code is not on the chain yet. Pure.

The signature is wrapped together with the call that puts the code there. A node can carry out that call and ask the
wallet (EIP-1271) in one `eth_call` that leaves nothing behind. What it carries out is a contract's creation: the code
below runs once, as the constructor, and what it returns is the wallet's answer. The factory is called only where there
is no code: a wallet that is there answers for itself, whatever a stranger's call could have changed before.
"""

from typing import Final

import msgspec

_MAGIC: Final = bytes.fromhex("6492" * 16)
_WORD: Final = 32
_ADDRESS_BYTES: Final = 20
_HEAD: Final = 3 * _WORD
# Lengths and places in what is made below; three bytes hold any that a signature of 8 KiB can lead to.
_PLACE_BYTES: Final = 3
_STOP, _MUL, _EQ, _POP = b"\x00", b"\x02", b"\x14", b"\x50"
_CODECOPY, _EXTCODESIZE, _RETURNDATASIZE = b"\x39", b"\x3b", b"\x3d"
_MLOAD, _MSTORE, _JUMPI, _GAS, _JUMPDEST = b"\x51", b"\x52", b"\x57", b"\x5a", b"\x5b"
_CALL, _RETURN, _STATICCALL = b"\xf1", b"\xf3", b"\xfa"


class Undeployed(msgspec.Struct, frozen=True):
    """The call that puts the wallet's code on the chain, and the signature that the wallet is asked about."""

    factory: bytes
    deployment: bytes
    signature: bytes


class BadWrapper(Exception):
    """Marked as ERC-6492, and not readable as that."""


def unwrap(signature: bytes) -> Undeployed | None:
    """The parts of a wrapped signature, None where it is not wrapped; BadWrapper."""
    if not signature.endswith(_MAGIC):
        return None
    content = signature[: -len(_MAGIC)]
    if len(content) < _HEAD or any(content[: _WORD - _ADDRESS_BYTES]):
        raise BadWrapper
    factory = content[_WORD - _ADDRESS_BYTES : _WORD]
    return Undeployed(factory, _read_bytes(content, _WORD), _read_bytes(content, 2 * _WORD))


def build_question(wallet: bytes, wrapped: Undeployed, question: bytes) -> bytes:
    """The creation code that asks a wallet, and puts it on the chain first if it is not there.

    It answers with the word that the wallet returns; with nothing where there is no wallet even then, and with zeros
    where the wallet does not agree or returns anything but one word.
    """
    ask = len(_deploy(wallet, wrapped, 0, 0))
    size = ask + len(_ask(wallet, wrapped, question, 0))
    made = _deploy(wallet, wrapped, ask, size) + _ask(wallet, wrapped, question, size)
    return made + wrapped.deployment + question


def _deploy(wallet: bytes, wrapped: Undeployed, ask: int, size: int) -> bytes:
    """Go to `ask` if the wallet is there, else call the factory and go on only if it is there now.

    An address without code is no wallet, also where a chain answers by itself under it.
    """
    arguments = _place(len(wrapped.deployment))
    is_there = _push(wallet) + _EXTCODESIZE + _push(_place(ask)) + _JUMPI
    copied = _push(arguments) + _push(_place(size)) + _push(b"\0") + _CODECOPY
    called = _push(b"\0") * 2 + _push(arguments) + _push(b"\0") * 2 + _push(wrapped.factory) + _GAS + _CALL + _POP
    return is_there + copied + called + is_there + _STOP


def _ask(wallet: bytes, wrapped: Undeployed, question: bytes, size: int) -> bytes:
    """Ask the wallet, which may change nothing, and return its word."""
    asked, word = _place(len(question)), bytes((_WORD,))
    # Beyond all that is copied, so that nothing but the wallet writes there.
    result = _place(max(len(wrapped.deployment), len(question)))
    copied = _push(asked) + _push(_place(size + len(wrapped.deployment))) + _push(b"\0") + _CODECOPY
    called = _push(word) + _push(result) + _push(asked) + _push(b"\0") + _push(wallet) + _GAS + _STATICCALL
    said = _RETURNDATASIZE + _push(word) + _EQ + _MUL + _push(result) + _MLOAD + _MUL
    return _JUMPDEST + copied + called + said + _push(b"\0") + _MSTORE + _push(word) + _push(b"\0") + _RETURN


def _read_bytes(content: bytes, at: int) -> bytes:
    """The bytes whose place stands at `at`, as the ABI has them."""
    start = int.from_bytes(content[at : at + _WORD])
    if start + _WORD > len(content):
        raise BadWrapper
    size = int.from_bytes(content[start : start + _WORD])
    if start + _WORD + size > len(content):
        raise BadWrapper
    return content[start + _WORD : start + _WORD + size]


def _push(value: bytes) -> bytes:
    return bytes((0x5F + len(value),)) + value


def _place(number: int) -> bytes:
    return number.to_bytes(_PLACE_BYTES)
