"""`python -m ops.local_chain --port N`: serve the chain until told to stop. Port 0 takes a free one."""

import argparse
import signal
import sys

from ops.local_chain.json_rpc import JsonRpcServer
from ops.local_chain.methods import Methods
from ops.local_chain.node import Node


def main() -> None:
    """Serve on loopback and say where, once requests are taken."""
    options = argparse.ArgumentParser(prog="ops.local_chain", description="A local EVM chain in memory.")
    options.add_argument("--port", type=int, default=8545)
    port = options.parse_args().port
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with JsonRpcServer(port, Methods(Node()).table()) as server:
        print(f"listening on {server.address}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
