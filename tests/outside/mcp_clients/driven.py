"""Clients of the Model Context Protocol that somebody else wrote, each as a process that a test drives."""

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.outside import npm
from tests.outside.processes import PROJECT, die_with

HERE = Path(__file__).parent
PYTHON = PROJECT / ".venv-mcp" / "bin" / "python"


class McpError(Exception):
    """An answer of the protocol instead of a result."""


class Driven:
    """One client."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.protocol: str = self._read()["ready"]

    def tools(self) -> list[dict[str, Any]]:
        """The tools."""
        listed: list[dict[str, Any]] = self._ask("list")
        return listed

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; the whole result, an error too."""
        called: dict[str, Any] = self._ask("call", tool, arguments)
        return called

    def ok(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, insist on success, give what it found."""
        result = self.call(tool, **arguments)
        assert not result.get("isError"), result["content"]
        found: dict[str, Any] = result["structuredContent"]
        return found

    def refusal(self, tool: str, **arguments: Any) -> str:
        """Call a tool that answers with an error: its words."""
        result = self.call(tool, **arguments)
        assert result.get("isError") is True, result
        [content] = result["content"]
        words: str = content["text"]
        return words

    def many(self, times: int, tool: str, **arguments: Any) -> list[dict[str, Any]]:
        """Call a tool so often at once; every result."""
        called: list[dict[str, Any]] = self._ask("many", times, tool, arguments)
        return called

    def give_up(self, tool: str, **arguments: Any) -> None:
        """Call a tool that takes long, and end the call after a second."""
        self._ask("give_up", tool, arguments)

    def request(self, method: str, task_id: str) -> dict[str, Any]:
        """Ask for something of a task."""
        asked: dict[str, Any] = self._ask("request", method, task_id)
        return asked

    def _ask(self, *what: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        said = self._read()
        if "error" in said:
            raise McpError(said["error"])
        return said["result"]

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the client ended with {self._process.wait(60)}"
        said: dict[str, Any] = json.loads(line)
        return said


@contextmanager
def running_python_client(how: str, era: str, environment: Mapping[str, str], *more: str) -> Iterator[Driven]:
    """Run their client in Python, by `stdio` or the address of a server."""
    set_up()
    with _running([PYTHON, "-P", HERE / "python_client.py", how, era, *more], environment) as client:
        yield client


@contextmanager
def running_node_client(program: str, how: str, environment: Mapping[str, str]) -> Iterator[Driven]:
    """Run their client in TypeScript: of 2025 (`sdk.mjs`) or of 2026 (`client.mjs`)."""
    set_up()
    npm.install(HERE)
    with _running(["node", HERE / program, how], environment | {"MCP_PYTHON": str(PYTHON)}) as client:
        yield client


def set_up() -> None:
    """Install what the server is made of, unless that has been done; parallel workers wait for each other."""
    with (PROJECT / "locks" / "mcp.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        environment = {**os.environ, "PROJECT_VENV": ".venv-mcp", "PROJECT_LOCK": "locks/mcp.lock"}
        subprocess.run(
            ["scripts/set-up", "--quiet"], cwd=PROJECT, env=environment, check=True, capture_output=True, timeout=300
        )


@contextmanager
def _running(command: list[Any], environment: Mapping[str, str]) -> Iterator[Driven]:
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Driven(process)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.terminate()
        process.wait(60)
