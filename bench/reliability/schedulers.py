"""Two schedulers on one database, one of them killed every second, in turns."""

from collections.abc import Callable

from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import deploy, killable_postgres
from tests.outside.bad_node import running_bad_node
from tests.scheduler.replicas import Killed, replicas_killed

# A node that takes every transaction and says nothing of what becomes of it.
TAKES_ALL: dict[str, object] = {
    "eth_chainId": "0x7a69",
    "eth_sendRawTransaction": "0x" + "00" * 32,
    "eth_getTransactionCount": "0x0",
    "eth_getTransactionByHash": None,
    "eth_getTransactionReceipt": None,
    "eth_blockNumber": "0x1",
    "eth_estimateGas": "0x5208",
    "eth_maxPriorityFeePerGas": "0x1",
    "eth_getBalance": hex(10**18),
    "eth_getBlockByNumber": {"baseFeePerGas": "0x1", "number": "0x1"},
}


def kill(seconds: float, say: Callable[[str], None]) -> Killed:
    """On a deployment of its own, whose api sends nothing by itself."""
    with running_bad_node() as node, killable_postgres() as postgres:
        node.results = dict(TAKES_ALL)
        with (
            deploy(
                postgres.database, "signer", "identity", "api", SERVICE_RPC_URL_31337=f"http://{node.address}"
            ) as service,
            new_tenant(service) as tenant,
        ):
            return replicas_killed(service, tenant, seconds, say)
