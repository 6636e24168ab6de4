"""Fixtures of an agent's client: one against the running service, and a service that answers whatever a test wants."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from custody_sdk import Vault

from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.server import Service
from tests.outside.processes import PROJECT
from tests.sdk.installed import python_of

SDK = PROJECT / "sdk/python"
PROGRAMS = Path(__file__).parent / "programs"
PROGRAM_SECONDS = 240


def token_of(agent: Agent) -> str:
    """The agent's token."""
    return str(agent.headers["Authorization"]).removeprefix("Bearer ")


def vault_of(agent: Agent, **given: Any) -> Vault:
    """A client with the agent's token."""
    return Vault(str(agent.base_url), token_of(agent), **given)


@pytest.fixture
def vault(agent: Agent) -> Iterator[Vault]:
    """The client of an agent without rules."""
    with vault_of(agent) as client:
        yield client


@dataclass
class Program:
    """Programs of others, run in an environment that has one set of libraries and the client."""

    python: Path
    environment: dict[str, str]

    def run(self, program: Path, *words: str, **given: str) -> "subprocess.CompletedProcess[str]":
        """Run one, with warnings of its own libraries let pass."""
        return subprocess.run(
            [str(self.python), str(program), *words],
            env={**self.environment, **given},
            capture_output=True,
            text=True,
            timeout=PROGRAM_SECONDS,
            check=False,
        )

    def last_line(self, name: str, *words: str, **given: str) -> Any:
        """Run one of programs/, and return what its last line says in JSON."""
        ended = self.run(PROGRAMS / f"{name}.py", *words, **given)
        assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]
        assert self.environment["SERVICE_AGENT_TOKEN"] not in ended.stdout + ended.stderr
        return json.loads(ended.stdout.splitlines()[-1])


@pytest.fixture
def programs(service: Service) -> Callable[[str, Agent], Program]:
    """Makes the runner of a set of libraries for an agent."""

    def runner(libraries: str, agent: Agent) -> Program:
        given = {"SERVICE_URL": service.url, "SERVICE_AGENT_TOKEN": token_of(agent)}
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(SDK), "LANG": "C.UTF-8", **given}
        return Program(python_of(libraries), environment)

    return runner


@dataclass
class OddService:
    """A service that answers what a test says, to every request, and keeps what it was sent."""

    url: str
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    # Not shown, for it has the token.
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list, repr=False)

    def say(self, status: int, data: Any, *, error: str | None = None, **headers: str) -> None:
        """Answer so next; the last one is repeated."""
        body = {"ok": error is None, "data": data} | ({} if error is None else {"error": error})
        self.answers.append((status, headers, json.dumps(body).encode()))

    def say_bytes(self, status: int, body: bytes, **headers: str) -> None:
        """Answer with these bytes."""
        self.answers.append((status, headers, body))

    def hang_up(self) -> None:
        """Take the request, and close the connection without an answer."""
        self.answers.append((0, {}, b""))


@pytest.fixture
def odd() -> Iterator[OddService]:
    """One in this process."""

    class Connection(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            found.asked.append((self.command, self.path, dict(self.headers), body))
            status, headers, said = found.answers.pop(0) if len(found.answers) > 1 else found.answers[0]
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in ({"Content-Type": "application/json"} | headers).items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            # A client that had enough has hung up.
            with suppress(ConnectionError):
                self.wfile.write(said)

        do_GET = do_POST = answer

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Connection) as server:
        server.daemon_threads = True
        found = OddService(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


def approve(tenant: Tenant, approval_id: str) -> None:
    """A person says yes."""
    tenant.ok("POST", f"/approvals/{approval_id}/approve")
