"""Effects of typed data, recognised by its exact type."""

from typing import Any

import msgspec
import pytest

from custody.chains.evm.selectors import PERMIT2
from custody.chains.evm.typed_data import read
from custody.chains.evm.typed_effects import subject_of
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.types import UNLIMITED, Effect
from custody.kit.shapes import MAX_UINT256
from tests.rules.chains.published_types import UNKNOWN, document

US, TOKEN, OTHER, SPENDER = ("0x" + digit * 40 for digit in "1234")
ASSET = f"evm:8453:{TOKEN}"
DOMAIN = {"chainId": 8453, "verifyingContract": TOKEN}
PERMIT2_DOMAIN = {"name": "Permit2", "chainId": 8453, "verifyingContract": PERMIT2}

PERMIT = "address owner,address spender,uint256 value,uint256 nonce,uint256 deadline"
DAI = "address holder,address spender,uint256 nonce,uint256 expiry,bool allowed"
AUTHORIZATION = "address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce"
DETAILS = "address token,uint160 amount,uint48 expiration,uint48 nonce"
PERMISSIONS = "address token,uint256 amount"


def order(types: dict[str, str], value: dict[str, Any], domain: dict[str, Any] | None = None) -> TypedDataOrder:
    """A document whose first type is the primary one; fields are written as in the standard's type string."""
    structs = {
        name: [dict(zip(("type", "name"), field.split(" "), strict=True)) for field in fields.split(",")]
        for name, fields in types.items()
    }
    body = {"domain": DOMAIN if domain is None else domain, "types": structs, "primaryType": next(iter(types))}
    return msgspec.convert({**body, "value": value}, TypedDataOrder)


def effects(*arguments: Any) -> tuple[Effect, ...]:
    return subject_of(read(order(*arguments)), US).effects


def permit(**changes: Any) -> dict[str, Any]:
    return {"owner": US, "spender": SPENDER, "value": "5", "nonce": 0, "deadline": 99, **changes}


def authorization(**changes: Any) -> dict[str, Any]:
    plain = {"from": US, "to": OTHER, "value": "5", "validAfter": 0, "validBefore": 99, "nonce": "0x" + "01" * 32}
    return {**plain, **changes}


def dai(**changes: Any) -> dict[str, Any]:
    return {"holder": US, "spender": SPENDER, "nonce": 0, "expiry": 0, "allowed": True, **changes}


def test_a_permit_is_an_approval() -> None:
    (effect,) = effects({"Permit": PERMIT}, permit())

    assert effect == Effect("approval", ASSET, 5, US, spender=SPENDER, label="Permit")


@pytest.mark.parametrize(("value", "unlimited"), [(UNLIMITED - 1, False), (UNLIMITED, True), (MAX_UINT256, True)])
def test_a_permit_is_unlimited_from_the_bound_on(value: int, unlimited: bool) -> None:
    (effect,) = effects({"Permit": PERMIT}, permit(value=str(value)))

    assert (effect.amount, effect.unlimited) == (value, unlimited)


@pytest.mark.parametrize(("allowed", "amount"), [(True, MAX_UINT256), (False, 0)])
def test_a_dai_permit_gives_everything_or_takes_it_back(allowed: bool, amount: int) -> None:
    (effect,) = effects({"Permit": DAI}, dai(allowed=allowed))

    assert (effect.kind, effect.amount, effect.unlimited) == ("approval", amount, allowed)


@pytest.mark.parametrize("name", ["TransferWithAuthorization", "ReceiveWithAuthorization"])
def test_an_authorization_is_a_transfer(name: str) -> None:
    (effect,) = effects({name: AUTHORIZATION}, authorization())

    assert effect == Effect("transfer", ASSET, 5, US, OTHER, label=name)


def test_our_address_is_ours_in_any_spelling() -> None:
    us = "0x" + "ab" * 20
    document = order({"Permit": PERMIT}, permit(owner="0x" + "AB" * 20))

    assert subject_of(read(document), us).effects[0].kind == "approval"


def test_a_permit2_single_allows_the_token_it_names() -> None:
    details = {"token": TOKEN, "amount": 5, "expiration": 9, "nonce": 0}
    types = {"PermitSingle": "PermitDetails details,address spender,uint256 sigDeadline", "PermitDetails": DETAILS}

    (effect,) = effects(types, {"details": details, "spender": SPENDER, "sigDeadline": 9}, PERMIT2_DOMAIN)

    assert effect == Effect("approval", ASSET, 5, US, spender=SPENDER, label="PermitSingle")


BATCH = {"PermitBatch": "PermitDetails[] details,address spender,uint256 sigDeadline", "PermitDetails": DETAILS}


def batch(count: int) -> dict[str, Any]:
    details = [{"token": TOKEN, "amount": index, "expiration": 9, "nonce": 0} for index in range(count)]
    return {"details": details, "spender": SPENDER, "sigDeadline": 9}


def test_a_permit2_batch_has_one_approval_for_each_token() -> None:
    for count in (3, 100):
        found = effects(BATCH, batch(count), PERMIT2_DOMAIN)
        assert [(effect.kind, effect.amount) for effect in found] == [("approval", index) for index in range(count)]


@pytest.mark.parametrize("count", [0, 101])
def test_a_permit2_batch_of_none_or_too_many_is_opaque(count: int) -> None:
    assert [effect.kind for effect in effects(BATCH, batch(count), PERMIT2_DOMAIN)] == ["unread"]


PERMITTED = {"token": TOKEN, "amount": 5}


@pytest.mark.parametrize(("name", "suffix", "permitted"), [("", "", PERMITTED), ("Batch", "[]", [PERMITTED])])
def test_a_permit2_transfer_is_spent_on_the_spender(name: str, suffix: str, permitted: Any) -> None:
    primary = f"Permit{name}TransferFrom"
    fields = f"TokenPermissions{suffix} permitted,address spender,uint256 nonce,uint256 deadline"
    value = {"permitted": permitted, "spender": SPENDER, "nonce": 0, "deadline": 9}

    (effect,) = effects({primary: fields, "TokenPermissions": PERMISSIONS}, value, PERMIT2_DOMAIN)

    assert effect == Effect("transfer", ASSET, 5, US, SPENDER, label=primary)


def test_permit2_at_another_contract_is_opaque() -> None:
    assert [effect.kind for effect in effects(BATCH, batch(1), DOMAIN)] == ["unread"]


WORD = "0x" + "01" * 32
SEAPORT = {
    "OrderComponents": "address offerer,address zone,OfferItem[] offer,ConsiderationItem[] consideration,"
    "uint8 orderType,uint256 startTime,uint256 endTime,bytes32 zoneHash,uint256 salt,bytes32 conduitKey,"
    "uint256 counter",
    "OfferItem": "uint8 itemType,address token,uint256 identifierOrCriteria,uint256 startAmount,uint256 endAmount",
    "ConsiderationItem": "uint8 itemType,address token,uint256 identifierOrCriteria,uint256 startAmount,"
    "uint256 endAmount,address recipient",
}
SOLD = {
    "offerer": US,
    "zone": OTHER,
    "offer": [],
    "consideration": [],
    "orderType": 0,
    "startTime": 0,
    "endTime": 9,
    "zoneHash": WORD,
    "salt": 0,
    "conduitKey": WORD,
    "counter": 0,
}
COW = (
    "address sellToken,address buyToken,address receiver,uint256 sellAmount,uint256 buyAmount,uint32 validTo,"
    "bytes32 appData,uint256 feeAmount,string kind,bool partiallyFillable,string sellTokenBalance,"
    "string buyTokenBalance"
)
SWAPPED = {
    "sellToken": TOKEN,
    "buyToken": OTHER,
    "receiver": US,
    "sellAmount": 1,
    "buyAmount": 1,
    "validTo": 9,
    "appData": WORD,
    "feeAmount": 0,
    "kind": "sell",
    "partiallyFillable": False,
    "sellTokenBalance": "erc20",
    "buyTokenBalance": "erc20",
}
WITNESS = "TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness"
WITNESSED = {"permitted": PERMITTED, "spender": SPENDER, "nonce": 0, "deadline": 9, "witness": {"user": US}}

OPAQUE: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "a permit of somebody else": ({"Permit": PERMIT}, permit(owner=OTHER)),
    "DAI of somebody else": ({"Permit": DAI}, dai(holder=OTHER)),
    "an authorization of somebody else": (
        {"TransferWithAuthorization": AUTHORIZATION},
        authorization(**{"from": OTHER}),
    ),
    "a permit under another name": ({"Renamed": PERMIT}, permit()),
    "an authorization under another name": ({"Renamed": AUTHORIZATION}, authorization()),
    "Seaport": (SEAPORT, SOLD),
    "Seaport within": ({"Note": "OrderComponents it", **SEAPORT}, {"it": SOLD}),
    "Seaport in bulk": ({"BulkOrder": "OrderComponents[2] tree", **SEAPORT}, {"tree": [SOLD, SOLD]}),
    "CoW": ({"Order": COW}, SWAPPED),
    "SafeMessage": ({"SafeMessage": "bytes message"}, {"message": "0x"}),
    "Permit2 with a witness": (
        {"PermitWitnessTransferFrom": WITNESS, "TokenPermissions": PERMISSIONS, "Witness": "address user"},
        WITNESSED,
    ),
}


@pytest.mark.parametrize(("types", "value"), OPAQUE.values(), ids=OPAQUE)
def test_power_that_cannot_be_read_exactly_is_opaque(types: dict[str, str], value: dict[str, Any]) -> None:
    assert effects(types, value) == (Effect("unread", None, 0, US, TOKEN, label=next(iter(types))),)


@pytest.mark.parametrize("domain", [{}, {"chainId": 1}, {"verifyingContract": TOKEN}])
def test_a_permit_without_chain_or_contract_is_opaque(domain: dict[str, Any]) -> None:
    assert [effect.kind for effect in effects({"Permit": PERMIT}, permit(), domain)] == ["unread"]


PERSON = "string name,address wallet"
MAIL = {"Mail": "Person from,Person to,string contents", "Person": PERSON}
SENDER = {"name": "Cow", "wallet": US}
HARMLESS: list[tuple[dict[str, str], dict[str, Any]]] = [
    (MAIL, {"from": SENDER, "to": SENDER, "contents": "Hello, Bob!"}),
    ({"CancelAuthorization": "address authorizer,bytes32 nonce"}, {"authorizer": US, "nonce": WORD}),
    ({"OrderCancellations": "bytes[] orderUids"}, {"orderUids": ["0x01"]}),
]


@pytest.mark.parametrize(("types", "value"), HARMLESS, ids=[next(iter(types)) for types, _ in HARMLESS])
def test_the_listed_kinds_move_nothing(types: dict[str, str], value: dict[str, Any]) -> None:
    assert effects(types, value) == ()


@pytest.mark.parametrize(
    ("types", "value"),
    [
        ({"Mail": "string contents"}, {"contents": "Hello"}),
        ({"CancelAuthorization": "bytes32 nonce,address authorizer"}, {"nonce": WORD, "authorizer": US}),
        ({"SafeTx": "address to,uint256 value"}, {"to": OTHER, "value": 0}),
        ({"OrderComponents": "address offerer"}, {"offerer": US}),
    ],
)
def test_the_name_of_a_known_kind_makes_none(types: dict[str, str], value: dict[str, Any]) -> None:
    assert [effect.unknown for effect in effects(types, value)] == [True]


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("domain", [DOMAIN, {}], ids=["with a contract", "without a domain"])
def test_a_published_type_on_no_list_is_unknown(name: str, domain: dict[str, Any]) -> None:
    subject = subject_of(read(msgspec.convert(document(name, domain), TypedDataOrder)), US)

    (effect,) = subject.effects
    assert (effect.kind, effect.unknown, effect.to) == ("unread", True, domain.get("verifyingContract"))


def test_the_subject_names_chain_and_contract_in_lower_case() -> None:
    domain = {"chainId": "0x1", "verifyingContract": "0x" + "AB" * 20}

    subject = subject_of(read(order({"Mail": "string contents"}, {"contents": ""}, domain)), US)

    assert (subject.family, subject.kind, subject.calls) == ("evm", "typed_data", ())
    assert (subject.chain_id, subject.caip2) == (1, "eip155:1")
    assert subject.destination == subject.verifying_contract == "0x" + "ab" * 20


def test_a_document_for_no_chain_names_none() -> None:
    subject = subject_of(read(order({"Mail": "string contents"}, {"contents": ""}, {})), US)

    assert (subject.chain_id, subject.caip2, subject.destination, subject.verifying_contract) == (None,) * 4
