"""The client for TypeScript, built once, beside the lowest and the newest libraries that it adapts to."""

import fcntl
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.outside import npm
from tests.outside.processes import PROJECT

HERE = Path(__file__).parent
SDK = PROJECT / "sdk/typescript"
OWN: dict[str, Any] = json.loads((SDK / "package.json").read_text())
SETS = ("lowest", "newest")
BUILD_SECONDS = 300


def folder_of(libraries: str) -> Path:
    """Return a folder in which programs import the client, and one set of libraries."""
    npm.install(SDK)
    with (SDK / "tsconfig.json").open() as held:
        # Parallel workers wait for the one that builds.
        fcntl.flock(held, fcntl.LOCK_EX)
        done = SDK / "node_modules/.built"
        sources = [*(SDK / "src").iterdir(), SDK / "package.json", PROJECT / "openapi.json"]
        if not done.exists() or done.stat().st_mtime < max(one.stat().st_mtime for one in sources):
            build()
            done.touch()
        if libraries == "newest":
            return SDK
        npm.install(HERE)
        packed, copied = HERE / "node_modules/custody-sdk", HERE / "node_modules/custody-sdk/copied"
        if not copied.exists() or copied.stat().st_mtime < done.stat().st_mtime:
            shutil.rmtree(packed, ignore_errors=True)
            shutil.copytree(SDK / "dist", packed / "dist")
            shutil.copy(SDK / "package.json", packed)
            copied.touch()
    return HERE


def build() -> None:
    """Build it as a release does."""
    command = ["npm", "run", "--silent", "build"]
    ended = subprocess.run(command, cwd=SDK, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS)
    assert ended.returncode == 0, ended.stdout + ended.stderr
