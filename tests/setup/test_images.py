"""Every image of the Dockerfile is built and run here: its steps in a folder of their own, its command in that folder.

No container engine is needed. A process gets its image as the root that it sees, read-only, with the volumes, secrets,
user and variables that compose.yaml names; the network is the machine's.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from ops import places
from ops.settings import PROCESSES
from tests.fixtures.built_images import PATH, Images
from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import killable_postgres
from tests.fixtures.eventually import eventually
from tests.fixtures.images import compose
from tests.fixtures.server import START_SECONDS, UNLIMITED, free_ports
from tests.fixtures.wheels import IN_IMAGES, Wheels, images
from tests.outside.bare_debian import bare_debian
from tests.outside.processes import die_with
from tests.outside.programs import ProgramMissing

pytestmark = pytest.mark.long

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILE = compose({"POSTGRES_PASSWORD": "not-this-one", "SERVICE_PUBLIC_URL": "https://custody.example.com"})
TARGETS = ("migrate", "opener", *PROCESSES)
_ORDER = ("signer", "identity", "scheduler", "proxy", "api")
_PORTS = (
    *("SERVICE_API_PORT", "SERVICE_PROXY_PORT"),
    *(f"SERVICE_METRICS_PORT_{one}" for one in ("API", "PROXY", "SCHEDULER")),
)


@pytest.fixture(scope="module")
def all_images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """All stages, of which none has a network."""
    version, machine = f"{sys.version_info.major}.{sys.version_info.minor}", os.uname().machine
    if version != IN_IMAGES:
        pytest.skip(f"images have Python {IN_IMAGES}, and this is {version}")
    if sys.base_prefix == "/usr":
        pytest.skip("this Python is the system's, and cannot be put elsewhere")
    if subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True, check=False).returncode:
        pytest.skip("root may not make namespaces here")
    try:
        debian = bare_debian()
    except ProgramMissing as problem:
        pytest.skip(str(problem))
    wheels = Wheels(tmp_path_factory.mktemp("wheels"))
    _, _, locks = images(version, machine)
    assert wheels.download(version, machine, (*locks, "locks/build.lock", "locks/opener-people.lock")) == ""
    wheels.source("embit", "locks/signer.lock", version, machine)
    # Short, because sockets lie in it; open, because each process has a uid of its own.
    folder = Path(tempfile.mkdtemp(prefix="ci-"))
    folder.chmod(0o755)
    yield Images(folder, debian, wheels.folder(version, machine), COMMIT=COMMIT)
    shutil.rmtree(folder)


class Running:
    """The services of compose.yaml, each in its image."""

    platform_key = "p" * 40

    def __init__(self, built: Images, owner_url: str) -> None:
        self._built, self._owner_url = built, owner_url
        self.folder = Path(tempfile.mkdtemp(prefix="cr-"))
        self.folder.chmod(0o755)
        self._ports = dict(zip(_PORTS, map(str, free_ports(len(_PORTS))), strict=True))
        self.url = f"http://127.0.0.1:{self._ports['SERVICE_API_PORT']}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        places.write_private(self.folder / "platform_key", self.platform_key, owner=places.UIDS["identity"])

    def _volume(self, name: str, place: Path) -> Path:
        """As the first mount of an empty volume makes it: with the owner and mode that the image has there."""
        volume = self.folder / "volumes" / name
        if not volume.exists():
            volume.mkdir(parents=True)
            like = place.stat()
            os.chown(volume, like.st_uid, like.st_gid)
            volume.chmod(like.st_mode & 0o7777)
        return volume

    def _mounts(self, name: str, root: Path) -> Iterator[tuple[Path, Path, str]]:
        service = FILE["services"][name]
        for mount in service.get("volumes", []):
            volume, place, *how = mount.split(":")
            yield self._volume(volume, root / place[1:]), root / place[1:], *(how or ["rw"])
        for secret in service["secrets"]:
            file = Path(FILE["secrets"][secret]["file"])
            yield (
                self.folder / "platform_key" if secret == "platform_key" else file,
                root / "run/secrets" / secret,
                "ro",
            )
        # Of a tests' Postgres there is a socket, where a service of the file has a name.
        [socket] = parse_qs(urlsplit(self._owner_url).query)["host"]
        yield Path(socket), root / socket[1:], "rw"

    def command(self, name: str, *words: str) -> list[str | Path]:
        """Return the command that runs such words in the image of a service, as its user."""
        root = self._built.root(name)
        steps = [f"mount --bind {root} {root}"]
        for mount in FILE["services"][name]["tmpfs"]:
            place, _, options = mount.partition(":")
            steps.append(f"mount -t tmpfs -o {options or 'mode=1777'} tmpfs {root}{place}")
        for source, target, how in self._mounts(name, root):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.mkdir(exist_ok=True) if source.is_dir() else target.touch()
            # Again, where a file system of its own was laid over the image's folder.
            steps.append(f"mkdir -p {target}" if source.is_dir() else f"touch {target}")
            steps.append(f"mount --bind {source} {target} && mount -o remount,bind,{how} {target}")
        steps.append(f"mount -t proc proc {root}/proc && mount -o remount,bind,ro {root}")
        user, _, group = self._user(name).partition(":")
        steps.append(f"exec chroot --userspec={user}:{group} --groups= {root} {shlex.join(words)}")
        return ["unshare", "--mount", "/bin/sh", "-ec", "\n".join(steps)]

    def _user(self, name: str) -> str:
        return str(FILE["services"][name].get("user", self._built.stages[name].user))

    def environment(self, name: str) -> dict[str, str]:
        """Return the environment by image and file, with free ports, on loopback, and Postgres where it is."""
        said = {**self._built.stages[name].environment, **FILE["services"][name]["environment"]}
        said = {key: str(value) for key, value in said.items()}
        if "SERVICE_DATABASE_URL" in said:
            said["SERVICE_DATABASE_URL"] = self._owner_url
        local = {key: "127.0.0.1" for key in ("SERVICE_API_HOST", "SERVICE_PROXY_HOST") if key in said}
        return {"PATH": PATH, **said, **local, **UNLIMITED, **self._ports}

    def start(self, name: str) -> subprocess.Popen[bytes]:
        """Run entry point and command of the image."""
        stage = self._built.stages[name]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                self.command(name, *stage.entrypoint, *FILE["services"][name].get("command", stage.command)),
                env=self.environment(name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
            )
        self.processes[name] = process
        return process

    def ask(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run something beside the process, as `docker compose exec` does."""
        return subprocess.run(
            self.command(name, *words),
            env=self.environment(name),
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )

    def wait_until_healthy(self, name: str) -> None:
        """Until the image's own check succeeds."""

        def state() -> int:
            assert self.processes[name].poll() is None, self.logs()
            return self.ask(name, *self._built.stages[name].healthcheck).returncode

        eventually(state, 0, START_SECONDS, self.logs)

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
def running(all_images: Images) -> Iterator[Running]:
    """Everything that compose.yaml names, up in its order, on a Postgres of its own: its roles get new passwords."""
    with killable_postgres() as postgres:
        services = Running(all_images, postgres.database.owner_url)
        try:
            assert services.start("migrate").wait(START_SECONDS) == 0, services.logs()
            services.processes.pop("migrate")
            for name in _ORDER:
                services.start(name)
                services.wait_until_healthy(name)
            yield services
        finally:
            services.end()


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_is_built_and_has_what_it_needs_and_no_more(all_images: Images, target: str) -> None:
    root = all_images.root(target)
    there = {path.name for path in (root / "srv/custody").iterdir()}

    wanted = {
        name
        for stage in ("runtime", target)
        for rest in all_images.stages[stage].all("COPY")
        for name in rest.split()[-1:]
    }
    assert there == wanted
    assert (root / "srv/custody/custody/commit").read_text() == f"{COMMIT}\n"
    # Neither what installs packages, nor what was downloaded, nor the wheels that stages hand on.
    pips = [*root.glob("srv/custody/.venv/lib/*/site-packages/pip"), *root.glob("usr/local/lib/*/site-packages/pip")]
    assert pips == []
    assert not (root / "downloaded").exists()
    # A stage begins with links to another's files.
    assert all_images.base_is_untouched()


def test_an_opener_says_in_its_image_what_it_lacks_and_has_what_people_need(all_images: Images) -> None:
    stage, root = all_images.stages["opener"], all_images.root("opener")
    there = "/srv/custody/.venv/bin"
    steps: list[tuple[list[str], int, str]] = [
        (stage.entrypoint, os.EX_CONFIG, "SERVICE_MASTER_KEY_SOURCE is a list of"),
        ([f"{there}/python", "-P", "-c", "import openers.kinds.people"], 0, ""),
        ([f"{there}/custody", "unlock", "--socket", "/nowhere"], 1, "nobody waits for shares at /nowhere"),
    ]
    for command, status, said in steps:
        user = f"--userspec={stage.user}"
        done = subprocess.run(
            [shutil.which("chroot") or "chroot", user, root, *command],
            env=stage.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        assert said in done.stderr


def test_an_order_is_signed_by_the_images_and_they_stop(running: Running) -> None:
    said = running.ask("signer", "/srv/custody/.venv/bin/custody", "--version")
    assert COMMIT in said.stdout, said.stderr

    with new_tenant(running) as tenant:  # type: ignore[arg-type]
        signed = tenant.agent().sign(nonce=0, gasLimit="21000", maxFeePerGas="1000000000", chainId=1)
    assert (signed.status_code, signed.json()["ok"]) == (200, True), signed.text

    for name in reversed(_ORDER):
        process = running.processes[name]
        process.send_signal(signal.SIGTERM)
        assert process.wait(int(FILE["services"][name]["stop_grace_period"].removesuffix("s"))) == 0, running.logs()
        check = running.ask(name, *running._built.stages[name].healthcheck)
        assert (check.returncode, "Traceback" in check.stderr) == (1, False), check.stderr
