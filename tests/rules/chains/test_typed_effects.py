"""What typed data moves or allows, recognised by its exact type."""

from typing import Any

import msgspec
import pytest

from custody.chains.evm.selectors import PERMIT2
from custody.chains.evm.typed_data import read
from custody.chains.evm.typed_effects import subject_of
from custody.chains.orders import TypedDataOrder
from custody.chains.types import UNLIMITED, Effect
from custody.kit.shapes import MAX_UINT256

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
    assert [effect.amount for effect in effects(BATCH, batch(3), PERMIT2_DOMAIN)] == [0, 1, 2]


@pytest.mark.parametrize("count", [0, 101])
def test_a_permit2_batch_of_none_or_too_many_is_opaque(count: int) -> None:
    assert [effect.kind for effect in effects(BATCH, batch(count), PERMIT2_DOMAIN)] == ["opaque"]


PERMITTED = {"token": TOKEN, "amount": 5}


@pytest.mark.parametrize(("name", "suffix", "permitted"), [("", "", PERMITTED), ("Batch", "[]", [PERMITTED])])
def test_a_permit2_transfer_is_spent_on_the_spender(name: str, suffix: str, permitted: Any) -> None:
    primary = f"Permit{name}TransferFrom"
    fields = f"TokenPermissions{suffix} permitted,address spender,uint256 nonce,uint256 deadline"
    value = {"permitted": permitted, "spender": SPENDER, "nonce": 0, "deadline": 9}

    (effect,) = effects({primary: fields, "TokenPermissions": PERMISSIONS}, value, PERMIT2_DOMAIN)

    assert effect == Effect("transfer", ASSET, 5, US, SPENDER, label=primary)


def test_permit2_at_another_contract_is_opaque() -> None:
    assert [effect.kind for effect in effects(BATCH, batch(1), DOMAIN)] == ["opaque"]


OPAQUE = [
    ({"Permit": PERMIT}, permit(owner=OTHER)),
    ({"Permit": DAI}, dai(holder=OTHER)),
    ({"TransferWithAuthorization": AUTHORIZATION}, authorization(**{"from": OTHER})),
    ({"Permit": "address spender,uint256 tokenId"}, {"spender": SPENDER, "tokenId": 1}),
    ({"Renamed": PERMIT}, permit()),
    ({"Renamed": AUTHORIZATION}, authorization()),
    ({"OrderComponents": "address offerer"}, {"offerer": US}),
    ({"Note": "OrderComponents it", "OrderComponents": "address offerer"}, {"it": {"offerer": US}}),
    ({"BulkOrder": "uint8[2] tree"}, {"tree": [1, 2]}),
    ({"Order": "address sellToken,uint256 sellAmount"}, {"sellToken": TOKEN, "sellAmount": 1}),
    ({"SafeTx": "address to,uint256 value"}, {"to": OTHER, "value": 0}),
    ({"SafeMessage": "bytes message"}, {"message": "0x"}),
    ({"PackedUserOperation": "address sender"}, {"sender": US}),
    ({"ForwardRequest": "address from"}, {"from": US}),
    ({"MetaTransaction": "uint256 nonce"}, {"nonce": 0}),
    ({"Delegation": "address delegatee"}, {"delegatee": OTHER}),
    ({"SpendPermission": "address account"}, {"account": US}),
    ({"HyperliquidTransaction:UsdSend": "string destination"}, {"destination": OTHER}),
    ({"Agent": "string source,bytes32 connectionId"}, {"source": "a", "connectionId": "0x" + "01" * 32}),
    ({"MarketQuote": "uint256 price"}, {"price": 1}),
    ({"Bid": "uint256 price"}, {"price": 1}),
    ({"LinkSigner": "address signer"}, {"signer": OTHER}),
    ({"EnableModule": "address module"}, {"module": OTHER}),
    ({"Calls": "address target,bytes data"}, {"target": OTHER, "data": "0x"}),
    ({"Anything": "bytes32 hash"}, {"hash": "0x" + "01" * 32}),
]


@pytest.mark.parametrize(("types", "value"), OPAQUE, ids=[next(iter(types)) for types, _ in OPAQUE])
def test_power_that_cannot_be_read_exactly_is_opaque(types: dict[str, str], value: dict[str, Any]) -> None:
    assert effects(types, value) == (Effect("opaque", None, 0, US, TOKEN, label=next(iter(types))),)


@pytest.mark.parametrize("domain", [{}, {"chainId": 1}, {"verifyingContract": TOKEN}])
def test_a_permit_without_chain_or_contract_is_opaque(domain: dict[str, Any]) -> None:
    assert [effect.kind for effect in effects({"Permit": PERMIT}, permit(), domain)] == ["opaque"]


HARMLESS = [
    ({"Mail": "string contents"}, {"contents": "Hello"}),
    ({"Ballot": "uint256 proposalId,uint8 support"}, {"proposalId": 1, "support": 1}),
    ({"Login": "address account,string statement"}, {"account": US, "statement": "hi"}),
    ({"CancelAuthorization": "address authorizer,bytes32 nonce"}, {"authorizer": US, "nonce": "0x" + "01" * 32}),
]


@pytest.mark.parametrize(("types", "value"), HARMLESS, ids=[next(iter(types)) for types, _ in HARMLESS])
def test_other_documents_move_nothing(types: dict[str, str], value: dict[str, Any]) -> None:
    assert effects(types, value) == ()


def test_the_subject_names_chain_and_contract_in_lower_case() -> None:
    domain = {"chainId": "0x1", "verifyingContract": "0x" + "AB" * 20}

    subject = subject_of(read(order({"Mail": "string contents"}, {"contents": ""}, domain)), US)

    assert (subject.family, subject.kind, subject.calls) == ("evm", "typed_data", ())
    assert (subject.chain_id, subject.caip2) == (1, "eip155:1")
    assert subject.destination == subject.verifying_contract == "0x" + "ab" * 20


def test_a_document_for_no_chain_names_none() -> None:
    subject = subject_of(read(order({"Mail": "string contents"}, {"contents": ""}, {})), US)

    assert (subject.chain_id, subject.caip2, subject.destination, subject.verifying_contract) == (None,) * 4
