"""A deployment to measure: a durable Postgres, signer and api as they run for real, in a state folder of their own."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from custody.cli import places
from custody.cli.migrate import migrate
from custody.cli.postgres import EmbeddedPostgres

PROJECT = Path(__file__).parents[1]
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
    """Started and stopped with `with`."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cb-"))
        self.folder.chmod(0o755)
        self.home = places.open_home(self.folder / "home")
        self.postgres = EmbeddedPostgres(self.home.file("postgres"), self.home.file("log", "postgres.log"))
        self.port, self.metrics = _free_port(), _free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.owner_url = ""

    def __enter__(self) -> "Deployment":
        self.owner_url = asyncio.run(self._database())
        self.home.file("run").mkdir(exist_ok=True)
        self.start("signer", "api")
        platform = (self.home.path / "platform.key").read_text().strip()
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60)
        made = self.call(
            "POST", "/platform/tenants", {"id": "bench", "name": "Bench"}, **{"X-Service-Platform-Key": platform}
        )
        self.tenant_key = made["apiKey"]
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        for process in reversed(self.processes.values()):
            process.terminate()
            process.wait(20)
        asyncio.run(self.postgres.stop())
        shutil.rmtree(self.folder)

    async def _database(self) -> str:
        url = await self.postgres.start()
        await migrate(url, self.home)
        return url

    def start(self, *names: str) -> float:
        """Start processes; gives the seconds until /ready says yes."""
        began = time.perf_counter()
        environment = {
            **os.environ, "PYTHONPATH": str(PROJECT), "SERVICE_HOME": str(self.home.path), "SERVICE_API_PORT": str(self.port),
            "SERVICE_METRICS_PORT_API": str(self.metrics), "SERVICE_RATE_LIMIT_MAX": str(RATE_LIMIT),
            "SERVICE_DEFAULT_CHAIN_ID": "31337", "SERVICE_SIGN_SOCKET": str(self.home.file("run", "sign.sock")),
        }  # fmt: skip
        for name in names:
            with self.home.file("log", f"{name}.log").open("ab") as log:
                self.processes[name] = subprocess.Popen(
                    [sys.executable, "-P", "-m", name], env=environment, cwd="/", stdout=log, stderr=log
                )
        while True:
            try:
                if httpx.get(f"http://127.0.0.1:{self.port}/ready", timeout=5).is_success:
                    return time.perf_counter() - began
            except httpx.HTTPError:
                pass
            if any(process.poll() is not None for process in self.processes.values()):
                raise RuntimeError(self.home.file("log", f"{names[0]}.log").read_text()[-2000:])
            time.sleep(0.01)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """One call that must succeed; gives the data."""
        answer = self.http.request(method, path, json=body, headers=headers)
        if not answer.is_success:
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json()["data"]

    def agents(self, count: int, prefix: str = "agent") -> dict[str, str]:
        """Agents with the four policies, and a token each."""
        key = {"X-Service-Key": self.tenant_key}
        for start in range(0, count, 100):
            wanted = [{"id": f"{prefix}-{n}", "name": "Bench"} for n in range(start, min(start + 100, count))]
            self.call("POST", "/agents/batch", {"agents": wanted, "applyPolicies": POLICIES}, **key)
        return {
            f"{prefix}-{n}": self.call("POST", f"/agents/{prefix}-{n}/token", {"expiresIn": "24h"}, **key)["token"]
            for n in range(count)
        }

    def memory(self) -> dict[str, int]:
        """Resident memory of each process in MiB."""
        found = {}
        for name, process in self.processes.items():
            status = Path(f"/proc/{process.pid}/status").read_text()
            found[name] = int(status.split("VmRSS:")[1].split()[0]) // 1024
        return found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
