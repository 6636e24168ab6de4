"""Programs on the pages about holders of the master key, run as they stand there."""

import os
import pty
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fixtures.pages import programs_of
from tests.outside.hsm import PIN, Hsm
from tests.outside.openers import ANOTHER_FILE, AWAY, KEY, NOT_OURS, Opener, change_bit, set_up
from tests.outside.processes import PROJECT
from tests.outside.programs import Program, install
from tests.outside.tpm import running_tpm

AGE = Program(("age",), ("age",))


def programs(kind: str) -> list[str]:
    return [program for _, program in programs_of(f"docs/master-key/{kind}.md")]


def paste(program: str, environment: Mapping[str, str], *typed: str) -> str:
    """Run a program in a terminal and type what it asks for; a failure fails the test."""
    ours, its = pty.openpty()
    os.write(ours, "".join(f"{line}\n" for line in typed).encode())
    done = subprocess.run(
        ["sh", "-euc", program],
        stdin=its,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], **environment},
        timeout=60,
        check=False,
    )
    os.close(ours)
    os.close(its)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_token_and_a_key_are_made_as_on_the_page(tmp_path: Path) -> None:
    hsm = Hsm(tmp_path)
    make_token, make_key, log_in = programs("pkcs11")
    opener = Opener("pkcs11", hsm.settings, set_up())

    paste(make_token, hsm.settings, "an-officer", "an-officer", PIN, PIN)
    paste(make_key, hsm.settings)
    holder = opener.wrap("custody/file-key")
    hsm.pin_file.write_text("not-the-pin")
    refused = opener.open(holder), opener.open(holder)
    hsm.pin_file.write_text(PIN)
    paste(log_in, hsm.settings)

    assert ["tried once" in one.sentence for one in refused] == [True, False]
    assert opener.open(holder).output == KEY


def test_a_pcr_is_looked_at_as_on_the_page() -> None:
    (look,) = programs("tpm2")

    with running_tpm() as tpm:
        measured = paste(look, {"TPM2TOOLS_TCTI": tpm.tcti})

    assert "7 : 0x" in measured
    assert "0" * 64 not in measured


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make the key of a host")
def test_a_key_of_a_host_is_made_as_on_the_page() -> None:
    (setup,) = programs("systemd")

    paste(setup, {})

    assert Path("/var/lib/systemd/credential.secret").stat().st_mode & 0o777 == 0o400


def test_the_example_of_a_program_wraps_and_opens(tmp_path: Path) -> None:
    install(AGE)
    stick = tmp_path / "stick"
    stick.mkdir()
    (example,) = programs("command")
    program = tmp_path / "open-keys"
    program.write_text(example.replace("/media/stick", str(stick)))
    program.chmod(0o755)
    opener = Opener("command", {"SERVICE_MASTER_KEY_OPENER": str(program)})

    absent = opener.try_to_wrap("a-stick")
    subprocess.run(["age-keygen", "-o", str(stick / "custody.identity")], check=True, capture_output=True, timeout=60)
    holder = opener.wrap("a-stick")
    changed = opener.open(change_bit(holder, -1))

    assert (absent.status, absent.sentence) == (AWAY, "The stick is not there: plug it in.\n")
    assert holder.name == "a-stick"
    assert opener.open(holder).output == KEY
    assert opener.open(holder, file=ANOTHER_FILE).status == NOT_OURS
    assert (changed.status, changed.output) == (NOT_OURS, b"")


def test_every_page_says_how_to_lock_and_what_was_tried() -> None:
    pages = {file.stem: file.read_text() for file in (PROJECT / "docs/master-key").glob("*.md")}

    for kind in ("pkcs11", "tpm2", "systemd", "command"):
        assert f"custody keys lock --to {kind}:" in pages[kind]
        assert f"SERVICE_MASTER_KEY_SOURCE={kind}" in pages[kind]
        assert "## Tried with" in pages[kind]
