"""Fixtures of the client for TypeScript: one that a test drives, and programs with the libraries that it adapts to."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.callers import Agent
from tests.fixtures.server import Service
from tests.outside import npm
from tests.outside.processes import die_with
from tests.sdk.conftest import token_of
from tests.sdk.typescript.built import HERE, folder_of

PROGRAMS = HERE / "programs"
PROGRAM_SECONDS = 240
NODE = shutil.which("node") or "node"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave these out where Node is not, and out of `make check`: they build the client."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.long)
            if absent := npm.missing():
                item.add_marker(pytest.mark.skip(reason=absent))


class Thrown(Exception):
    """An error of the client: its class, and what it says."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error.get('name')} {error.get('message')}")
        self.name: str = error["name"]
        self.code: Any = error.get("code")
        self.status: Any = error.get("status")
        self.message: str = error["message"]
        self.data: dict[str, Any] = error.get("data") or {}
        self.said = error


class Client:
    """The client in a process of Node, driven by lines."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def call(self, what: str, *given: Any) -> Any:
        """Call a method of the vault (`vault.pay`) or a function; raises what it threw."""
        return self._read(self._say(what, given))

    def many(self, *calls: tuple[Any, ...]) -> list[Any]:
        """Call several at once; each answer, or what was thrown."""
        told = self.call("all", *([what, given] for what, *given in calls))
        return [one.get("value", one.get("error")) for one in told]

    def make(self, url: str, token: str, **given: Any) -> "Client":
        """Make the vault that the next calls are of."""
        self.call("new", {"url": url, "token": token, **given})
        return self

    def _say(self, what: str, given: Any) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([what, given], default=_spell) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def _read(self, line: str) -> Any:
        assert line, f"the client ended with {self._process.wait(60)}"
        said = json.loads(line)
        if "error" in said:
            raise Thrown(said["error"])
        return said["value"]


def bigint(number: int) -> dict[str, str]:
    """An integer of JavaScript without loss."""
    return {"$": "bigint", "value": str(number)}


def _spell(value: object) -> Any:
    assert isinstance(value, bytes)
    return {"$": "bytes", "value": value.hex()}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """One, which has no vault so far."""
    with (
        (tmp_path / "errors").open("w") as errors,
        subprocess.Popen(
            [NODE, "--input-type=module", "--eval", (PROGRAMS / "driven.mjs").read_text()],
            cwd=folder_of("newest"),
            env={"PATH": os.environ["PATH"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
        ) as process,
    ):
        try:
            yield Client(process)
        finally:
            process.terminate()


@dataclass
class Programs:
    """Programs that import the client and one set of libraries."""

    folder: Path
    environment: dict[str, str] = field(repr=False)

    def run(self, program: str, *words: str, **given: str) -> "subprocess.CompletedProcess[str]":
        """Run one."""
        return subprocess.run(
            [NODE, "--input-type=module", "-", *words],
            cwd=self.folder,
            env={**self.environment, **given},
            input=program,
            capture_output=True,
            text=True,
            timeout=PROGRAM_SECONDS,
            check=False,
        )

    def result_of(self, name: str, *words: str, **given: str) -> Any:
        """Run one of programs/, and return what its last line says in JSON."""
        ended = self.run((PROGRAMS / f"{name}.mjs").read_text(), *words, **given)
        assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]
        assert self.environment["SERVICE_AGENT_TOKEN"] not in ended.stdout + ended.stderr
        return json.loads(ended.stdout.splitlines()[-1])


@pytest.fixture
def scripts(service: Service) -> Callable[[str, Agent], Programs]:
    """Makes the runner of a set of libraries for an agent."""

    def make(libraries: str, agent: Agent) -> Programs:
        environment = {"PATH": os.environ["PATH"], "SERVICE_URL": service.url, "SERVICE_AGENT_TOKEN": token_of(agent)}
        return Programs(folder_of(libraries), environment)

    return make
