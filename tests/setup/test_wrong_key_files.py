"""A key file with wrong content is said once, by its name and with what to do; a start ends over it."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.fixtures.brought_up import brought_up, custody, ports
from tests.fixtures.eventually import eventually
from tests.fixtures.server import START_SECONDS
from tests.outside import loopback

pytestmark = pytest.mark.long


def no_key(file: Path) -> None:
    """Leave what a copy that went wrong leaves."""
    file.write_text("1 0123\n")


def another_key(file: Path) -> None:
    """The key of another deployment."""
    file.write_text(f"1 {'ab' * 32}\n")


def open_to_all(file: Path) -> None:
    """Leave a file as a copy makes it."""
    file.chmod(0o644)


def short(file: Path) -> None:
    """No key at all."""
    file.write_text("secret\n")


def no_text(file: Path) -> None:
    """Bytes that are no text."""
    file.write_bytes(b"\xff" * 40)


WRONG: dict[str, tuple[str, str, Callable[[Path], None], str]] = {
    "no key": ("signer", "master.key", no_key, "is not a master key file"),
    "another": ("signer", "master.key", another_key, "does not match this database"),
    "readable": ("signer", "master.key", open_to_all, "Run: chmod 600"),
    "short": ("identity", "platform.key", short, "must have 32 to 256 characters"),
    "bytes": ("identity", "platform.key", no_text, "must have 32 to 256 characters"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_start_ends_with_one_sentence(used_home: Path, wrong: str) -> None:
    process, name, spoil, said = WRONG[wrong]
    file = used_home / name
    good, mode = file.read_bytes(), file.stat().st_mode
    spoil(file.resolve())

    ended = custody(used_home, "up", "--no-demo", **ports())

    file.write_bytes(good)
    file.resolve().chmod(mode & 0o777)
    assert ended.returncode == 2, ended.stderr
    sentences = [line for line in ended.stderr.splitlines() if line.startswith(f"{process}: ")]
    assert len(sentences) == 1, ended.stderr
    assert said in sentences[0]
    assert name in sentences[0]
    assert sentences[0].endswith("Mend that, then restart Custody.")
    assert "restarting it" not in ended.stderr


@pytest.fixture(scope="module")
def used_home(shared_folder: Path) -> Path:
    """A state folder that was in use, and is not."""
    with brought_up(shared_folder / "home") as up:
        return up.home


def test_a_signer_that_ends_over_its_key_comes_back_when_it_is_mended_and_the_others_answer(open_folder: Path) -> None:
    with brought_up(open_folder / "home") as up:
        key = (up.home / "master.key").resolve()
        good, first = key.read_bytes(), up.pid_of("signer")
        # The control: over anything else it is started again.
        os.kill(first, signal.SIGKILL)
        eventually(lambda: up.pid_of("signer") not in (0, first) and _ready(up.url) == 200, seconds=START_SECONDS)
        no_key(key)
        os.kill(up.pid_of("signer"), signal.SIGKILL)

        eventually(lambda: "Mend that: it is tried again every 30 s." in up.output(), seconds=START_SECONDS)

        assert up.output().count("is not a master key file") == 1
        assert up.output().count("signer ended") == 2
        assert up.pid_of("signer") == 0
        assert loopback.get(f"{up.url}/health").status_code == 200
        assert _ready(up.url) == 503
        key.write_bytes(good)
        eventually(lambda: up.pid_of("signer") != 0 and _ready(up.url) == 200, seconds=START_SECONDS)
        assert up.output().count("is not a master key file") == 1


def _ready(url: str) -> int:
    try:
        return loopback.get(f"{url}/ready").status_code
    except httpx.HTTPError:
        return 0
