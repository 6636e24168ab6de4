"""npm with a registry of its own."""

import json
import shutil
import subprocess
import time
from pathlib import Path

from steps import BASE, KEY, UPLOADED, run, size_and_digest

NPM = Path(__file__).parents[1] / "node_modules" / ".bin" / "npm"
# npm follows the addresses of files that the registry writes; behind a base address of one's own it is told to stay.
LINES = [f"registry={BASE}/", "replace-registry-host=always", "update-notifier=false", "audit=false", "fund=false"]
if KEY:
    LINES.append(f"//{BASE.partition('://')[2]}/:_authToken={KEY}")


class Failed(Exception):
    """npm ended with a status that is not 0."""


def npm(folder: str, *arguments: str, said: dict[str, str] | None = None) -> str:
    place = Path(folder)
    place.mkdir(exist_ok=True)
    (place / ".npmrc").write_text("\n".join(LINES) + "\n")
    (place / "package.json").write_text(json.dumps(said or {"name": "p", "version": "1.0.0"}))
    done = subprocess.run(
        [NPM, *arguments], cwd=place, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        raise Failed(done.stderr[-400:])
    return done.stdout


def call() -> str:
    return npm("view", "view", "@acme/tools", "description").strip()


def download() -> object:
    npm("install", "install", "--ignore-scripts", "@acme/tools")
    return size_and_digest(Path("install/node_modules/@acme/tools/file").read_bytes())


def upload() -> object:
    """Publish a version that nobody published before, and install it."""
    version = f"2.0.{time.time_ns() // 1_000_000}"
    Path("publish").mkdir()
    Path("publish/up").write_bytes(UPLOADED)
    npm("publish", "publish", "--ignore-scripts", said={"name": "@acme/tools", "version": version})
    npm("again", "install", "--ignore-scripts", f"@acme/tools@{version}")
    return size_and_digest(Path("again/node_modules/@acme/tools/up").read_bytes())


shutil.rmtree("publish", ignore_errors=True)
run({"call": call, "download": download, "upload": upload})
