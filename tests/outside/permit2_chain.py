"""Our own local chain that has Permit2 and x402's spenders from the first block on, where they stand on every chain."""

from custody.chains.evm.selectors import PERMIT2
from custody.chains.evm.typed_kinds import X402_EXACT, X402_UPTO
from ops.local_chain.json_rpc import JsonRpcServer
from ops.local_chain.methods import Methods
from ops.local_chain.node import Node
from tests.execution.chain import Chain
from tests.execution.contracts import contracts_by_name
from tests.outside.processes import READY

_STANDING = {PERMIT2: "Permit2", X402_EXACT: "ExactProxy", X402_UPTO: "UptoProxy"}


def accounts() -> dict[bytes, dict[str, object]]:
    """The contracts as accounts of a genesis; their creation notes where they stand."""
    chain, found = Chain(), {}
    for text, name in _STANDING.items():
        address = bytes.fromhex(text[2:])
        chain.place(address, contracts_by_name()[name].code([], []))
        found[address] = {"balance": 0, "nonce": 1, "code": chain.code(address), "storage": {}}
    return found


if __name__ == "__main__":
    with JsonRpcServer(0, Methods(Node(accounts())).table()) as server:
        print(f"{READY}{server.address}", flush=True)
        server.serve_forever()
