"""The typed-data document by which an EVM wallet pays what an offer demands; it is built here, and by nobody else."""

from collections.abc import Mapping
from typing import Any, Final

from custody.chains.evm.address import checksum
from custody.chains.evm.selectors import PERMIT2
from custody.chains.evm.typed_kinds import X402_EXACT, X402_UPTO
from custody.chains.evm.typed_order import TypedDataField, TypedDataOrder
from custody.payments.offers import Terms

type _Fields = list[TypedDataField]


def _fields(text: str) -> _Fields:
    return [TypedDataField(name, kind) for kind, name in (each.split() for each in text.split(","))]


_TRANSFER: Final = {
    "TransferWithAuthorization": _fields(
        "address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce"
    )
}
_PERMIT: Final = {
    "PermitWitnessTransferFrom": _fields(
        "TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness"
    ),
    "TokenPermissions": _fields("address token,uint256 amount"),
}
_EXACT: Final = _PERMIT | {"Witness": _fields("address to,uint256 validAfter")}
_UPTO: Final = _PERMIT | {"Witness": _fields("address to,address facilitator,uint256 validAfter")}


def document(terms: Terms, wallet: str, nonce: bytes, until: int) -> TypedDataOrder:
    """Build the document: valid at once and until that second, usable once by its nonce."""
    if terms.method == "eip3009":
        domain = {"name": terms.name, "version": terms.version, "chainId": terms.chain.id}
        return TypedDataOrder(
            domain | {"verifyingContract": checksum(terms.contract)},
            _TRANSFER,
            "TransferWithAuthorization",
            {
                "from": checksum(wallet),
                "to": checksum(terms.pay_to),
                "value": str(terms.amount),
                "validAfter": "0",
                "validBefore": str(until),
                "nonce": "0x" + nonce.hex(),
            },
        )
    witness = {"to": checksum(terms.pay_to), "validAfter": "0"}
    if terms.third is not None:
        witness["facilitator"] = checksum(terms.third)
    return TypedDataOrder(
        {"name": "Permit2", "chainId": terms.chain.id, "verifyingContract": checksum(PERMIT2)},
        _EXACT if terms.third is None else _UPTO,
        "PermitWitnessTransferFrom",
        {
            "permitted": {"token": checksum(terms.contract), "amount": str(terms.amount)},
            "spender": checksum(X402_EXACT if terms.third is None else X402_UPTO),
            "nonce": str(int.from_bytes(nonce)),
            "deadline": str(until),
            "witness": witness,
        },
    )


def payload(order: TypedDataOrder, wallet: str, signature: str) -> Mapping[str, Any]:
    """Make what the server is given: the document's message, and its signature."""
    if order.primary_type == "TransferWithAuthorization":
        return {"signature": signature, "authorization": order.value}
    return {"signature": signature, "permit2Authorization": {"from": checksum(wallet), **order.value}}
