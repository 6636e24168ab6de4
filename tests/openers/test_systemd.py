"""The opener of `systemd`, run with the systemd-creds of this host, its key, and a TPM in software."""

import os
import subprocess
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from custody.kit.key_head import Holder
from tests.fixtures.each import each
from tests.outside.openers import (
    ANOTHER_FILE,
    AWAY,
    BAD_SETTINGS,
    FILE,
    KEY,
    NOT_OURS,
    REFUSED,
    Opener,
    change_bit,
    with_blob,
)
from tests.outside.tpm import running_tpm

HOST = os.uname().nodename
OPENER = Opener("systemd")


def _why_not() -> str:
    """Why systemd-creds has no key of a host here, or nothing."""
    try:
        tried = subprocess.run(
            ["systemd-creds", "--with-key=host", "--name=a-test", "encrypt", "-", "-"],
            input=b"a try",
            capture_output=True,
            timeout=60,
            check=False,
        )
    except FileNotFoundError:
        return "there is no systemd-creds here"
    return tried.stderr.decode(errors="replace").strip() if tried.returncode else ""


@pytest.fixture(autouse=True)
def _host() -> None:
    if why := _why_not():
        pytest.skip(f"systemd-creds cannot encrypt with a key of this host: {why}")


def test_the_key_of_a_file_comes_back() -> None:
    holder = OPENER.wrap("host")

    assert holder.name == f"host@{HOST}"
    assert KEY not in holder.blob
    assert OPENER.open(holder).output == KEY


def test_the_command_of_the_page_opens_what_was_wrapped() -> None:
    """It is systemd's own credential, with a name that says whose it is."""
    opened = subprocess.run(
        ["systemd-creds", f"--name=custody-{FILE}", "decrypt", "-", "-"],
        input=b64encode(OPENER.wrap("host").blob),
        capture_output=True,
        timeout=60,
        check=True,
    )

    assert opened.stdout == KEY


CHANGES: dict[str, Callable[[Holder], Holder]] = {
    "a bit of the kind": lambda holder: change_bit(holder, 0),
    "a bit of the nonce": lambda holder: change_bit(holder, 34),
    "a bit of what is encrypted": lambda holder: change_bit(holder, -20),
    "a bit of the tag": lambda holder: change_bit(holder, -1),
    "one byte short": lambda holder: with_blob(holder, holder.blob[:-1]),
    "one byte long": lambda holder: with_blob(holder, holder.blob + b"\0"),
    "one byte": lambda holder: with_blob(holder, b"\0"),
    "8192 bytes": lambda holder: with_blob(holder, holder.blob.ljust(8192, b"\0")),
}


def test_a_changed_holder_does_not_open() -> None:
    holder = OPENER.wrap("host")

    said = {what: OPENER.open(change(holder)) for what, change in CHANGES.items()}

    assert {what: one.status for what, one in said.items()} == dict.fromkeys(CHANGES, NOT_OURS)
    assert {one.output for one in said.values()} == {b""}
    assert OPENER.open(holder).output == KEY


def test_a_holder_of_another_file_does_not_open() -> None:
    holder = OPENER.wrap("host", ANOTHER_FILE)

    said = OPENER.open(holder)

    assert (said.status, said.output) == (NOT_OURS, b"")
    assert OPENER.open(holder, file=ANOTHER_FILE).output == KEY


def test_a_user_who_may_not_read_the_key_of_the_host_is_told_so(tmp_path: Path) -> None:
    """Its command becomes another user first. Only root can, and nobody else has a key of the host to come so far."""
    holder = OPENER.wrap("host")
    real = subprocess.run(["which", "systemd-creds"], capture_output=True, text=True, check=True).stdout.strip()
    instead = tmp_path / "systemd-creds"
    instead.write_text(f'#!/bin/sh\nexec setpriv --reuid=65534 --clear-groups "{real}" "$@"\n')
    instead.chmod(0o755)

    said = OPENER.using(PATH=f"{tmp_path}:{os.environ['PATH']}").open(holder)

    assert (said.status, "has to run as root" in said.sentence) == (REFUSED, True), said


def test_a_tpm_opens_while_it_is_there_and_its_pcr_as_it_was() -> None:
    with running_tpm() as tpm:
        opener = OPENER.using(SYSTEMD_TPM2_DEVICE=tpm.tcti)
        holder, both = opener.wrap("tpm2"), opener.wrap("host+tpm2@a-name")
        opened = [opener.open(one).output for one in (holder, both)]
        tpm.stop()
        off = opener.open(holder)
        tpm.start()
        tpm.measure("another boot")
        changed = opener.open(holder)

    assert (holder.name, both.name) == (f"tpm2@{HOST}", "host+tpm2@a-name")
    assert opened == [KEY, KEY]
    assert (off.status, changed.status) == (AWAY, REFUSED), (off, changed)


@each("name", ["", "auto", "null", "Host", "tpm2+host", "@host", "host;tpm2", "--with-key=null"])
def test_a_name_that_names_no_key_is_refused(name: str) -> None:
    said = OPENER.try_to_wrap(name)

    assert (said.status, "named by its key" in said.sentence) == (BAD_SETTINGS, True)


def test_a_host_without_systemd_says_so(tmp_path: Path) -> None:
    said = OPENER.using(PATH=str(tmp_path)).open(Holder("systemd", "host", bytes(60)))

    assert (said.status, "systemd 250" in said.sentence) == (BAD_SETTINGS, True)
