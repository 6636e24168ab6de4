"""Why a contract call failed, out of the node's error."""

from custody.chains.rpc import RpcRefused, clean

_ERROR, _PANIC = bytes.fromhex("08c379a0"), bytes.fromhex("4e487b71")
_WORD = 32
_PANICS = {
    0x01: "an assertion failed",
    0x11: "arithmetic overflow",
    0x12: "division by zero",
    0x21: "invalid enum value",
    0x31: "pop from an empty array",
    0x32: "index out of bounds",
    0x41: "out of memory",
}


def reason_of(refusal: RpcRefused) -> str:
    """Say in words why the call would revert, as far as the contract or the node tells."""
    data = _data(refusal)
    selector, body = data[:4], data[4:]
    if selector == _ERROR and (text := _text(body)):
        return text
    if selector == _PANIC and len(body) == _WORD:
        number = int.from_bytes(body)
        return _PANICS.get(number, f"panic 0x{number:x}")
    if len(selector) == len(_ERROR):
        return f"{refusal.message} (custom error 0x{selector.hex()})"
    return refusal.message


def _data(refusal: RpcRefused) -> bytes:
    found = refusal.data
    # Some clients wrap it once more.
    if isinstance(found, dict):
        found = found.get("data")
    if not isinstance(found, str) or not found.startswith("0x"):
        return b""
    try:
        return bytes.fromhex(found[2:])
    except ValueError:
        return b""


def _text(body: bytes) -> str:
    length = int.from_bytes(body[_WORD : 2 * _WORD])
    return clean(body[2 * _WORD : 2 * _WORD + min(length, len(body))].decode("utf-8", "replace"))
