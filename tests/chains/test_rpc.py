"""The JSON-RPC client against nodes that are away, broken or lying."""

import asyncio
import logging
import traceback

import msgspec
import pytest

from custody.chains.built_in import CHAINS
from custody.chains.evm import rpc as evm
from custody.chains.evm.orders import EvmOrder
from custody.chains.rpc import Rpc, RpcRefused, RpcUnavailable
from tests.fixtures.eventually import soon
from tests.outside.bad_node import running_bad_node

# As many as one pool holds.
CONNECTIONS = 100
NOBODY = "http://127.0.0.1:1/v2/topsecret"
SENDER, THEM = "0x" + "11" * 20, "0x" + "22" * 20
LEGACY = {
    "eth_chainId": "0x7a69",
    "eth_getTransactionCount": "0x5",
    "eth_getBalance": hex(10**18),
    "eth_gasPrice": "0x77",
}


@pytest.fixture
def node():
    with running_bad_node() as started:
        yield started


@pytest.fixture
async def rpc():
    async with Rpc() as client:
        yield client


def url(node):
    return f"http://user:hunter2@{node.address}/v2/topsecret"


def chain(node):
    return msgspec.structs.replace(next(one for one in CHAINS if one.id == 31337), rpc_urls=(url(node),))


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>", "is not JSON-RPC"),
        (200, b"", "is not JSON-RPC"),
        (200, b"[]", "left a request unanswered"),
        (200, b'{"id": 999, "result": 1}', "left a request unanswered"),
        (200, b"[" * 100_000, "is not JSON-RPC"),
        (200, b'{"id": 1, "result": "' + b"a" * 2**20 + b'"}', "is too long"),
        (302, b"", "is not JSON-RPC"),
        (401, b"denied", "is not JSON-RPC"),
        (429, b'{"id": 1, "error": {"message": "slow down"}}', "with status 429"),
        (502, b"bad gateway", "with status 502"),
    ],
)
async def test_a_node_that_gives_no_usable_answer_counts_as_away(rpc, node, status, body, said):
    node.status, node.body = status, body

    with pytest.raises(RpcUnavailable, match=said) as problem:
        await rpc.call([url(node)], "eth_chainId", [])
    assert problem.value.code == "rpc_unavailable"
    assert "127.0.0.1" in problem.value.message


async def test_a_silent_node_is_given_up(node):
    node.silent.clear()

    async with Rpc(read_seconds=0.2) as hasty:
        with pytest.raises(RpcUnavailable, match="in time"):
            await hasty.call([url(node)], "eth_chainId", [])


async def test_a_brief_question_leaves_a_silent_node_out_until_it_answered_something(node):
    node.silent.clear()
    node.results = {"eth_getBalance": "0x1"}
    async with Rpc() as rpc:
        with pytest.raises(RpcUnavailable, match="in time"):
            await rpc.brief.call([url(node)], "eth_getBalance", [])
        asked = len(node.heard)
        node.silent.set()
        with pytest.raises(RpcUnavailable, match=r"The node at 127\.0\.0\.1 did not answer lately"):
            await rpc.brief.call([url(node)], "eth_getBalance", [])
        assert len(node.heard) == asked
        assert await rpc.call([url(node)], "eth_getBalance", []) == "0x1"
        assert await rpc.brief.call([url(node)], "eth_getBalance", []) == "0x1"


async def test_work_that_takes_a_node_long_does_not_hide_it(node):
    node.silent.clear()
    async with Rpc(connect_seconds=0.1, read_seconds=0.1) as hasty:
        with pytest.raises(RpcUnavailable, match="in time"):
            await hasty.brief.call([url(node)], "eth_call", [])
        with pytest.raises(RpcUnavailable, match="in time"):
            await hasty.brief.call([url(node)], "eth_getBalance", [])


async def test_connections_that_others_hold_hide_no_node(node):
    node.results, taken = {"eth_getBalance": "0x2"}, []

    async def take(_reader, writer):
        taken.append(writer)

    async with (
        await asyncio.start_server(take, "127.0.0.1", 0, backlog=CONNECTIONS) as slow,
        Rpc(connect_seconds=20.0) as rpc,
    ):
        address = f"http://127.0.0.1:{slow.sockets[0].getsockname()[1]}"
        held = [asyncio.create_task(rpc.call([address], "eth_call", [])) for _ in range(CONNECTIONS)]
        try:
            await soon(lambda: len(taken) >= CONNECTIONS)
            with pytest.raises(RpcUnavailable, match="in time"):
                await rpc.brief.call([url(node)], "eth_getBalance", [])
            assert node.heard == []
        finally:
            # Whatever went wrong: a server waits for its connections before it ends.
            for writer in taken:
                writer.close()
            await asyncio.gather(*held, return_exceptions=True)
        assert await rpc.brief.call([url(node)], "eth_getBalance", []) == "0x2"


async def test_a_silent_node_is_asked_last(node):
    with running_bad_node() as other:
        node.silent.clear()
        other.results = {"eth_getBalance": "0x2"}
        # The other one has as long for its answers, on a machine that may be busy.
        async with Rpc(connect_seconds=2.0, read_seconds=2.0) as hasty:
            for _ in range(2):
                assert await hasty.call([url(node), url(other)], "eth_getBalance", []) == "0x2"
            assert await hasty.brief.call([url(node), url(other)], "eth_getBalance", []) == "0x2"
        assert (len(node.heard), len(other.heard)) == (1, 3)


async def test_the_next_address_is_asked_when_the_first_is_away(rpc, node):
    node.results = {"eth_chainId": "0x1"}

    assert await rpc.call([NOBODY, url(node)], "eth_chainId", []) == "0x1"


async def test_a_refusal_is_an_answer_and_no_other_node_is_asked(rpc, node):
    node.results = {}

    with pytest.raises(RpcRefused, match="no such method") as refused:
        await rpc.call([url(node), NOBODY], "eth_nothing", [])
    assert refused.value.rpc_code == -32601


async def test_a_chain_without_addresses_is_unavailable(rpc):
    with pytest.raises(RpcUnavailable, match="configured"):
        await rpc.call([], "eth_chainId", [])


@pytest.mark.parametrize("address", [NOBODY, "http://user:hunter2@127.0.0.1:1/topsecret", "nonsense://topsecret:x"])
async def test_no_part_of_an_address_but_its_host_is_shown(rpc, address, caplog):
    caplog.set_level(logging.DEBUG)

    with pytest.raises(RpcUnavailable) as problem:
        await rpc.call([address], "eth_chainId", [])

    shown = "".join(traceback.format_exception(problem.value)) + problem.value.message + caplog.text
    assert "hunter2" not in shown
    assert "/topsecret" not in shown


async def test_an_address_is_not_logged_when_it_answers(rpc, node, caplog):
    node.results = {"eth_chainId": "0x1"}
    caplog.set_level(logging.DEBUG)

    await rpc.call([url(node)], "eth_chainId", [])

    assert "hunter2" not in caplog.text
    assert "topsecret" not in caplog.text


async def test_a_nodes_error_message_is_cut_and_cleaned(rpc, node):
    message = "bad\r\n\x1b[31m\u202e" + "x" * 1_000
    node.body = msgspec.json.encode({"id": None, "error": {"code": 5, "message": message}})

    with pytest.raises(RpcRefused) as refused:
        await rpc.call([url(node)], "eth_chainId", [])
    assert refused.value.message.isprintable()
    assert len(refused.value.message) <= 300


async def test_a_batch_gives_each_question_its_own_answer_or_refusal(rpc, node):
    node.results = {"eth_chainId": "0x1", "eth_gasPrice": "0x2"}

    first, missing, last = await rpc.batch([url(node)], [("eth_gasPrice", []), ("eth_x", []), ("eth_chainId", [])])

    assert (first, last) == ("0x2", "0x1")
    assert isinstance(missing, RpcRefused)


async def test_a_batch_refused_as_a_whole_refuses_every_question(rpc, node):
    node.body = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no batches"}}'

    answers = await rpc.batch([url(node)], [("eth_gasPrice", []), ("eth_chainId", [])])

    assert [one.message for one in answers] == ["no batches", "no batches"]


async def test_a_chain_without_base_fee_is_prepared_with_its_gas_price(rpc, node):
    node.results = {**LEGACY, "eth_getBlockByNumber": {"number": "0x1"}, "eth_estimateGas": "0x5208"}

    prepared = await evm.prepare(rpc, chain(node), SENDER, EvmOrder(THEM, "5"))

    assert (prepared.pending_nonce, prepared.gas_limit, prepared.max_fee, prepared.legacy) == (5, 21_000, 0x77, True)


async def test_a_plain_transfer_needs_no_estimate(rpc, node):
    node.results = {**LEGACY, "eth_getBlockByNumber": {"baseFeePerGas": "0x10"}}

    prepared = await evm.prepare(rpc, chain(node), SENDER, EvmOrder(THEM, "5", data="0x"))

    assert prepared.gas_limit == 100_000
    assert (prepared.max_fee, prepared.priority_fee) == (2 * 16 + 10**9, 10**9)
    with pytest.raises(evm.EstimateFailed):
        await evm.prepare(rpc, chain(node), SENDER, EvmOrder(THEM, "5", data="0x12345678"))


@pytest.mark.parametrize("nonsense", ["5", 5, None, "0x", "0x-5", "0xzz", "0x1" + "0" * 64, [], {}])
async def test_a_figure_that_is_no_figure_is_not_believed(rpc, node, nonsense):
    node.results = {**LEGACY, "eth_getTransactionCount": nonsense, "eth_getBlockByNumber": {}, "eth_estimateGas": "0x1"}

    with pytest.raises(RpcUnavailable):
        await evm.prepare(rpc, chain(node), SENDER, EvmOrder(THEM, "5"))
