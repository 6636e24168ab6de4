"""The EVM client against real nodes: anvil and our own local chain."""

import asyncio

import msgspec
import pytest
from eth_account import Account

from custody.chains.built_in import CHAINS
from custody.chains.evm import rpc as evm
from custody.chains.evm.orders import EvmOrder, EvmPrepared
from custody.chains.rpc import BroadcastRefused, Rpc, RpcUnavailable
from tests.judges import npm
from tests.outside.evm_node import find_anvil, running_evm_node

GWEI = 10**9
THEM = "0x" + "00" * 19 + "77"
BALANCE_OF = bytes.fromhex("70a08231")
TRANSFER_ONE = "0xa9059cbb" + THEM[2:].zfill(64) + "1".zfill(64)


async def transaction_count(rpc, chain, address, block="latest"):
    """Ask a node how many transactions of an address it counts at a block."""
    at = hex(block) if isinstance(block, int) else block
    return int(await rpc.call(chain.rpc_urls, "eth_getTransactionCount", [address, at]), 16)


@pytest.fixture(scope="module", params=["py-evm", "anvil"])
def node(request):
    if request.param == "anvil" and (reason := npm.missing()):
        pytest.skip(reason)
    if request.param == "anvil" and not find_anvil():
        npm.install()
    with running_evm_node(request.param) as started:
        yield started


@pytest.fixture
def chain(node):
    local = next(one for one in CHAINS if one.id == 31337)
    return msgspec.structs.replace(local, rpc_urls=(node.url,))


@pytest.fixture
async def rpc():
    async with Rpc() as client:
        yield client


@pytest.fixture
def wallet(node):
    account = Account.create()
    node.fund(account.address, 10**18)
    return account


def sign(wallet, nonce, **changes):
    fields = {
        "type": 2,
        "chainId": 31337,
        "nonce": nonce,
        "to": THEM,
        "value": 1,
        "gas": 21_000,
        "maxFeePerGas": 50 * GWEI,
        "maxPriorityFeePerGas": GWEI,
        "data": b"",
    }
    done = Account.sign_transaction(fields | changes, wallet.key)
    return bytes(done.raw_transaction), done.hash.to_0x_hex()


async def mine(rpc, chain, raw, hash_):
    """Send a transaction; its receipt. A node that mines at once does so a moment after it has answered."""
    await evm.broadcast(rpc, chain, raw, hash_)
    async with asyncio.timeout(60):
        while (receipt := await evm.receipt(rpc, chain, hash_)) is None:
            pass
    return receipt


async def test_a_plain_transfer_is_prepared(rpc, chain, wallet):
    prepared = await evm.prepare(rpc, chain, wallet.address, EvmOrder(THEM, "5"))

    assert (prepared.pending_nonce, prepared.gas_limit, prepared.legacy) == (0, 21_000, False)
    assert prepared.max_fee > prepared.priority_fee > 0


async def test_a_prepared_transaction_is_mined(rpc, chain, wallet):
    prepared = await evm.prepare(rpc, chain, wallet.address, EvmOrder(THEM, "5"))
    fees = {"maxFeePerGas": prepared.max_fee, "maxPriorityFeePerGas": prepared.priority_fee}
    raw, hash_ = sign(wallet, prepared.pending_nonce, gas=prepared.gas_limit, value=5, **fees)

    receipt = await mine(rpc, chain, raw, hash_)

    assert receipt.succeeded
    assert receipt.gas_used == 21_000
    assert await transaction_count(rpc, chain, wallet.address) == 1
    assert await evm.balance(rpc, chain, wallet.address) == 10**18 - 5 - 21_000 * receipt.effective_gas_price


async def test_a_token_transfer_is_estimated_with_a_margin(rpc, chain, wallet, node):
    token = node.deploy_erc20(wallet.address)

    prepared = await evm.prepare(rpc, chain, wallet.address, EvmOrder(token, "0", data=TRANSFER_ONE))

    assert 55_000 < prepared.gas_limit < 80_000
    held = await evm.call(rpc, chain, token, BALANCE_OF + bytes(12) + bytes.fromhex(wallet.address[2:]))
    assert int.from_bytes(held) == 10**12


async def test_a_call_that_would_revert_says_why(rpc, chain, wallet, node):
    token = node.deploy_erc20(THEM)

    with pytest.raises(evm.EstimateFailed, match="balance too low") as refused:
        await evm.prepare(rpc, chain, wallet.address, EvmOrder(token, "0", data=TRANSFER_ONE))
    assert refused.value.code == "estimate_failed"


@pytest.mark.parametrize("value", [10**18, 2 * 10**18, 10**18 - 21_000])
async def test_missing_funds_name_the_address_to_fund(rpc, chain, wallet, value):
    with pytest.raises(evm.InsufficientFunds, match=wallet.address) as refused:
        await evm.prepare(rpc, chain, wallet.address, EvmOrder(THEM, str(value)))
    assert refused.value.code == "insufficient_funds"


async def test_missing_play_money_leads_to_the_local_chains_own_method(rpc, chain, wallet):
    with pytest.raises(evm.InsufficientFunds, match="starts empty each time; its method dev_fund"):
        await evm.prepare(rpc, chain, wallet.address, EvmOrder(THEM, str(2 * 10**18)))


async def test_a_node_of_another_chain_is_not_asked_for_nonces(rpc, chain, wallet):
    elsewhere = msgspec.structs.replace(chain, id=1)

    with pytest.raises(RpcUnavailable, match="serves chain 31337"):
        await evm.prepare(rpc, elsewhere, wallet.address, EvmOrder(THEM, "5"))


async def test_sending_the_same_bytes_again_is_a_success(rpc, chain, wallet):
    raw, hash_ = sign(wallet, 0)

    await mine(rpc, chain, raw, hash_)
    await evm.broadcast(rpc, chain, raw, hash_)

    assert await transaction_count(rpc, chain, wallet.address) == 1


async def test_a_waiting_transaction_is_known_and_mined_when_its_turn_comes(rpc, chain, wallet):
    (first, first_hash), (second, second_hash) = sign(wallet, 0), sign(wallet, 1)

    await evm.broadcast(rpc, chain, second, second_hash)
    assert await evm.is_known(rpc, chain, second_hash)
    assert await evm.receipt(rpc, chain, second_hash) is None
    await evm.broadcast(rpc, chain, second, second_hash)
    await evm.broadcast(rpc, chain, first, first_hash)

    assert await transaction_count(rpc, chain, wallet.address, "pending") == 2


async def test_a_nonce_that_another_transaction_used_is_refused(rpc, chain, wallet):
    await mine(rpc, chain, *sign(wallet, 0))
    raw, hash_ = sign(wallet, 0, value=2)

    with pytest.raises(BroadcastRefused, match="nonce") as refused:
        await evm.broadcast(rpc, chain, raw, hash_)
    assert refused.value.code == "broadcast_refused"
    assert not await evm.is_known(rpc, chain, hash_)


@pytest.mark.parametrize("changes", [{"chainId": 1}, {"value": 10**18}, {"gas": 20_000}, {"maxFeePerGas": 1}])
async def test_an_order_that_the_chain_cannot_execute_is_refused(rpc, chain, wallet, changes):
    fees = {"maxPriorityFeePerGas": 1} if "maxFeePerGas" in changes else {}
    raw, hash_ = sign(wallet, 0, **changes, **fees)

    with pytest.raises(BroadcastRefused):
        await evm.broadcast(rpc, chain, raw, hash_)
    assert await transaction_count(rpc, chain, wallet.address, "pending") == 0


async def test_a_legacy_transaction_is_taken(rpc, chain, wallet):
    fields = {
        "nonce": 0,
        "to": THEM,
        "value": 1,
        "gas": 21_000,
        "gasPrice": 50 * GWEI,
        "chainId": 31337,
    }
    done = Account.sign_transaction(fields, wallet.key)

    receipt = await mine(rpc, chain, bytes(done.raw_transaction), done.hash.to_0x_hex())

    assert receipt.effective_gas_price == 50 * GWEI


async def test_the_height_grows_and_old_counts_stay_readable(rpc, chain, wallet, node):
    before = await evm.height(rpc, chain)
    await mine(rpc, chain, *sign(wallet, 0))
    node.mine()

    assert await evm.height(rpc, chain) == before + 2
    assert await transaction_count(rpc, chain, wallet.address, before) == 0
    assert await transaction_count(rpc, chain, wallet.address, before + 1) == 1


async def test_a_burst_of_fifty_in_reverse_order_is_mined_whole(rpc, chain, wallet):
    burst = [sign(wallet, nonce) for nonce in range(50)]

    for raw, hash_ in reversed(burst):
        await evm.broadcast(rpc, chain, raw, hash_)

    assert await transaction_count(rpc, chain, wallet.address, "pending") == 50


async def test_a_callers_own_gas_limit_is_kept(rpc, chain, wallet):
    prepared = await evm.prepare(rpc, chain, wallet.address, EvmOrder(THEM, "5", gas_limit="77777"))

    assert isinstance(prepared, EvmPrepared)
    assert prepared.gas_limit == 77_777


async def test_a_gas_limit_beyond_any_block_still_fits_a_frame(rpc, chain, wallet):
    with pytest.raises(evm.NotExecutable) as problem:
        await evm.prepare(rpc, chain, wallet.address, EvmOrder(THEM, "0", gas_limit=str(10**30)))

    assert msgspec.msgpack.encode(problem.value.prepared)
