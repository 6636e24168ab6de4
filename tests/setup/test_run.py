"""`custody run`: an unchanged program calls an API whose key it never holds."""

import asyncio
import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ops import places
from ops.demo import upstream
from tests.fixtures.callers import Tenant, new_tenant
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.long

COMMAND = [sys.executable, "-P", "-m", "ops", "run"]
SHOWS = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
# It knows nothing of us: proxy and certificates come from its environment. Only loopback would be called directly.
CALLS = """
import os, sys, urllib.request
for name in ("NO_PROXY", "no_proxy"):
    del os.environ[name]
print(urllib.request.urlopen(sys.argv[1], timeout=90).read().decode())
"""
# It was told of the proxy, and calls it by name.
CALLS_THE_PROXY = """
import os, sys, urllib.request
url = f"{os.environ['SERVICE_PROXY_URL']}/proxy/{sys.argv[1]}/v1/hello"
asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {os.environ['SERVICE_AGENT_TOKEN']}"})
print(urllib.request.urlopen(asked, timeout=90).read().decode())
"""
VALUE = "sk-precious-0123456789"


class World(msgspec.Struct, frozen=True):
    """A deployment whose proxy may call one API of this machine, a tenant with its key in a file, and an agent."""

    service: Service
    tenant: Tenant
    agent: str
    upstream: upstream.Upstream
    folder: Path

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The command as somebody on another machine types it, who has the tenant's key and the certificate."""
        given = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PROJECT),
            "SERVICE_URL": self.service.url,
            "SERVICE_PROXY_URL": self.service.proxy_url,
            "SERVICE_KEY_FILE": str(self.folder / "tenant.key"),
            "SERVICE_PROXY_CA_FILE": str(self.service.home / "proxy-ca.pem"),
            "SERVICE_HOME": str(self.folder / "none"),
            "TMPDIR": str(self.folder / "tmp"),
        }
        given = {name: value for name, value in {**given, **environment}.items() if value}
        return subprocess.run([*COMMAND, *words], cwd="/", env=given, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def world(postgres_home: places.Home, worker_id: str) -> Iterator[World]:
    """Everything that the command meets."""
    folder = Path(tempfile.mkdtemp(prefix="cr-"))
    (folder / "tmp").mkdir()
    database = database_apart(postgres_home, f"run_{worker_id}")
    with _upstream() as called, _deploy(database, called, folder) as service, new_tenant(service) as tenant:
        places.write_private(folder / "tenant.key", tenant.key + "\n")
        tenant.agent(agent_id="buyer")
        secret = tenant.ok("POST", "/secrets", {"name": "key", "value": VALUE})
        route = {"hostPattern": called.host, "injectAs": "header", "injectKey": "Authorization"}
        tenant.ok("POST", "/secrets/routes", {"secretId": secret["id"], "injectFormat": "Bearer {value}", **route})
        yield World(service, tenant, "buyer", called, folder)
    shutil.rmtree(folder)


@contextmanager
def _upstream() -> Iterator[upstream.Upstream]:
    """The API, on a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    opened = upstream.running()
    yield asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(90)
    asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result(90)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@contextmanager
def _deploy(database: Database, called: upstream.Upstream, folder: Path) -> Iterator[Service]:
    (folder / "upstream.pem").write_text(called.certificate)
    allowed = {
        "SERVICE_PROXY_EXTRA_CA_FILE": str(folder / "upstream.pem"),
        "SERVICE_PROXY_ALLOW_PRIVATE_HOSTS": "localhost",
    }
    with deploy(database, "signer", "identity", "api", "proxy", **allowed) as service:
        yield service


def test_an_unchanged_program_calls_the_api_and_never_holds_its_key(world: World) -> None:
    url = f"https://{world.upstream.host}/v1/hello"

    ended = world.run("--agent", world.agent, "--", sys.executable, "-c", CALLS, url)

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"hello": "agent", "authorization": f"Bearer {'*' * len(VALUE)}"}
    assert world.upstream.shown[-1] == f"Bearer {VALUE}"


def test_a_program_can_call_by_the_proxys_own_address_too(world: World) -> None:
    ended = world.run("--agent", world.agent, "--", sys.executable, "-c", CALLS_THE_PROXY, world.upstream.host)

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["hello"] == "agent"


def test_the_token_is_the_agents_and_a_day_long(world: World) -> None:
    found = json.loads(world.run("--agent", world.agent, "--", *SHOWS).stdout)

    claims = _claims(found["SERVICE_AGENT_TOKEN"])

    assert (claims["sub"], claims["exp"] - claims["iat"]) == (world.agent, 86_400)


def test_its_life_can_be_shorter(world: World) -> None:
    found = json.loads(world.run("--agent", world.agent, "--expires-in", "5m", "--", *SHOWS).stdout)

    claims = _claims(found["SERVICE_AGENT_TOKEN"])

    assert claims["exp"] - claims["iat"] == 300


def test_the_programs_environment_has_the_proxy_and_no_key_of_custody(world: World) -> None:
    found = json.loads(world.run("--agent", world.agent, "--", *SHOWS, SERVICE_KEY="", SERVICE_SMTP_URL="x").stdout)

    assert found["HTTPS_PROXY"] == f"http://agent:{found['SERVICE_AGENT_TOKEN']}@{found['SERVICE_PROXY_URL'][7:]}"
    assert world.tenant.key not in found.values()
    assert {"SERVICE_KEY", "SERVICE_KEY_FILE", "SERVICE_SMTP_URL"} & set(found) == set()


def test_the_certificates_are_there_while_it_runs_and_gone_after(world: World) -> None:
    script = 'cat "$SSL_CERT_FILE"; stat -c %a "$(dirname "$SSL_CERT_FILE")"'

    ended = world.run("--agent", world.agent, "--", "sh", "-c", script)

    certificate = (world.service.home / "proxy-ca.pem").read_text()
    assert ended.stdout.endswith(f"{certificate}700\n")
    assert list((world.folder / "tmp").iterdir()) == []


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -TERM $$", 143)])
def test_the_status_is_the_programs(world: World, script: str, status: int) -> None:
    assert world.run("--agent", world.agent, "--", "sh", "-c", script).returncode == status


def test_words_of_the_program_are_not_read_as_ours(world: World) -> None:
    ended = world.run("--agent", world.agent, "--", "echo", "--agent", "other", "--", "--help")

    assert ended.stdout == "--agent other -- --help\n"


def test_a_node_that_would_go_past_the_proxy_is_said_to(world: World) -> None:
    node = world.folder / "node"
    node.write_text('#!/bin/sh\n[ "$1" = --version ] && echo v20.20.2 || echo "ran $1"\n')
    node.chmod(0o755)

    ended = world.run("--agent", world.agent, "--", "node", "x.js", PATH=f"{world.folder}:{os.environ['PATH']}")

    assert (ended.returncode, ended.stdout) == (0, "ran x.js\n")
    assert f"custody run: {node} is Node 20.20, which ignores proxy variables" in ended.stderr


def test_a_program_that_is_not_there_is_127(world: World) -> None:
    ended = world.run("--agent", world.agent, "--", "no-such-program")

    assert ended.returncode == 127
    assert ended.stderr == "custody run: cannot start no-such-program: No such file or directory\n"


@pytest.mark.parametrize("words", [("--agent", "buyer", "env"), ("--agent", "buyer", "--"), ()])
def test_without_a_program_it_says_how_it_is_written(world: World, words: tuple[str, ...]) -> None:
    ended = world.run(*words)

    assert ended.returncode == 2
    assert "-- PROGRAM" in ended.stderr


def free_url() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"SERVICE_KEY_FILE": ""}, "SERVICE_KEY_FILE: name a file (mode 0600) with your tenant's API key"),
        ({"SERVICE_KEY_FILE": "/nowhere"}, "SERVICE_KEY_FILE: cannot read /nowhere"),
        ({"SERVICE_KEY_FILE": "", "SERVICE_KEY": "ck_unknown"}, "rejects this tenant key"),
        ({"SERVICE_KEY_FILE": "", "SERVICE_KEY": "kéy"}, "SERVICE_KEY: not an API key"),
        ({"SERVICE_URL": "nowhere"}, "the API does not answer at http://127.0.0.1:"),
        ({"SERVICE_PROXY_URL": "nowhere"}, "the proxy does not answer at http://127.0.0.1:"),
        ({"SERVICE_PROXY_URL": "https://proxy:1"}, "SERVICE_PROXY_URL: must look like http://"),
        ({"SERVICE_PROXY_CA_FILE": "/nowhere.pem"}, "SERVICE_PROXY_CA_FILE: cannot read /nowhere.pem"),
    ],
)
def test_missing_settings_are_reported_before_anything_starts(
    world: World, environment: dict[str, str], said: str
) -> None:
    given = {name: free_url() if value == "nowhere" else value for name, value in environment.items()}

    ended = world.run("--agent", world.agent, "--", "echo", "started", **given)

    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""
    assert ended.returncode in {1, 2}


def test_an_unknown_agent_is_named(world: World) -> None:
    ended = world.run("--agent", "nobody", "--", "echo", "started")

    assert ended.stderr == "custody: your tenant has no agent 'nobody'; create it with POST /agents\n"
    assert ended.stdout == ""


def test_a_key_file_that_others_can_read_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "open.key").write_text(world.tenant.key)
    (tmp_path / "open.key").chmod(0o644)

    ended = world.run("--agent", world.agent, "--", "echo", "started", SERVICE_KEY_FILE=str(tmp_path / "open.key"))

    assert f"chmod 0600 {tmp_path / 'open.key'}" in ended.stderr
    assert ended.stdout == ""


def test_an_answer_that_is_not_ours_is_never_shown(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        thread = threading.Thread(target=_answer, args=(stranger, b'{"data": {"secret": "precious"}}'))
        thread.start()
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        ended = world.run("--agent", world.agent, "--", "echo", "started", SERVICE_URL=url)
        thread.join()

    assert ended.stderr == "custody: no token for 'buyer': status 200, not a response of Custody\n"
    assert ended.stdout == ""


def test_neither_token_nor_key_is_in_a_command_line_or_in_what_we_say(world: World) -> None:
    script = 'echo "$SERVICE_AGENT_TOKEN"; tr "\\0" " " < /proc/$PPID/cmdline; tr "\\0" " " < /proc/$$/cmdline'

    ended = world.run("--agent", world.agent, "--", "sh", "-c", script)

    token, _, command_lines = ended.stdout.partition("\n")
    assert "ops run --agent buyer" in command_lines
    assert token.count(".") == 2
    assert token not in command_lines
    assert world.tenant.key not in command_lines
    assert ended.stderr == ""


def _claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def _answer(stranger: socket.socket, body: bytes) -> None:
    connection, _ = stranger.accept()
    with connection:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
