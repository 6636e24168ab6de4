"""approved-addresses and allowed-chains: who and where."""

import msgspec
import pytest

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Effect, Subject
from custody.policies.judge import judge
from custody.policies.types import InvalidPolicy
from tests.rules.policies.makers import (
    ALICE,
    BOB,
    TOKEN,
    TOKEN_CONTRACT,
    approval_call,
    evm,
    facts,
    native,
    permit,
    rent,
    rule,
    rules,
    token_call,
    typed_data,
    unknown,
    unread_call,
)

VITALIK = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"
SOLANA = "9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM"


def addresses(*listed, mode="whitelist"):
    return rules(rule("approved-addresses", {"addresses": list(listed), "mode": mode}))


def decision(set_, order):
    return judge(set_, order, facts()).decision


def chains(*listed):
    return rules(rule("allowed-chains", {"chains": list(listed)}))


def test_evm_addresses_are_compared_without_case():
    assert decision(addresses(VITALIK), native(1, to=VITALIK.lower())) == "sign"
    assert decision(addresses(VITALIK.lower()), native(1, to=VITALIK)) == "sign"
    assert decision(addresses(VITALIK), native(1, to=ALICE)) == "refuse"


def test_a_token_transfer_is_compared_by_its_recipient_not_its_contract():
    assert decision(addresses(ALICE), token_call(5, to=ALICE)) == "sign"
    assert decision(addresses(TOKEN_CONTRACT), token_call(5, to=ALICE)) == "refuse"


@pytest.mark.parametrize("order", [approval_call(5, spender=BOB), permit(5, spender=BOB)])
def test_an_approval_is_compared_by_its_spender(order):
    assert decision(addresses(BOB), order) == "sign"
    assert decision(addresses(ALICE, TOKEN_CONTRACT), order) == "refuse"


def test_an_undecodable_call_asks_behind_a_whitelist_only_if_its_contract_is_listed():
    assert decision(addresses(TOKEN_CONTRACT), unread_call()) == "queue"
    assert decision(addresses(ALICE), unread_call()) == "refuse"


def test_an_empty_native_transfer_beside_a_token_call_is_no_recipient():
    order = token_call(5, to=ALICE)
    coins = Effect("transfer", EVM_NATIVE, 0, BOB, TOKEN_CONTRACT)

    assert decision(addresses(ALICE), evm(coins, *order.effects, calls=order.calls)) == "sign"


def test_a_payment_of_nothing_still_names_its_destination():
    assert decision(addresses(ALICE), native(0, to=BOB)) == "refuse"


def test_a_transfer_to_nobody_fails_both_modes():
    order = evm(Effect("transfer", TOKEN, 5, BOB))

    assert decision(addresses(ALICE), order) == "refuse"
    assert decision(addresses(ALICE, mode="blacklist"), order) == "refuse"


def test_a_blacklist_refuses_whom_it_names_as_recipient_or_contract():
    assert decision(addresses(ALICE, mode="blacklist"), native(1, to=ALICE)) == "refuse"
    assert decision(addresses(ALICE, mode="blacklist"), native(1, to=BOB)) == "sign"
    assert decision(addresses(TOKEN_CONTRACT, mode="blacklist"), token_call(1)) == "refuse"


def test_typed_data_that_moves_nothing_has_no_recipient():
    assert decision(addresses(ALICE), typed_data()) == "sign"


def test_a_blacklist_refuses_typed_data_for_a_contract_that_it_names():
    assert decision(addresses(TOKEN_CONTRACT, mode="blacklist"), unknown()) == "refuse"


def test_solana_addresses_are_compared_exactly_and_apart_from_evm():
    order = Subject("solana", "solana", 101, None, SOLANA, (Effect("transfer", "solana:native", 1, to=SOLANA),))

    assert decision(addresses(SOLANA), order) == "sign"
    assert decision(addresses(ALICE), order) == "refuse"


def test_rent_paid_for_somebody_makes_them_a_recipient():
    lone = msgspec.structs.replace(rent(), effects=rent(owner=SOLANA).effects[1:])

    assert decision(addresses(SOLANA), lone) == "sign"
    assert decision(addresses(VITALIK), lone) == "refuse"


def test_a_bech32_address_is_compared_without_case():
    address = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
    order = Subject("bitcoin", "bitcoin", None, None, address, (Effect("transfer", "bitcoin", 1, to=address),))

    assert decision(addresses(address.upper()), order) == "sign"
    assert decision(addresses("1BoatSLRHtKNngkdXEeobR76b53LETtpyT"), order) == "refuse"


@pytest.mark.parametrize(
    "address",
    [
        VITALIK[:-1] + "6",
        VITALIK.replace("dA6", "DA6"),
        "0x12",
        ALICE + "\n",
        "alice.eth",
        SOLANA[:-2],
        SOLANA + "1",
        "1BoatSLRHtKNngkdXEeobR76b53LETtpyU",
        "bc1QW508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        "",
        5,
    ],
)
def test_an_address_that_cannot_be_one_is_not_accepted(address):
    with pytest.raises(InvalidPolicy, match=r"Rule 1\b"):
        addresses(address)


def test_a_mode_is_one_of_two():
    with pytest.raises(InvalidPolicy, match="mode"):
        addresses(ALICE, mode="greylist")


@pytest.mark.parametrize("name", [1, "eip155:1"])
def test_an_evm_chain_is_named_by_number_or_caip2(name):
    assert decision(chains(name), native(1)) == "sign"
    assert decision(chains(name), token_call(1, chain_id=8453)) == "refuse"


@pytest.mark.parametrize("name", [101, "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"])
def test_a_solana_chain_is_named_by_number_or_caip2(name):
    order = Subject("solana", "solana", 101, "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", SOLANA, ())

    assert decision(chains(name), order) == "sign"
    assert decision(chains(102, "eip155:101"), order) == "refuse"


def test_bitcoin_networks_have_two_names():
    order = Subject("bitcoin", "bitcoin", None, "bip122:0f9188f13cb7b2c71f2a335e3a4fc328", "bcrt1q", ())

    assert decision(chains("bitcoin:regtest"), order) == "sign"
    assert decision(chains("bitcoin:mainnet", 1), order) == "refuse"


def test_typed_data_for_every_chain_fails_allowed_chains():
    assert decision(chains(1), typed_data(chain_id=None)) == "refuse"
    assert decision(chains(1), typed_data(chain_id=1)) == "sign"


@pytest.mark.parametrize("chain", ["1", "eip155:0x1", "eip155:1\n", "evm", "cosmos:hub", 0, -1, 1.5, True])
def test_a_chain_nobody_can_name_is_not_accepted(chain):
    with pytest.raises(InvalidPolicy, match=r"Rule 1\b"):
        chains(chain)


def test_a_list_of_no_chains_is_not_accepted():
    with pytest.raises(InvalidPolicy, match="chains"):
        chains()
