"""The chains that a client may name."""

from tests.fixtures.callers import Client
from tests.fixtures.server import EVM_CHAIN


def test_the_default_chain_is_the_first_and_says_what_amounts_mean(as_nobody: Client) -> None:
    chains = as_nobody.ok("GET", "/chains")

    assert chains[0]["chainId"] == EVM_CHAIN
    assert [one["isDefault"] for one in chains] == [True] + [False] * (len(chains) - 1)
    ethereum = next(one for one in chains if one["chainId"] == 1)
    assert (ethereum["symbol"], ethereum["decimals"], ethereum["asset"]) == ("ETH", 18, "evm:native")
    assert {one["family"] for one in chains} == {"evm", "solana"}
