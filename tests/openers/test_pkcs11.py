"""The opener of `pkcs11`, run against a real token of SoftHSM."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from custody.kit.key_head import Holder
from tests.fixtures.each import each
from tests.outside.hsm import PIN, Hsm
from tests.outside.openers import (
    ANOTHER_FILE,
    AWAY,
    BAD_SETTINGS,
    KEY,
    NOT_OURS,
    REFUSED,
    Opener,
    change_bit,
    set_up,
    with_blob,
)

NAME = "custody/file-key"


@pytest.fixture
def hsm(tmp_path: Path) -> Hsm:
    made = Hsm(tmp_path)
    made.make_token("custody")
    made.make_key("custody", "file-key")
    return made


@pytest.fixture
def opener(hsm: Hsm) -> Opener:
    return Opener("pkcs11", hsm.settings, set_up())


def test_the_key_of_a_file_comes_back(opener: Opener) -> None:
    holder = opener.wrap(NAME)

    assert holder.name == NAME
    assert KEY not in holder.blob
    assert opener.open(holder).output == KEY


def test_two_wraps_differ(opener: Opener) -> None:
    assert opener.wrap(NAME).blob != opener.wrap(NAME).blob


def test_labels_with_blanks_and_slashes_are_written_as_in_addresses(hsm: Hsm, opener: Opener) -> None:
    hsm.make_token("the token / 2")
    hsm.make_key("the token / 2", "key 100%")

    holder = opener.wrap("the%20token%20%2f%202/key%20100%25")

    assert holder.name == "the%20token%20%2F%202/key%20100%25"
    assert opener.open(holder).output == KEY


CHANGES: dict[str, Callable[[Holder], Holder]] = {
    "a bit of the nonce": lambda holder: change_bit(holder, 0),
    "a bit of the key": lambda holder: change_bit(holder, 20),
    "a bit of the tag": lambda holder: change_bit(holder, -1),
    "one byte short": lambda holder: with_blob(holder, holder.blob[:-1]),
    "one byte long": lambda holder: with_blob(holder, holder.blob + b"\0"),
    "one byte alone": lambda holder: with_blob(holder, b"\0"),
    "8192 bytes": lambda holder: with_blob(holder, holder.blob.ljust(8192, b"\0")),
    "another key": lambda holder: Holder(holder.kind, "custody/another", holder.blob),
    "a key that is not there": lambda holder: Holder(holder.kind, "custody/nowhere", holder.blob),
    "another token": lambda holder: Holder(holder.kind, "spare/file-key", holder.blob),
}


def test_a_changed_holder_does_not_open(hsm: Hsm, opener: Opener) -> None:
    hsm.make_key("custody", "another")
    hsm.make_token("spare")
    hsm.make_key("spare", "file-key")
    holder = opener.wrap(NAME)

    said = {what: opener.open(change(holder)) for what, change in CHANGES.items()}

    assert {what: one.status for what, one in said.items()} == dict.fromkeys(CHANGES, NOT_OURS)
    assert {one.output for one in said.values()} == {b""}
    assert opener.open(holder).output == KEY


def test_a_holder_of_another_file_does_not_open(opener: Opener) -> None:
    holder = opener.wrap(NAME, ANOTHER_FILE)

    assert opener.open(holder).status == NOT_OURS
    assert opener.open(holder, file=ANOTHER_FILE).output == KEY


def test_a_token_that_is_not_there_is_waited_for(opener: Opener, hsm: Hsm) -> None:
    holder = opener.wrap(NAME)
    away = opener.open(Holder(holder.kind, "elsewhere/file-key", holder.blob))
    no_configuration = opener.using(SOFTHSM2_CONF="/nowhere").open(holder)

    assert (away.status, no_configuration.status) == (AWAY, AWAY)
    assert "token 'elsewhere' is not there" in away.sentence
    hsm.make_token("elsewhere")
    assert opener.open(Holder(holder.kind, "elsewhere/file-key", holder.blob)).status == NOT_OURS


def test_a_pin_is_tried_once(hsm: Hsm, opener: Opener) -> None:
    holders = opener.wrap(NAME), opener.wrap(NAME, ANOTHER_FILE)
    watched = Opener("pkcs11", hsm.spied, set_up())
    hsm.pin_file.write_text("not-the-pin")

    first = watched.open(*holders)
    assert (first.status, hsm.count_calls("C_Login")) == (REFUSED, 1)
    assert "user PIN count low" in hsm.flags()
    again = watched.open(*holders)
    hsm.pin_file.write_text(PIN)
    with_the_right_one = watched.open(*holders)

    assert (again.status, with_the_right_one.status, hsm.count_calls("C_Login")) == (REFUSED, REFUSED, 1)
    assert "log in with it once by hand" in again.sentence
    hsm.log_in("custody")
    assert watched.open(*holders).output == KEY
    assert hsm.count_calls("C_Login") == 2


def test_a_pin_is_in_no_sentence(hsm: Hsm, opener: Opener) -> None:
    holder = opener.wrap(NAME)
    hsm.pin_file.write_text("938-not-the-pin")

    said = [opener.open(holder), opener.open(holder), opener.try_to_wrap(NAME)]

    assert [one.status for one in said] == [REFUSED] * 3
    assert not [one for one in said if "938" in one.sentence or PIN in one.sentence]


def write(folder: Path, content: bytes, mode: int = 0o600) -> str:
    file = folder / "another-pin"
    file.write_bytes(content)
    file.chmod(mode)
    return str(file)


def lead(folder: Path, make: Callable[[Path], object]) -> str:
    make(folder / "odd")
    return str(folder / "odd")


@each(
    "variable, value, words",
    [
        ("SERVICE_PKCS11_PIN_FILE", lambda _: "", "absolute path"),
        ("SERVICE_PKCS11_PIN_FILE", lambda _: "pin", "absolute path"),
        ("SERVICE_PKCS11_PIN_FILE", lambda _: "/nowhere/pin", "not there"),
        ("SERVICE_PKCS11_PIN_FILE", lambda folder: lead(folder, Path.mkdir), "no file"),
        ("SERVICE_PKCS11_PIN_FILE", lambda folder: lead(folder, os.mkfifo), "no file"),
        ("SERVICE_PKCS11_PIN_FILE", lambda _: "/dev/zero", "no file"),
        ("SERVICE_PKCS11_PIN_FILE", lambda folder: write(folder, PIN.encode(), 0o640), "chmod 0600"),
        ("SERVICE_PKCS11_PIN_FILE", lambda folder: write(folder, PIN.encode(), 0o604), "chmod 0600"),
        ("SERVICE_PKCS11_PIN_FILE", lambda folder: write(folder, b""), "one line"),
        ("SERVICE_PKCS11_PIN_FILE", lambda folder: write(folder, b"\n"), "one line"),
        ("SERVICE_PKCS11_PIN_FILE", lambda folder: write(folder, b"1234\n5678\n"), "one line"),
        ("SERVICE_PKCS11_PIN_FILE", lambda folder: write(folder, b"\xff\xfe"), "one line"),
        ("SERVICE_PKCS11_PIN_FILE", lambda folder: write(folder, b"1" * 257), "256 bytes"),
        ("SERVICE_PKCS11_MODULE", lambda _: "", "absolute path"),
        ("SERVICE_PKCS11_MODULE", lambda _: "libsofthsm2.so", "absolute path"),
        ("SERVICE_PKCS11_MODULE", lambda _: "/nowhere/lib.so", "not there"),
        ("SERVICE_PKCS11_MODULE", lambda folder: write(folder, b"no library"), "cannot be loaded"),
        ("SERVICE_PKCS11_MODULE", lambda folder: write(folder, b"no library", 0o666), "others can change"),
    ],
)
def test_a_setting_that_is_wrong_is_named(
    tmp_path_factory: pytest.TempPathFactory, variable: str, value: Callable[[Path], str], words: str
) -> None:
    folder = tmp_path_factory.mktemp("hsm")
    hsm = Hsm(folder)
    hsm.make_token("custody")
    opener = Opener("pkcs11", hsm.settings, set_up()).using(**{variable: value(folder)})

    said = opener.open(Holder("pkcs11", NAME, bytes(60)))

    assert (said.status, words in said.sentence, variable in said.sentence) == (BAD_SETTINGS, True, True), said
    # No wrong PIN was tried meanwhile.
    assert "count low" not in hsm.flags()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_root_locks_with_the_pin_of_the_user_who_opens(hsm: Hsm, opener: Opener) -> None:
    os.chown(hsm.pin_file, 65534, 65534)

    assert opener.open(opener.wrap(NAME)).output == KEY


@each("name", ["custody", "custody/", "/file-key", "custody/file-key/2", "%"])
def test_a_name_that_names_no_key_is_refused(name: str) -> None:
    said = Opener("pkcs11", python=set_up()).open(Holder("pkcs11", name, bytes(60)))

    assert said.status == BAD_SETTINGS
    assert "TOKEN/KEY" in said.sentence


def test_a_key_that_can_be_copied_holds_nothing(hsm: Hsm, opener: Opener) -> None:
    hsm.make_key("custody", "copied", "--extractable")
    hsm.make_key("custody", "short", bits=128)

    assert "could leave its token" in opener.try_to_wrap("custody/copied").sentence
    assert "has 128 bits" in opener.try_to_wrap("custody/short").sentence
    assert opener.try_to_wrap("custody/copied").status == BAD_SETTINGS


def test_two_keys_of_one_label_are_refused(hsm: Hsm, opener: Opener) -> None:
    holder = opener.wrap(NAME)
    hsm.make_key("custody", "file-key")

    said = opener.open(holder)

    assert (said.status, "has 2 AES keys" in said.sentence) == (BAD_SETTINGS, True)


# The first of the functions of a module, and nothing else, as one that asks an HSM by a network that is silent.
SILENT_MODULE = """
#include <unistd.h>
static unsigned long initialize(void *given) { sleep(1000); return 5; }
static unsigned long other(void) { return 0x54; }
static struct { unsigned char major, minor; void *functions[68]; } list = {2, 40};
unsigned long C_GetFunctionList(void **found) {
  for (int at = 0; at < 68; at++) list.functions[at] = (void *)(at ? (void *)other : (void *)initialize);
  *found = &list;
  return 0;
}
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler to build a module with")
def test_a_module_that_does_not_answer_is_away(hsm: Hsm, opener: Opener, tmp_path: Path) -> None:
    (tmp_path / "silent.c").write_text(SILENT_MODULE)
    library = str(tmp_path / "silent.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "silent.c"], check=True, timeout=60)

    said = opener.using(SERVICE_PKCS11_MODULE=library).open(Holder("pkcs11", NAME, bytes(60)))

    assert (said.status, "did not end in time" in said.sentence) == (AWAY, True)


def test_a_python_without_the_library_says_so() -> None:
    said = Opener("pkcs11").open(Holder("pkcs11", NAME, bytes(60)))

    assert (said.status, "needs a package that has pkcs11" in said.sentence) == (BAD_SETTINGS, True)
