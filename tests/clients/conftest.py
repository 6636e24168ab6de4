"""Fixtures of a deployment before the APIs of every client, and the table at the end of a run."""

import base64
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ops import places
from tests.clients import installed
from tests.clients.apis import served
from tests.clients.apis.api import secret_of
from tests.clients.table import GATEWAY, Client, Run
from tests.fixtures.callers import Tenant, new_tenant
from tests.fixtures.deployments import database_apart
from tests.fixtures.proxied import Proxied, Proxy
from tests.outside import loopback
from tests.outside.processes import PROJECT, running
from tests.outside.store import SECRET
from tests.outside.upstream import Upstream

PROGRAMS = Path(__file__).parent / "programs"
LONGEST_SECONDS = 180
# The address with `-parts` behind the API's name belongs to a route that lets parts of an answer through.
KINDS = ("", "-parts")


class World:
    """A proxy before all the APIs, and an agent that holds the key of none."""

    def __init__(self, proxied: Proxied, proxy: Proxy, apis: Upstream, tenant: Tenant) -> None:
        self._proxied, self._proxy, self._apis, self._tenant = proxied, proxy, apis, tenant
        self._agent = tenant.agent()
        self.token = str(self._agent.headers["Authorization"]).split()[1]
        for name, route in served.ROUTES.items():
            secret = tenant.ok("POST", "/secrets", {"name": name, "value": served.value_of(name)})["id"]
            for kind in KINDS:
                fields = {"hostPattern": host_of(name, kind, apis), "ranges": kind == "-parts", **route}
                if route["injectAs"] != "none":
                    fields["secretId"] = secret
                tenant.ok("POST", "/secrets/routes", fields)

    def run(self, client: Client, run: Run, folder: Path) -> dict[str, Any]:
        """Run a client, and return what came of each step by its name."""
        self._apis.forget()
        self._proxied.faults()
        program = PROGRAMS / client.program
        command = [installed.PYTHON if program.suffix == ".py" else "node", program, *run.steps]
        given = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", **run.settings}
        if run.form == GATEWAY:
            bases = [f"{self._proxy.url}/{client.api}{kind}" for kind in KINDS]
            given |= {"KEY": self.token}
        else:
            bases = [f"https://{host_of(client.api, kind, self._apis)}" for kind in KINDS]
            here = ["--agent", self._agent.id, "--ca", self._proxied.proxy_ca, "--"]
            command = [sys.executable, "-P", "-m", "ops", "run", *here, *command]
            given |= {"KEY": run.settings.get("KEY", "placeholder"), "PYTHONPATH": str(PROJECT)}
            given |= {"SERVICE_KEY": self._tenant.key, "SERVICE_URL": self._proxied.url}
            given |= {"SERVICE_PROXY_URL": self._proxy.url, "SERVICE_HOME": str(folder / "none")}
        given |= {"BASE": bases[0], "PARTS": bases[1]}
        done = subprocess.run(
            [str(part) for part in command],
            env=given,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
            check=False,
        )
        assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr[-4000:])
        assert not any(secret in done.stdout + done.stderr for secret in (secret_of(client.api), SECRET))
        lines = [msgspec.json.decode(line) for line in done.stdout.splitlines() if line.startswith('{"step": ')]
        return {line["step"]: line["got"] for line in lines}

    def knock(self, api: str, **headers: str) -> int:
        """Ask an API itself, past the proxy."""
        self._apis.forget()
        with loopback.client(self._apis.ca_file) as client:
            return client.get(f"https://localhost:{self._apis.ports[api]}/call", headers=headers).status_code

    def strays(self) -> list[dict[str, Any]]:
        """Requests that reached an API without its credential, or by a path that it does not have."""
        return self._apis.lines("stray")

    def faults(self) -> list[str]:
        """Return what the proxy logged as a fault of its own."""
        return self._proxied.faults()

    def leaks(self) -> bool:
        """Say whether the agent's token reached any API, as it is or in base64."""
        raw, token = self._apis.raw(), self.token.encode()
        # Of base64 at any place of a longer text, the characters that depend on nothing before or behind.
        forms = [base64.b64encode(b"-" * before + token)[4 * (before > 0) : -4] for before in range(3)]
        return any(form in raw for form in (token, *forms))


def host_of(api: str, kind: str, apis: Upstream) -> str:
    """The name and port of an API."""
    return f"{api}{kind}.upstream.test:{apis.ports[api]}"


@contextmanager
def running_apis() -> Iterator[Upstream]:
    """Start the APIs in a process of their own."""
    with tempfile.TemporaryDirectory(prefix="cu-") as name:
        folder = Path(name)
        with running([sys.executable, "-m", "tests.clients.apis", folder]):
            ports = msgspec.json.decode((folder / "ports").read_bytes())
            with running([installed.PYTHON, PROGRAMS / "grpc_api.py", folder / "good.pem", secret_of("grpc")]) as grpc:
                apis = Upstream(folder, ports | {"grpc": int(grpc.rpartition(":")[2])})
                try:
                    yield apis
                finally:
                    apis.close()


@pytest.fixture(scope="session")
def world(postgres_home: places.Home, worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The deployment that all clients share."""
    installed.install_python()
    installed.install_node()
    with running_apis() as apis:
        hosts = {f"{name}{kind}": host_of(name, kind, apis) for name in served.ROUTES for kind in KINDS}
        names = tmp_path_factory.mktemp("names") / "names.json"
        names.write_bytes(msgspec.json.encode({host.partition(":")[0]: [["127.0.0.1"]] for host in hosts.values()}))
        settings = {
            "SERVICE_PROXY_EXTRA_CA_FILE": str(apis.ca_file),
            "SERVICE_PROXY_ALLOW_PRIVATE_HOSTS": "*.upstream.test",
            "SERVICE_PROXY_ALIASES": ",".join(f"{name}={host}" for name, host in hosts.items()),
        }
        proxied = Proxied(database_apart(postgres_home, f"{worker_id}_clients"), apis, really=True, **settings)
        try:
            proxied.start("signer", "identity", "api", "proxy")
            with (
                proxied.another_proxy("tests.outside.rebinding_proxy", str(names)) as proxy,
                new_tenant(proxied) as tenant,
            ):
                yield World(proxied, proxy, apis, tenant)
        finally:
            proxied.stop()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table of what was tried."""
    rows = [
        dict(report.user_properties)
        for kind in ("passed", "failed")
        for report in terminalreporter.stats.get(kind, [])
        if report.when == "call" and dict(report.user_properties).get("client")
    ]
    if rows and os.environ.get("TEST_CLIENTS"):
        terminalreporter.section("clients")
        for row in rows:
            for step, result in row["results"].items():
                where = f"{row['client']} {row['version']}"
                terminalreporter.write_line(f"{where:36} {row['form']:14} {row['place']:38} {step:9} {result}")
