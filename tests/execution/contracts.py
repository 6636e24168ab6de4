"""The contracts that orders are executed on: their compiled code, their functions, and where their state lies."""

import base64
import hashlib
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from eth_abi import encode as encode_abi

_HERE = Path(__file__).parent
_SOURCES = (
    "compile.mjs",
    "contracts/Callers.sol",
    "contracts/Others.sol",
    "contracts/Token.sol",
    "contracts/X402.sol",
    "package-lock.json",
)


class Contract(msgspec.Struct, frozen=True):
    """One compiled contract; `storage` names the variable at each slot."""

    source: str
    package: str
    compiler: str
    functions: dict[str, str]
    payable: list[str]
    storage: dict[str, str]
    creation: str

    def code(self, types: list[str], values: list[Any]) -> bytes:
        """The creation code with the constructor's arguments behind it."""
        return zlib.decompress(base64.b64decode(self.creation)) + encode_abi(types, values)

    def selectors(self) -> list[str]:
        """Every function, as `contract-allowlist` names them."""
        return sorted(f"0x{selector}" for selector in self.functions.values())


class Compiled(msgspec.Struct, frozen=True):
    """The output of `compile.mjs`: the contracts by name, and the digest of their sources."""

    made_from: str
    contracts: dict[str, Contract]


@cache
def _read() -> Compiled:
    return msgspec.json.decode((_HERE / "contracts.json").read_bytes(), type=Compiled)


def contracts_by_name() -> dict[str, Contract]:
    """Every contract by its name."""
    return _read().contracts


def made_from() -> tuple[str, str]:
    """The digest of what the code was made from, and that of what stands here now."""
    now = hashlib.sha256(b"".join((_HERE / name).read_bytes() for name in _SOURCES))
    return _read().made_from, now.hexdigest()


@cache
def _selector(contract: str, signature: str) -> bytes:
    return bytes.fromhex(contracts_by_name()[contract].functions[signature])


def types_of(signature: str) -> list[str]:
    """The types of a function's arguments; a tuple is one of them."""
    inner, depth, types, word = signature[signature.index("(") + 1 : -1], 0, [], ""
    for letter in inner:
        if letter == "," and not depth:
            types.append(word)
            word = ""
            continue
        depth += (letter == "(") - (letter == ")")
        word += letter
    return [*types, word] if word else types


def call(contract: str, signature: str, *values: Any) -> bytes:
    """The calldata of a function of a contract."""
    return _selector(contract, signature) + encode_abi(types_of(signature), values)
