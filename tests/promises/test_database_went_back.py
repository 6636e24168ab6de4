"""A database that went back behind the signer: who saw it signs nothing there until an operator says so. P7, P9."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.audit.sealed import command
from tests.fixtures.callers import Agent, new_tenant
from tests.fixtures.deployments import KillablePostgres, deploy, killable_postgres
from tests.fixtures.eventually import eventually
from tests.fixtures.server import Service

pytestmark = pytest.mark.long
SIGNED_SINCE = 5


def _ready(service: Service) -> httpx.Response:
    return httpx.get(f"{service.url}/ready", trust_env=False, timeout=30)


def _refusal(answer: httpx.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json()["data"].get("code")


def _copy(from_: Path, to: Path) -> None:
    # With its owner: root's Postgres is another user's.
    subprocess.run(["cp", "-a", str(from_), str(to)], check=True)


@contextmanager
def _put_back(postgres: KillablePostgres, agents: list[Agent], folder: Path) -> Iterator[None]:
    """A copy of the database is put back after more was signed; with none of it where nothing was."""
    postgres.stop_immediately()
    _copy(postgres.folder, folder / "copy")
    postgres.start_again()
    for agent in agents:
        eventually(lambda agent=agent: agent.sign().status_code, 200)
        for _ in range(SIGNED_SINCE):
            assert agent.sign().status_code == 200
    postgres.stop_immediately()
    shutil.rmtree(postgres.folder)
    _copy(folder / "copy", postgres.folder)
    postgres.start_again()
    yield


@pytest.mark.parametrize("restarted", [False, True])
def test_nothing_is_signed_until_the_operator_accepts(tmp_path: Path, *, restarted: bool) -> None:
    with killable_postgres() as postgres, deploy(postgres.database) as service, new_tenant(service) as tenant:
        first, idle = tenant.agent(), tenant.agent()
        assert first.sign().status_code == idle.sign().status_code == 200
        with _put_back(postgres, [first], tmp_path):
            if restarted:
                service.kill("signer")
                service.launch("signer")
            eventually(lambda: _refusal(first.sign()), (503, "database_rolled_back"))
            # Not only of whom something is missing.
            assert _refusal(idle.sign()) == (503, "database_rolled_back")
            assert _refusal(tenant.post("/agents", json={"id": "new", "name": "New"})) == (503, "database_rolled_back")
            ready = _ready(service)
            assert (ready.status_code, ready.json()["data"]["checks"]["history"]) == (503, {"ok": False})

            status, told = command("restore", "--accept", home=service.home)

            assert (status, "orders that this signer acknowledged are gone" in told) == (0, True), told
            assert first.sign().status_code == idle.sign().status_code == 200
            eventually(lambda: _ready(service).status_code, 200)


def test_a_database_that_only_fell_and_rose_is_signed_on(tmp_path: Path) -> None:
    with killable_postgres() as postgres, deploy(postgres.database) as service, new_tenant(service) as tenant:
        agent, gone = tenant.agent(), tenant.agent()
        assert agent.sign().status_code == gone.sign().status_code == 200
        # Its orders go with it, as they should.
        assert tenant.delete(f"/agents/{gone.id}").status_code == 200
        with _put_back(postgres, [], tmp_path):
            eventually(lambda: agent.sign().status_code, 200)
