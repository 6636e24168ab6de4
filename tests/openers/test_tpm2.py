"""The opener of `tpm2`, run against a real TPM in software."""

import os
from collections.abc import Callable, Iterator
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
from tests.outside.tpm import Tpm, running_tpm

HOST = os.uname().nodename


@pytest.fixture
def tpm() -> Iterator[Tpm]:
    with running_tpm() as one:
        yield one


@pytest.fixture
def opener(tpm: Tpm) -> Opener:
    return Opener("tpm2", {"TPM2TOOLS_TCTI": tpm.tcti})


def test_the_key_of_a_file_comes_back_after_the_same_boot(tpm: Tpm, opener: Opener) -> None:
    holder = opener.wrap("sha256:7")
    tpm.stop()
    tpm.start()
    before_the_boot = opener.open(holder)
    tpm.measure("a boot")

    assert holder.name == f"sha256:7@{HOST}"
    assert KEY not in holder.blob
    assert (before_the_boot.status, before_the_boot.output) == (REFUSED, b"")
    assert opener.open(holder).output == KEY


def test_another_boot_opens_nothing(tpm: Tpm, opener: Opener) -> None:
    holder = opener.wrap("sha256:7")
    tpm.measure("something else")

    said = opener.open(holder)

    assert (said.status, said.output) == (REFUSED, b"")
    assert "PCR 7 is not as it was" in said.sentence


def test_only_the_named_pcrs_hold(tpm: Tpm, opener: Opener) -> None:
    tpm.measure("a kernel", 4)
    one, two = opener.wrap("sha256:7"), opener.wrap("sha256:4,7@a-name")
    tpm.measure("another kernel", 4)

    assert two.name == "sha256:4,7@a-name"
    assert opener.open(one).output == KEY
    assert opener.open(two).status == REFUSED


def test_a_tpm_that_is_off_is_waited_for(tpm: Tpm, opener: Opener) -> None:
    holder = opener.wrap("sha256:7")
    tpm.stop()
    off = (
        opener.open(holder),
        opener.try_to_wrap("sha256:7"),
        opener.using(TPM2TOOLS_TCTI="device:/nowhere").open(holder),
    )
    tpm.start()
    tpm.measure("a boot")

    assert [one.status for one in off] == [AWAY] * 3
    assert "does not answer" in off[0].sentence
    assert opener.open(holder).output == KEY


CHANGES: dict[str, Callable[[Holder], Holder]] = {
    "a bit of the public part": lambda holder: change_bit(holder, 40),
    "a bit of its length": lambda holder: change_bit(holder, 1),
    "a bit of the policy": lambda holder: change_bit(holder, 20),
    "a bit of the private part": lambda holder: change_bit(holder, -5),
    "one byte short": lambda holder: with_blob(holder, holder.blob[:-1]),
    "one byte long": lambda holder: with_blob(holder, holder.blob + b"\0"),
    "one byte": lambda holder: with_blob(holder, b"\0"),
    "four bytes": lambda holder: with_blob(holder, bytes(4)),
    "8192 bytes": lambda holder: with_blob(holder, holder.blob.ljust(8192, b"\0")),
    "8192 bytes with their length": lambda holder: with_blob(
        holder, holder.blob[:80] + (8192 - 82).to_bytes(2) + bytes(8192 - 82)
    ),
}


def test_a_changed_holder_does_not_open(opener: Opener) -> None:
    holder = opener.wrap("sha256:7")

    said = {what: opener.open(change(holder)) for what, change in CHANGES.items()}

    assert {what: one.status for what, one in said.items()} == dict.fromkeys(CHANGES, NOT_OURS)
    assert {one.output for one in said.values()} == {b""}
    assert opener.open(holder).output == KEY


def test_a_holder_of_another_file_does_not_open(opener: Opener) -> None:
    holder = opener.wrap("sha256:7", ANOTHER_FILE)

    said = opener.open(holder)

    assert (said.status, said.output) == (NOT_OURS, b"")
    assert opener.open(holder, file=ANOTHER_FILE).output == KEY


def test_a_key_that_was_sealed_without_a_file_does_not_open(tpm: Tpm, opener: Opener) -> None:
    """The TPM binds nothing to a file by itself: 32 bytes of anybody's would be taken for the key."""
    folder = Path(tpm.tcti.partition("=")[2]).parent
    (folder / "bytes").write_bytes(KEY)
    tpm.tool("createprimary", "-Q", "-C", "o", "-g", "sha256", "-G", "ecc", "-c", "primary")
    tpm.tool("createpolicy", "-Q", "--policy-pcr", "-l", "sha256:7", "-L", "policy")
    tpm.tool("flushcontext", "-t")
    tpm.tool("create", "-Q", "-C", "primary", "-L", "policy", "-i", "bytes", "-u", "public", "-r", "private")
    tpm.tool("flushcontext", "-t")
    sealed = (folder / "public").read_bytes() + (folder / "private").read_bytes()

    said = opener.open(Holder("tpm2", "sha256:7", sealed))

    assert (said.status, said.output, "not the key of this file" in said.sentence) == (NOT_OURS, b"", True), said


def test_another_tpm_opens_nothing(opener: Opener) -> None:
    holder = opener.wrap("sha256:7")

    with running_tpm() as another:
        said = opener.using(TPM2TOOLS_TCTI=another.tcti).open(holder)

    assert (said.status, "of another TPM" in said.sentence) == (NOT_OURS, True)


def test_a_sealed_object_opens_by_its_policy_alone(tpm: Tpm, opener: Opener) -> None:
    """An object that a password opens, too, would open by the empty one after any boot."""
    holder = opener.wrap("sha256:7")
    folder = Path(tpm.tcti.partition("=")[2]).parent
    first = 2 + int.from_bytes(holder.blob[:2])
    (folder / "public").write_bytes(holder.blob[:first])
    (folder / "private").write_bytes(holder.blob[first:])
    tpm.tool("createprimary", "-Q", "-C", "o", "-g", "sha256", "-G", "ecc", "-c", "primary")
    tpm.tool("flushcontext", "-t")
    tpm.tool("load", "-Q", "-C", "primary", "-u", "public", "-r", "private", "-c", "loaded")
    tpm.tool("flushcontext", "-t")

    without = tpm.try_tool("unseal", "-c", "loaded")

    assert (without.returncode, "authPolicy is not available" in without.stderr) == (1, True)
    tpm.tool("flushcontext", "-t")
    assert tpm.tool("unseal", "-c", "loaded", "-p", "pcr:sha256:7").startswith(f"custody file-key/1 {FILE}\n")


def test_a_pcr_without_a_measurement_holds_nothing(tpm: Tpm, opener: Opener) -> None:
    said = opener.try_to_wrap("sha256:7,8")

    assert (said.status, "PCR 8 holds no measurement" in said.sentence) == (BAD_SETTINGS, True)
    tpm.measure("a command line", 8)
    assert opener.open(opener.wrap("sha256:7,8")).output == KEY


def test_an_owner_with_a_password_is_named(tpm: Tpm, opener: Opener) -> None:
    holder = opener.wrap("sha256:7")
    tpm.tool("changeauth", "-c", "o", "a-password")

    said = opener.open(holder)

    assert (said.status, "owner hierarchy has a password" in said.sentence) == (REFUSED, True)


def test_it_leaves_no_object_in_the_tpm_and_no_file(tpm: Tpm, opener: Opener, tmp_path: Path) -> None:
    watched = opener.using(TMPDIR=str(tmp_path), HOME=str(tmp_path))
    holder = watched.wrap("sha256:7")
    for _ in range(5):
        assert watched.open(holder).output == KEY

    assert tpm.tool("getcap", "handles-transient") + tpm.tool("getcap", "handles-loaded-session") == ""
    assert [*tmp_path.iterdir()] == []


@each(
    "name",
    ["7", "sha256", "sha256:", "sha256:24", "sha256:7,", "sha1:7", "md5:7", "SHA256:7", "sha256:7:8", "@sha256:7"],
)
def test_a_name_without_pcrs_is_refused(name: str) -> None:
    said = Opener("tpm2").open(Holder("tpm2", name, bytes(60)))

    assert (said.status, "such as sha256:7" in said.sentence) == (BAD_SETTINGS, True)


def test_a_host_without_the_tools_says_so(tmp_path: Path) -> None:
    said = Opener("tpm2", {"PATH": str(tmp_path)}).open(Holder("tpm2", "sha256:7", bytes(4)))

    assert (said.status, "apt-get install tpm2-tools" in said.sentence) == (BAD_SETTINGS, True)
