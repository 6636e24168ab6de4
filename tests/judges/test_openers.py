"""Shares and recovery keys held against implementations that others wrote: theirs open ours, and ours open theirs."""

import itertools
import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from custody.kit.key_head import binding
from openers import written_key
from openers.kinds import people, recovery
from tests.judges import npm

pytestmark = pytest.mark.skipif(npm.missing() is not None, reason=npm.missing() or "")

DRAWN = random.Random(39)
FILE = "5089efbf191005cb"
KEYS = [bytes(32), b"\xff" * 32, *(DRAWN.randbytes(32) for _ in range(6))]
SPLITS = ("2/2", "2/3", "3/5", "5/5", "2/16", "16/16")


@pytest.fixture(scope="session", autouse=True)
def _judges() -> None:
    npm.install()


def ask(cases: list[dict[str, Any]]) -> list[Any]:
    node = shutil.which("node")
    assert node is not None
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run(
        [node, "openers.mjs"], cwd=npm.JUDGES, input=lines, capture_output=True, text=True, check=True, timeout=120
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_another_implementation_opens_our_shares() -> None:
    cases, expected = [], []
    for key, given in itertools.product(KEYS, SPLITS):
        needed, shares = people.numbers_of(given)
        made = people.split(given, FILE, key).shares
        assert len(set(made)) == shares
        cases.append({"act": "combine", "shares": DRAWN.sample(made, needed)})
        expected.append(key.hex())
    assert ask(cases) == expected


def test_our_opener_takes_the_shares_of_another_implementation() -> None:
    asked = [(key, *people.numbers_of(given)) for key, given in itertools.product(KEYS[1:4], SPLITS)]
    made = ask([{"act": "split", "key": key.hex(), "needed": k, "shares": n} for key, k, n in asked])
    for (key, needed, count), shares in zip(asked, made, strict=True):
        gathering = people.Gathering(people.shared_of(needed, FILE, shares), FILE)
        brought = DRAWN.sample(shares, needed)
        assert len(shares) == count
        assert [gathering.add(share, 0.0) for share in brought] == [None] * (needed - 1) + [key]


def test_another_implementation_opens_what_a_recovery_key_wraps() -> None:
    made = [(key, *recovery.make()) for key in KEYS]
    wrapped = [recovery.wrap(public, FILE, key)[1] for key, _, public in made]
    cases = [
        {"act": "open", "secret": written_key.read(text).hex(), "info": binding(FILE).decode(), "blob": blob.hex()}
        for (_, text, _), blob in zip(made, wrapped, strict=True)
    ]
    assert ask(cases) == [key.hex() for key in KEYS]


def test_a_recovery_key_opens_what_another_implementation_wraps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "recovery.key"
    monkeypatch.setenv("SERVICE_RECOVERY_KEY_FILE", str(path))
    made = [(key, *recovery.make()) for key in KEYS]
    asked = [{"act": "seal", "name": name, "info": binding(FILE).decode(), "key": key.hex()} for key, _, name in made]
    for (key, text, public), blob in zip(made, ask(asked), strict=True):
        path.touch(mode=0o600)
        path.write_text(text)
        assert recovery.unwrap(public, bytes.fromhex(blob), FILE) == key
