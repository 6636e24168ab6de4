"""Times of clients, each beside the bare requests that it makes: `python -m bench.clients [--turns N] [--pairs N]`.

A client and the bare request take turns on one connection each, and kinds of clients too, so that a slow moment of the
machine is in all of them. Nothing here fails on time. Goals are of an idle machine.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import works
from bench.deployment import Deployment
from bench.installed import PROJECT
from tests.outside.mcp_clients.driven import PYTHON, set_up
from tests.sdk.typescript.built import folder_of

HERE = Path(__file__).parent
AGENT = "asks-0"
# Milliseconds above the bare request.
SDK_GOAL, TOOL_GOAL = 1, 10
Pair = tuple[float, float]


def main() -> None:
    """Measure all of them, one line each."""
    parser = argparse.ArgumentParser(prog="python -m bench.clients", description=__doc__)
    parser.add_argument("--turns", type=int, default=10, help="how often each kind of client has its turn (10)")
    parser.add_argument(
        "--pairs", type=int, default=40, help="how many pairs of a call and the bare one a turn has (40)"
    )
    given = parser.parse_args()
    measure(given.turns, given.pairs)


def measure(turns: int = 10, pairs: int = 40) -> None:
    """Measure reads by each client."""
    found: dict[str, list[Pair]] = {}
    with stage() as sides:
        for side in sides:
            ask(side, pairs)
        for _ in range(turns):
            for side in sides:
                for name, times in ask(side, pairs).items():
                    found.setdefault(name, []).extend(times)
    print(f"Reads by clients, {turns * pairs} pairs; medians in ms, load {os.getloadavg()[0]:.1f}:", flush=True)
    for name, times in found.items():
        print(line_of(name, times), flush=True)


def line_of(name: str, times: Sequence[Pair]) -> str:
    """Say what one client takes, and how much of it is its own."""
    bare, own = (statistics.median(column) for column in zip(*times, strict=True))
    least = min(two for _, two in times) - min(one for one, _ in times)
    above = statistics.median(two - one for one, two in times)
    goal = TOOL_GOAL if " by " in name else SDK_GOAL
    return (
        f"{name:30}{own:6.2f}   bare {bare:6.2f}   above it {above:5.2f}, of the fastest {least:5.2f}   goal {goal:2}"
    )


def ask(side: subprocess.Popen[str], pairs: int) -> dict[str, list[Pair]]:
    """Let one kind of client have its turn."""
    assert side.stdin
    assert side.stdout
    side.stdin.write(f"{pairs}\n")
    side.stdin.flush()
    said: dict[str, list[Pair]] = json.loads(side.stdout.readline())
    return said


@contextmanager
def stage() -> Iterator[list[subprocess.Popen[str]]]:
    """A deployment, an MCP server before it, and a process for each kind of client."""
    set_up()
    typescript = folder_of("newest")
    with Deployment() as deployment, ExitStack() as stack:
        token = deployment.agents(1, prefix=AGENT.partition("-")[0])[AGENT]
        order = json.loads(works.ORDER)
        signed = deployment.call("POST", f"/vault/{AGENT}/sign", order, Authorization=f"Bearer {token}")
        port, file = _free_port(), deployment.folder / "agent.token"
        file.write_text(token)
        given = {
            **os.environ,
            "PYTHONPATH": f"{PROJECT}:{PROJECT / 'sdk/python'}",
            "SERVICE_URL": f"http://127.0.0.1:{deployment.port}",
            "SERVICE_AGENT_TOKEN_FILE": str(file),
            "SERVICE_MCP_PORT": str(port),
        }
        stack.enter_context(_running([PYTHON, "-P", "-m", "mcp_server", "--http"], given, PROJECT))
        _wait_for(port)
        words = [given["SERVICE_URL"], token, AGENT, signed["txId"]]
        # A program of Node finds packages beside itself, or if it is none of a file where it is started.
        node = ["node", "--input-type=module", "--eval", (HERE / "read_by_sdk.mjs").read_text(), "--"]
        commands = (
            ([sys.executable, "-P", HERE / "read_by_sdk.py", *words], PROJECT),
            ([*node, *words], typescript),
            ([PYTHON, "-P", HERE / "read_by_tools.py", *words, f"http://127.0.0.1:{port}/mcp"], PROJECT),
        )
        sides = [stack.enter_context(_running(command, given, folder)) for command, folder in commands]
        for side in sides:
            assert side.stdout
            assert side.stdout.readline() == "ready\n"
        yield sides


@contextmanager
def _running(
    command: Sequence[str | Path], environment: dict[str, str], folder: Path
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _wait_for(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
