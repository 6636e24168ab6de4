"""A deployment to measure: a durable Postgres and our processes as they run for real, in a state folder of their own."""

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import httpx

from bench import cpu
from bench.installed import Tree, here
from custody.kit.quotas import People, Quotas
from ops import places
from ops.postgres import EmbeddedPostgres

RATE_LIMIT = 100_000_000
POLICIES = [
    {
        "type": "spending-limit",
        "enabled": True,
        "config": {"maxPerTransaction": "10", "maxPerDay": str(10**15), "maxPerWeek": str(10**16)},
    },
    {"type": "approved-addresses", "enabled": True, "config": {"addresses": [f"0x{n:040x}" for n in range(1, 12)]}},
    {"type": "allowed-chains", "enabled": True, "config": {"chains": [1, 10, 8453, 31337]}},
    {"type": "auto-approve-threshold", "enabled": True, "config": {"threshold": "100"}},
]


class Deployment:
    """Started and stopped with `with`: signer, identity and api, and whatever else is started then.

    Processes and database are those of `tree`; the server is always this tree's Postgres.
    """

    def __init__(self, tree: Tree | None = None, **environment: str) -> None:
        self.tree = tree or here()
        self.folder = Path(tempfile.mkdtemp(prefix="cb-"))
        self.folder.chmod(0o755)
        self.home = places.open_home(self.folder / "home")
        # For two of each process, as `Tree.migrate` says.
        room = {"max_connections": "200"}
        self.postgres = EmbeddedPostgres(
            self.home.file("postgres"), self.home.file("log", "postgres.log"), settings=room
        )
        self.port, self.metrics, self.proxy_port, self.proxy_metrics = (_free_port() for _ in range(4))
        self.environment = environment
        # How long the log of a process was when it was started.
        self._logged: dict[str, int] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.owner_url = self.tenant_key = ""
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60)

    def __enter__(self) -> Self:
        try:
            self.home.file("run").mkdir(exist_ok=True)
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        for process in reversed(self.processes.values()):
            process.terminate()
            process.wait(20)
        self._end()
        shutil.rmtree(self.folder)

    def _begin(self) -> None:
        self.owner_url = asyncio.run(self._database())
        self.start(*self.tree.started)
        platform = (self.home.path / "platform.key").read_text().strip()
        made = self.call(
            "POST", "/platform/tenants", {"id": "bench", "name": "Bench"}, **{"X-Service-Platform-Key": platform}
        )
        self.tenant_key = made["apiKey"]

    def _end(self) -> None:
        asyncio.run(self.postgres.stop())

    async def _database(self) -> str:
        url = await self.postgres.start()
        await asyncio.to_thread(self.tree.migrate, url, self.home.path)
        return url

    def start(self, *names: str) -> float:
        """Start processes; gives the seconds until /ready says yes. `proxy-1` is the proxy's second worker."""
        began = time.perf_counter()
        for name in names:
            process, _, worker = name.partition("-")
            with self.home.file("log", f"{name}.log").open("ab") as log:
                self._logged[name] = log.tell()
                self.processes[name] = subprocess.Popen(
                    [self.tree.python, "-P", "-m", self.tree.modules[process]],
                    env=self._environment_of(process, worker),
                    cwd="/",
                    stdout=log,
                    stderr=log,
                )
        while not self._ready(names):
            dead = [name for name, process in self.processes.items() if process.poll() is not None]
            if dead:
                raise RuntimeError(self.home.file("log", f"{dead[0]}.log").read_text()[-2000:])
            time.sleep(0.01)
        return time.perf_counter() - began

    def stop(self, name: str) -> None:
        """Stop a process in order."""
        process = self.processes.pop(name)
        process.terminate()
        process.wait(20)

    def _environment_of(self, process: str, worker: str) -> dict[str, str]:
        found = {
            **os.environ,
            "PYTHONPATH": str(self.tree.path),
            "SERVICE_HOME": str(self.home.path),
            "SERVICE_API_PORT": str(self.port),
            "SERVICE_METRICS_PORT_API": str(self.metrics),
            "SERVICE_RATE_LIMIT_MAX": str(RATE_LIMIT),
            "SERVICE_RATE_LIMIT_NODE_CALLS": "0",
            "SERVICE_DEFAULT_CHAIN_ID": "31337",
            "SERVICE_SIGN_SOCKET": str(self.home.file("run", "sign.sock")),
            "SERVICE_PROXY_PORT": str(self.proxy_port),
            "SERVICE_METRICS_PORT_PROXY": str(self.proxy_metrics),
            # It does in an hour what a tenant may do in a day.
            **{f"SERVICE_QUOTA_{name.upper()}": "0" for kind in (Quotas, People) for name in kind.__struct_fields__},
            **self.environment,
        }
        if process == "proxy":
            # As `custody up` starts it.
            found |= {"PYTHONOPTIMIZE": "1", "SERVICE_PROXY_WORKER": worker or "0"}
        return found

    def _ready(self, names: tuple[str, ...]) -> bool:
        # Workers of the proxy share a port, so only the log tells which of them listens.
        for name in names:
            said = self.home.file("log", f"{name}.log").read_bytes()[self._logged[name] :]
            if name.startswith("proxy") and b"forwarding" not in said:
                return False
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/ready", timeout=5).is_success
        except httpx.HTTPError:
            return False

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """One call that must succeed; gives the data."""
        answer = self.http.request(method, path, json=body, headers=headers)
        if not answer.is_success:
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json()["data"]

    def agents(self, count: int, prefix: str = "agent") -> dict[str, str]:
        """Agents with the four policies, and a token each."""
        key = {"X-Service-Key": self.tenant_key}
        self.make_agents(count, prefix)
        return {
            f"{prefix}-{n}": self.call("POST", f"/agents/{prefix}-{n}/token", {"expiresIn": "24h"}, **key)["token"]
            for n in range(count)
        }

    def make_agents(self, count: int, prefix: str) -> None:
        """The same without tokens, for who needs none."""
        key = {"X-Service-Key": self.tenant_key}
        for start in range(0, count, 100):
            wanted = [{"id": f"{prefix}-{n}", "name": "Bench"} for n in range(start, min(start + 100, count))]
            self.call("POST", "/agents/batch", {"agents": wanted, "applyPolicies": POLICIES}, **key)

    @property
    def signer_url(self) -> str:
        """The database's address as the signer has it."""
        return self.home.file("db", "signer.url").read_text().strip()

    def cpu(self) -> dict[str, float]:
        """Microseconds that each process has used of the processor so far, Postgres with all its own."""
        assert self.postgres.process
        found = {name: cpu.usage(process.pid) for name, process in self.processes.items()}
        return found | {"postgres": cpu.used_by_family(self.postgres.process.pid)}

    def memory(self) -> dict[str, int]:
        """Resident memory of each process in MiB."""
        found = {}
        for name, process in self.processes.items():
            status = Path(f"/proc/{process.pid}/status").read_text()
            found[name] = int(status.split("VmRSS:")[1].split()[0]) // 1024
        return found


class Partner(Deployment):
    """A second set of processes on a deployment's database and with its keys, as on another machine."""

    def __init__(self, first: Deployment, **environment: str) -> None:
        urls = {file.stem: file.read_text().strip() for file in first.home.file("db").glob("*.url")}
        given = {f"SERVICE_DATABASE_URL_{process.upper()}": url for process, url in urls.items()} | {
            "SERVICE_MASTER_KEY_FILE": str(first.home.file("master.key")),
            "SERVICE_PLATFORM_KEY_FILE": str(first.home.file("platform.key")),
            # The issuer of every token; what the first has when nobody says another.
            "SERVICE_PUBLIC_URL": f"http://localhost:{first.port}",
        }
        super().__init__(first.tree, **first.environment | given | environment)
        self.postgres, self.owner_url, self.tenant_key = first.postgres, first.owner_url, first.tenant_key

    def _begin(self) -> None:
        self.start(*self.tree.started)

    def _end(self) -> None:
        """The database is the first one's."""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
