"""compose.yaml works: its services, with their commands, variables and mounts, as processes of this machine.

No container is made. Each service gets a folder in place of its root, in which its volumes are links to folders that
services share as they share volumes; Postgres is that of the tests.
"""

import compileall
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops import healthy, places
from ops.runtime import python_for
from ops.settings import PROCESSES
from tests.fixtures import metrics
from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import database_apart
from tests.fixtures.eventually import eventually
from tests.fixtures.images import compose, stages
from tests.fixtures.server import START_SECONDS, UNLIMITED, free_ports
from tests.outside import loopback
from tests.outside.processes import PROJECT, die_with

pytestmark = pytest.mark.long

# Loopback too, but another address than the processes would take by themselves.
METRICS_HOST = "127.0.0.2"
GIVEN = {
    "POSTGRES_PASSWORD": "not-this-one",
    "SERVICE_PUBLIC_URL": "https://custody.example.com",
    "SERVICE_METRICS_HOST": METRICS_HOST,
}
FILE = compose(GIVEN)
STAGES = stages()
ROOT = os.geteuid() == 0
_ORDER = ("signer", "identity", "scheduler", "proxy", "api")
_PORTS = {
    "SERVICE_API_PORT",
    "SERVICE_PROXY_PORT",
    "SERVICE_METRICS_PORT_API",
    "SERVICE_METRICS_PORT_PROXY",
    "SERVICE_METRICS_PORT_SCHEDULER",
}


def image_folders() -> dict[str, tuple[int, int, int]]:
    """The folders that the image makes outside its sources, with owner, group and mode."""
    found: dict[str, tuple[int, int, int]] = {}
    for line in STAGES["runtime"].all("RUN"):
        for word, *given in (part.split() for part in line.split(" && ")):
            paths = [path for path in given if path.startswith(("/var/", "/run/"))]
            if word == "mkdir":
                # With each folder above it, which is made on the way.
                above = {str(folder): (0, 0, 0o755) for path in paths for folder in Path(path).parents if folder.name}
                found |= above | dict.fromkeys(paths, (0, 0, 0o755))
            if word == "chown":
                owner, group = map(int, given[0].split(":"))
                found |= {path: (owner, group, found[path][2]) for path in paths}
            if word == "chmod":
                found |= {path: (*found[path][:2], int(given[0], 8)) for path in paths}
    return dict(sorted(found.items()))


IMAGE_FOLDERS = image_folders()


def _folder(path: Path, owner: int = 0, group: int = 0, mode: int = 0o755) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    if ROOT:
        os.chown(path, owner, group)
    path.chmod(mode)
    return path


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


class Composed:
    """The services of the file on this machine."""

    platform_key = "p" * 40

    def __init__(self, owner_url: str, passwords: dict[str, str]) -> None:
        # Short, because sockets lie in it; open, because each process has a uid of its own.
        self.folder = Path(tempfile.mkdtemp(prefix="cc-"))
        self.folder.chmod(0o755)
        self.owner_url = owner_url
        self._python = python_for(places.open_home(self.folder / "python"))
        if (copied := self.folder / "python" / "runtime" / "project").exists():
            # As the image does: no process may write beside the sources.
            compileall.compile_dir(copied, quiet=1)
        self._ports = dict(zip(sorted(_PORTS), map(str, free_ports(len(_PORTS))), strict=True))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.url = f"http://127.0.0.1:{self._ports['SERVICE_API_PORT']}"
        self._mounted: set[str] = set()
        self._secret("platform_key", self.platform_key)
        self._earlier_addresses(passwords)

    def _earlier_addresses(self, passwords: dict[str, str]) -> None:
        """Addresses of another database, as an earlier start would leave them: all tests share the roles' passwords."""
        folder = _folder(self.folder / "volumes" / "addresses")
        for process, url in passwords.items():
            places.write_private(folder / f"{process}.url", url)

    def _secret(self, name: str, value: str) -> None:
        file = _folder(self.folder / "secrets") / name
        places.write_private(file, value, owner=places.UIDS["identity"] if ROOT else None)

    def root_of(self, name: str) -> Path:
        """The folder in place of a container's root: what the image makes, with volumes and secrets mounted."""
        root, service = _folder(self.folder / name), FILE["services"][name]
        volumes = dict(reversed(mount.split(":")[:2]) for mount in service.get("volumes", []))
        for place, (owner, group, mode) in IMAGE_FOLDERS.items():
            if (volume := volumes.pop(place, None)) is None:
                _folder(root / place[1:], owner, group, mode)
                continue
            shared = self.folder / "volumes" / volume
            if volume not in self._mounted:
                # As the first mount of an empty volume does.
                _folder(shared, owner, group, mode)
                self._mounted.add(volume)
            (root / place[1:]).symlink_to(shared)
        assert volumes == {}, "a volume is mounted where the image has no folder"
        for secret in service.get("secrets", []):
            file = self.folder / "secrets" / secret
            (_folder(root / "run/secrets") / secret).symlink_to(
                file if file.exists() else FILE["secrets"][secret]["file"]
            )
        return root

    def environment_of(self, name: str, root: Path) -> dict[str, str]:
        """Return the environment by image and file, with places below this root, free ports, and where Postgres is."""
        said = {**STAGES[name].environment, **FILE["services"][name].get("environment", {})}
        said = {key: str(value) for key, value in said.items()}
        for key, value in said.items():
            for place in ("/var/lib/custody", "/run/custody", "/run/secrets"):
                said[key] = said[key].replace(place, f"{root}{place}") if value.startswith(place) else said[key]
        if "SERVICE_DATABASE_URL" in said:
            said["SERVICE_DATABASE_URL"] = self.owner_url
        said |= {"HOME": str(root), "PATH": os.environ["PATH"], **UNLIMITED, **self._ports, **self._python.environment}
        said |= {key: "127.0.0.1" for key in ("SERVICE_API_HOST", "SERVICE_PROXY_HOST") if key in said}
        if not ROOT:
            # One uid for all is what production refuses.
            said |= {"SERVICE_ENV": "development", "SERVICE_PEER_UIDS": ""}
        return said

    def run(self, name: str) -> subprocess.Popen[bytes]:
        """Start a service."""
        service, stage, root = FILE["services"][name], STAGES[name], self.root_of(name)
        assert service["build"]["target"] == name
        uid = int(service.get("user", stage.user).split(":")[0]) if ROOT else None
        words = service.get("command", stage.command)
        command = [str(self._python.program), "-P", "-m", "ops", *words]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd="/",
                env=self.environment_of(name, root),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=uid,
                group=uid,
                extra_groups=None if uid is None else [],
                preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
            )
        self.processes[name] = process
        return process

    def command(self, name: str, *words: str, as_root: bool = False, **environment: str) -> str:
        """Run a command in a service's container, or in another one of it, and return its output."""
        uid = int(FILE["services"][name]["user"].split(":")[0]) if ROOT and not as_root else None
        done = subprocess.run(
            [str(self._python.program), "-P", "-m", "ops", *words],
            cwd="/",
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
            capture_output=True,
            timeout=60,
            check=False,
            env={**self.environment_of(name, self.folder / name), **environment},
        )
        assert done.returncode == 0, (done.stdout, done.stderr, self.logs())
        return done.stdout.decode()

    def health_of(self, name: str) -> str | None:
        """Return the complaint of a service's health check."""
        assert STAGES[name].healthcheck[-1] == name
        try:
            return healthy.CHECKS[name](self.environment_of(name, self.folder / name))
        except OSError as problem:
            return str(problem)

    def wait_until_healthy(self, name: str) -> None:
        """As `condition: service_healthy` does."""

        def complaint() -> str | None:
            assert self.processes[name].poll() is None, self.logs()
            return self.health_of(name)

        eventually(complaint, None, START_SECONDS, self.logs)

    def metrics(self) -> list[str]:
        """Return the metrics of each process that has figures."""
        names = [name for name in self._ports if name.startswith("SERVICE_METRICS_PORT")]
        return [loopback.get(f"http://{METRICS_HOST}:{self._ports[name]}/metrics").text for name in names]

    def logs(self) -> str:
        """Return the output of all services."""
        return "".join(f"== {file.name}\n{file.read_text()[-3000:]}" for file in sorted(self.folder.glob("*.log")))

    def end(self) -> None:
        """Leave nothing behind."""
        for process in self.processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.folder)


@pytest.fixture(scope="module")
def composition(postgres_home: places.Home, worker_id: str) -> Iterator[Composed]:
    """Everything that the file names, up in the order that it asks for."""
    apart = database_apart(postgres_home, f"{worker_id}_composed")
    passwords = {name: postgres_home.file("db", f"{name}.url").read_text() for name in PROCESSES}
    running = Composed(apart.owner_url, passwords)
    try:
        assert running.run("migrate").wait(60) == 0, running.logs()
        running.processes.pop("migrate")
        for name in _ORDER:
            running.run(name)
            if name in {"signer", "identity"}:
                running.wait_until_healthy(name)
        for name in _ORDER:
            running.wait_until_healthy(name)
        yield running
    finally:
        running.end()


def test_the_processes_expose_the_metrics_that_the_code_and_the_page_name(composition: Composed) -> None:
    exposed: dict[str, set[str]] = {}
    for text in composition.metrics():
        for line in text.splitlines():
            if match := re.match(r"(custody_\w+)(?:\{(.*)\})? ", line):
                exposed.setdefault(match[1], set()).update(re.findall(r"(\w+)=", match[2] or ""))
    # The library's own: when each counter and histogram began.
    exposed = {name: labels for name, labels in exposed.items() if not name.endswith("_created")}
    declared = metrics.declared_series()

    assert set(exposed) - set(declared) == set()
    assert {name: declared[name] for name in exposed} == exposed
    # What was never counted has no series with labels yet; prices have some where an endpoint issues them.
    issued = {"custody_prices_old", "custody_prices_issued_timestamp_seconds"}
    assert {name for name in set(declared) - set(exposed) if not declared[name]} == issued


def test_the_metrics_that_alerts_begin_with_are_there_from_the_start(composition: Composed) -> None:
    text = "".join(composition.metrics())

    for worker in ("signer", "identity"):
        assert f'custody_{worker}_messages_total{{name="refused_peers"}} 0.0' in text
        assert f'custody_database_full{{worker="{worker}"}} 0.0' in text
    for name in ("broken_commits", "audit_logs_stopped"):
        assert f'custody_signer_messages_total{{name="{name}"}} 0.0' in text
    assert "custody_proxy_turned_away_total 0.0" in text


def test_backup_rotation_and_the_look_at_what_is_there_work_as_the_page_says(composition: Composed) -> None:
    page = (PROJECT / "docs/recovery.md").read_text()
    said = [line.split() for line in page.splitlines() if line.startswith("docker compose ")]
    backup = ["docker", "compose", "run", "--rm", "-v", "/backups:/backups", "migrate", "backup", "/backups/2030-01-31"]
    # As root: in production nobody is the operator for having the signer's own uid.
    inside = ["docker", "compose", "exec", "--privileged", "--user", "0", "signer", ".venv/bin/custody"]
    look = ["docker", "compose", "run", "--rm", "-e", "SERVICE_DATABASE_URL", "signer", "restore", "--verify"]
    assert all(one in said for one in (backup, look, [*inside, "keys", "rotate"]))
    folder = _folder(composition.folder / "backups") / "2030-01-31"

    kept = composition.command("migrate", "backup", str(folder))
    rotated = composition.command("signer", "keys", "rotate", as_root=True)
    looked = composition.command("signer", "restore", "--verify", SERVICE_DATABASE_URL=composition.owner_url)

    assert "/var/lib/custody/signer/master.key (version 1)" in kept
    assert (folder / "manifest.json").exists()
    assert "version" in rotated
    assert "Verifying every sealed value" in looked


def test_an_order_is_signed_and_everything_stops_in_its_time(composition: Composed) -> None:
    with new_tenant(composition) as tenant:  # type: ignore[arg-type]
        signed = tenant.agent().sign(nonce=0, gasLimit="21000", maxFeePerGas="1000000000", chainId=1)
    assert (signed.status_code, signed.json()["ok"]) == (200, True), signed.text

    for name in reversed(_ORDER):
        process = composition.processes[name]
        process.send_signal(signal.SIGTERM)
        assert process.wait(seconds(FILE["services"][name]["stop_grace_period"])) == 0, composition.logs()
        assert composition.health_of(name) is not None
