"""`custody up` with a master key file that a key of AWS KMS opens: locked, away, disabled, and wrapped again."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from custody.kit.key_head import split
from openers.kinds import recovery
from tests.fixtures.brought_up import BroughtUp, brought_up, custody, environment_of, starting
from tests.fixtures.eventually import eventually
from tests.outside.proc import children
from tests.outside.replies import html
from tests.outside.strict_kms import ACCESS, SECRET, StrictKms
from tests.outside.web_server import serving

pytestmark = pytest.mark.long


@pytest.fixture
def kms() -> Iterator[StrictKms]:
    with serving(StrictKms()) as made:
        yield made


def is_ready(running: BroughtUp) -> bool:
    try:
        return httpx.get(f"{running.url}/ready", timeout=60, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def acts(kms: StrictKms) -> list[str]:
    """The acts that were asked for, in order."""
    return [one.headers["x-amz-target"].removeprefix("TrentService.") for one in kms.heard]


def test_a_key_in_a_kms_opens_each_start_and_no_signer_after_it(kms: StrictKms, tmp_path: Path) -> None:
    home, arn, (_, public) = tmp_path / "home", kms.make_key(), recovery.make()
    credentials = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL_KMS": kms.url}
    settings = {"SERVICE_MASTER_KEY_SOURCE": "awskms", **credentials}

    locked = custody(home, "keys", "lock", "--to", f"awskms:{arn}", "--to", f"recovery:{public}", **settings)
    assert locked.returncode == 0, locked.stderr
    assert acts(kms) == ["Encrypt", "Decrypt"]
    # The service has the right to open alone.
    kms.rights = {"Decrypt"}
    kms.heard.clear()
    with brought_up(home, **settings) as running:
        assert acts(kms) == ["Decrypt"]
        known = {words[-1]: environment_of(pid) for pid, words in children(running.process.pid).items()}
        assert known.keys() >= {"signer", "api", "identity", "scheduler"}
        assert not [name for names in known.values() for name in names if name.startswith("AWS_")]
        kms.replies("/", html(status=503))
        killed = running.pid_of("signer")
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: running.pid_of("signer") not in (0, killed), about=running.output)
        eventually(lambda: is_ready(running), about=running.output)
        assert acts(kms) == ["Decrypt"]

    with starting(home, **settings) as waiting:
        eventually(
            lambda: "waits for awskms: AWS KMS cannot answer now (503)" in waiting.output(), about=waiting.output
        )
        kms.well()
        eventually(lambda: "Ready in" in waiting.output(), seconds=120, about=waiting.output)

    kms.states[arn] = "Disabled"
    with starting(home, **settings) as refused:
        assert refused.process.wait(120) != 0
        assert "AWS KMS refuses kms:Decrypt (DisabledException): enable the key again." in refused.output()
    kms.states.clear()

    kms.rights = {"Encrypt", "Decrypt"}
    before = split((home / "master.key").read_bytes())[0]
    again = custody(home, "keys", "holders", "--refresh", **settings)
    assert again.returncode == 0, again.stderr
    after = split((home / "master.key").read_bytes())[0]
    assert (after.file, [one.name for one in after.holders]) == (before.file, [arn, public])
    assert after.holders[0].blob != before.holders[0].blob
    with brought_up(home, **settings) as running:
        assert f"awskms {arn}" in custody(home, "keys", "status", **settings).stdout
    assert SECRET not in "".join(one.body.decode() for one in kms.heard)
    assert {msgspec.json.decode(one.body)["EncryptionContext"]["custody"] for one in kms.heard} == {"file-key/1"}
