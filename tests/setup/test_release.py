"""A release is made from what is committed alone, and made again it has the same bytes."""

import hashlib
import json
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from custody.version import VERSION
from tests.fixtures.imports import pins
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.long

LEFT = (
    ".git",
    ".venv*",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".custody*",
    "node_modules",
    "dist",
    "__pycache__",
)
_GIT = ("git", "-c", "user.name=test", "-c", "user.email=test@example.com")


def test_a_release_is_what_is_committed_and_the_same_each_time(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(PROJECT, source, ignore=shutil.ignore_patterns(*LEFT))

    def git(*words: str) -> str:
        ran = subprocess.run([*_GIT, *words], cwd=source, check=True, capture_output=True, text=True, timeout=120)
        return ran.stdout.strip()

    def release(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["scripts/release", *words], cwd=source, check=False, capture_output=True, text=True, timeout=900
        )

    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "all")
    # Somebody's own setting, which is in no file of the release.
    git("config", "tar.umask", "0077")

    made = release("--twice")
    assert made.returncode == 0, made.stderr
    sums = dict(reversed(line.split()) for line in (source / "dist/SHA256SUMS").read_text().splitlines())
    built = {file.name: file for file in (source / "dist").iterdir() if file.name != "SHA256SUMS"}
    assert {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in built.items()} == sums
    # Every file is of this version: of the service, the clients, and the lists of packages.
    assert {name.replace(f"-{VERSION}", "", 1) for name in built if f"-{VERSION}" in name and "cdx" not in name} == {
        "custody-py3-none-any.whl",
        "custody.tar.gz",
        "custody_sdk-py3-none-any.whl",
        "custody-sdk.tgz",
    }
    assert [name for name in built if f"-{VERSION}" not in name] == []
    with zipfile.ZipFile(built[f"custody-{VERSION}-py3-none-any.whl"]) as wheel:
        assert wheel.read("custody/commit").decode().strip() == git("rev-parse", "HEAD")
    with tarfile.open(built[f"custody-{VERSION}.tar.gz"]) as sources:
        assert {one.mode for one in sources} == {0o644, 0o755}
    listed = json.loads(built[f"custody-{VERSION}-signer.cdx.json"].read_text())
    named = {f"{one['name']}=={one['version']}" for one in listed["components"]}
    assert named == {pin.split()[0].split(";")[0] for pin in pins(PROJECT / "locks/signer.lock")}

    # The control: what is not committed stops it.
    (source / "custody/new.py").write_text("")
    stopped = release()
    assert (stopped.returncode, "git status" in stopped.stderr) == (1, True)
