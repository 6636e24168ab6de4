"""The opener of `transit` against a fake of Vault's transit engine, made from its documentation."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from custody.kit.key_head import Holder
from openers.asking import MAX_ANSWER
from tests.fixtures.each import each
from tests.openers.far import Far
from tests.outside.certificates import Authority
from tests.outside.openers import ANOTHER_FILE, AWAY, BAD_SETTINGS, KEY, NOT_OURS, REFUSED, change_bit
from tests.outside.replies import Reply, drip, endless, html, json, redirect, silence, zip_bomb
from tests.outside.transit_server import Transit
from tests.outside.web_server import WebServer, serving

NAME = "transit/custody"
OPEN = "/v1/transit/decrypt/custody"
HOLDER = Holder("transit", NAME, b"vault:v1:AAAA")
TOKEN, LOCKS = "hvs.opens-0123456789", "hvs.locks-0123456789"


@pytest.fixture
def vault() -> Iterator[Transit]:
    with serving(Transit()) as made:
        furnish(made)
        yield made


@pytest.fixture(scope="module")
def ill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WebServer, Far]]:
    """A server that answers what a test says, and an opener that stays."""
    folder = tmp_path_factory.mktemp("ill")
    with serving(WebServer()) as server, at(server.url, folder).resident() as opener:
        yield server, opener


def furnish(vault: Transit) -> None:
    vault.make_key(NAME)
    vault.allow(TOKEN, "transit/decrypt/custody")
    vault.allow(LOCKS, "transit/decrypt/custody", "transit/encrypt/custody")


def write(folder: Path, token: str) -> str:
    file = folder / token[:9]
    file.write_text(f"{token}\n")
    file.chmod(0o600)
    return str(file)


@pytest.fixture
def locker(vault: Transit, tmp_path: Path) -> Far:
    return Far("transit", SERVICE_TRANSIT_URL=vault.url, SERVICE_TRANSIT_TOKEN_FILE=write(tmp_path, LOCKS))


@pytest.fixture
def opener(locker: Far, tmp_path: Path) -> Far:
    return locker.using(SERVICE_TRANSIT_TOKEN_FILE=write(tmp_path, TOKEN))


def test_the_key_of_a_file_comes_back(locker: Far, opener: Far, vault: Transit) -> None:
    holder = locker.wrap(NAME)

    assert holder.name == NAME
    assert holder.blob.startswith(b"vault:v1:")
    assert opener.open(holder).output == KEY
    assert [one.path for one in vault.heard] == ["/v1/transit/encrypt/custody", OPEN]


def test_a_mount_may_have_several_parts_and_an_address_a_path(vault: Transit, locker: Far) -> None:
    vault.make_key("team/a/transit/k")
    vault.allow(LOCKS, "team/a/transit/encrypt/k", "team/a/transit/decrypt/k")

    holder = locker.wrap("team/a/transit/k")
    behind = locker.using(SERVICE_TRANSIT_URL=f"{vault.url}/vault/").open(holder)

    assert (behind.status, vault.heard[-1].path) == (BAD_SETTINGS, "/vault/v1/team/a/transit/decrypt/k")
    assert locker.open(holder).output == KEY


def test_a_blob_of_an_older_version_of_the_key_still_opens(vault: Transit, locker: Far, opener: Far) -> None:
    holder = locker.wrap(NAME)
    vault.make_key(NAME)

    assert locker.wrap(NAME).blob.startswith(b"vault:v2:")
    assert opener.open(holder).output == KEY
    vault.least[NAME] = 2
    refused = opener.open(holder)
    assert refused.status == NOT_OURS
    assert "min_decryption_version" in refused.sentence


def test_a_holder_of_another_file_does_not_open(locker: Far, opener: Far) -> None:
    holder = locker.wrap(NAME, ANOTHER_FILE)

    assert opener.open(holder).status == NOT_OURS
    assert opener.open(holder, file=ANOTHER_FILE).output == KEY


CHANGES: dict[str, Callable[[Holder], bytes]] = {
    "a bit of the key": lambda one: change_bit(one, -20).blob,
    "one byte short": lambda one: one.blob[:-1],
    "another version": lambda one: one.blob.replace(b":v1:", b":v2:"),
    "no version": lambda one: one.blob.replace(b":v1:", b":"),
    "no bytes of it": lambda one: b"\0",
    "a byte beyond ASCII": lambda one: one.blob + b"\xff",
    "8192 bytes": lambda one: one.blob.ljust(8192, b"A"),
    "a line more": lambda one: one.blob + b"\n",
    "more of a body": lambda one: b'vault:v1:","associated_data":"',
}


def test_a_changed_blob_does_not_open(locker: Far, opener: Far) -> None:
    holder = locker.wrap(NAME)

    said = {what: opener.open(Holder(holder.kind, NAME, change(holder))) for what, change in CHANGES.items()}

    assert {what: one.status for what, one in said.items()} == dict.fromkeys(CHANGES, NOT_OURS)
    assert {one.output for one in said.values()} == {b""}
    assert opener.open(holder).output == KEY


def test_a_key_of_another_name_does_not_open_it(vault: Transit, locker: Far) -> None:
    vault.make_key("transit/another")
    vault.allow(LOCKS, "transit/decrypt/another", "transit/decrypt/nowhere")
    holder = locker.wrap(NAME)

    said = [locker.open(Holder("transit", name, holder.blob)) for name in ("transit/another", "transit/nowhere")]

    assert [one.status for one in said] == [NOT_OURS] * 2


def test_a_token_does_what_its_policy_says_and_no_more(locker: Far, opener: Far, tmp_path: Path) -> None:
    holder = locker.wrap(NAME)
    ended = opener.using(SERVICE_TRANSIT_TOKEN_FILE=write(tmp_path, "hvs.ended"))

    said = [opener.try_to_wrap(NAME), ended.open(holder)]

    assert [one.status for one in said] == [REFUSED] * 2
    assert not [one for one in said if "hvs." in one.sentence]


def test_a_sealed_vault_is_waited_for(vault: Transit, locker: Far, opener: Far) -> None:
    holder = locker.wrap(NAME)
    vault.sealed = True
    away = opener.open(holder)
    vault.sealed = False

    assert away.status == AWAY
    assert "unseal" in away.sentence
    assert opener.open(holder).output == KEY


@each(
    "status, outcome",
    [
        *((status, AWAY) for status in (204, 412, 429, 472, 473, 500, 502, 503)),
        *((400, NOT_OURS), (403, REFUSED), (404, BAD_SETTINGS)),
    ],
)
def test_each_status_has_its_outcome(status: int, outcome: int, ill: tuple[WebServer, Far]) -> None:
    server, opener = ill
    server.replies(OPEN, json({"errors": ["words of a server"]}, status))
    said = opener.open(HOLDER)

    assert (said.status, said.output) == (outcome, b"")
    assert "words of a server" not in said.sentence


def at(url: str, folder: Path, **settings: str) -> Far:
    given = {"SERVICE_TRANSIT_URL": url, "SERVICE_TRANSIT_TOKEN_FILE": write(folder, TOKEN)}
    return Far("transit", **given | settings)


ANSWERS: dict[str, Reply] = {
    "an answer without an end": endless(),
    "10 MiB": Reply(200, b" " * 10 * 2**20),
    "a byte too many": json({"data": {"plaintext": "A" * MAX_ANSWER}}),
    "no JSON": html(),
    "nothing": Reply(200),
    "compressed": zip_bomb(),
    "deep": Reply(200, b"[" * 30_000),
    "no UTF-8": Reply(200, b'{"data":{"plaintext":"\xff"}}'),
    "no data": json({}),
    "a number": json({"data": {"plaintext": 1}}),
    "another host": redirect("https://elsewhere.test/v1/transit/decrypt/custody", 307),
    "a redirect that changes the question": redirect("https://elsewhere.test/", 302),
}


@each("what", list(ANSWERS))
def test_an_answer_that_is_none_opens_nothing(what: str, ill: tuple[WebServer, Far]) -> None:
    server, opener = ill
    server.heard.clear()
    server.sent = 0
    server.replies(OPEN, ANSWERS[what])
    said = opener.open(HOLDER)

    assert (said.status, said.output, len(server.heard)) == (AWAY, b"", 1)
    assert server.sent < 64 * 2**20


@each("plaintext", ["", "AAAA", "?", "A" * 44, "A" * 10_000])
def test_an_answer_that_is_no_key_of_a_file_is_not_taken(plaintext: str, ill: tuple[WebServer, Far]) -> None:
    server, opener = ill
    server.replies(OPEN, json({"data": {"plaintext": plaintext}}))
    assert opener.open(HOLDER).status == NOT_OURS
    server.replies(OPEN, json({"data": {"plaintext": "A" * 43 + "="}}))
    assert opener.open(HOLDER).output == bytes(32)


def test_a_redirect_is_not_followed_with_the_token(vault: Transit, tmp_path: Path) -> None:
    with serving(WebServer()) as other:
        other.replies(OPEN, redirect(f"{vault.url}{OPEN}", 307))
        said = at(other.url, tmp_path).open(HOLDER)

    assert (said.status, vault.heard) == (AWAY, [])
    assert "another address" in said.sentence


def test_silence_ends_as_one_that_is_away(tmp_path: Path) -> None:
    with serving(WebServer()) as other:
        other.replies(OPEN, silence())
        said = at(other.url, tmp_path).among(asking=0.3).open(HOLDER)

    assert said.status == AWAY
    assert "too long" in said.sentence


def test_an_answer_that_drips_ends_with_the_programs_time(tmp_path: Path) -> None:
    with serving(WebServer()) as other:
        other.replies(OPEN, drip())
        said = at(other.url, tmp_path).among(deadline=0.5).open(HOLDER)

    assert (said.status, said.output) == (AWAY, b"")
    assert "did not end in time" in said.sentence


def test_a_holder_beside_one_that_is_away_is_asked(vault: Transit, locker: Far, opener: Far) -> None:
    vault.make_key("busy/k")
    vault.allow(LOCKS, "busy/encrypt/k")
    busy, well = locker.wrap("busy/k"), locker.wrap(NAME)
    vault.replies("/v1/busy/decrypt/k", json({"errors": []}, 500))

    assert opener.open(busy, well).output == KEY
    assert opener.open(busy).status == AWAY


def test_https_is_spoken_to_whom_the_file_of_certificates_vouches_for(tmp_path: Path) -> None:
    (tmp_path / "stranger").mkdir()
    authority, stranger = Authority(tmp_path), Authority(tmp_path / "stranger")
    with serving(Transit(), authority) as vault:
        furnish(vault)
        good = at(vault.url, tmp_path, SERVICE_TRANSIT_CA_FILE=str(authority.ca_file))
        good = good.using(SERVICE_TRANSIT_TOKEN_FILE=write(tmp_path, LOCKS))
        holder = good.wrap(NAME)
        opened = good.open(holder)
        port = int(vault.url.rpartition(":")[2])
        refused = [
            good.using(SERVICE_TRANSIT_CA_FILE="").open(holder),
            good.using(SERVICE_TRANSIT_CA_FILE=str(stranger.ca_file)).open(holder),
            good.using(SERVICE_TRANSIT_URL="https://vault.test").among({"vault.test": port}).open(holder),
        ]

    assert opened.output == KEY
    assert [one.status for one in refused] == [AWAY] * 3
    assert all("certificate is refused" in one.sentence for one in refused)


@each(
    "settings, words",
    [
        ({"SERVICE_TRANSIT_URL": ""}, "SERVICE_TRANSIT_URL"),
        ({"SERVICE_TRANSIT_URL": "http://vault.test:8200"}, "https"),
        ({"SERVICE_TRANSIT_URL": "http://10.1.2.3:8200"}, "https"),
        ({"SERVICE_TRANSIT_URL": "http://127.0.0.1.vault.test"}, "https"),
        ({"SERVICE_TRANSIT_URL": "ftp://127.0.0.1"}, "https"),
        ({"SERVICE_TRANSIT_URL": "vault.test:8200"}, "address"),
        ({"SERVICE_TRANSIT_URL": "https://root:secret@127.0.0.1"}, "without a user"),
        ({"SERVICE_TRANSIT_URL": "https://127.0.0.1:99999"}, "address"),
        ({"SERVICE_TRANSIT_URL": "https://127.0.0.1/?a=b"}, "SERVICE_TRANSIT_URL"),
        ({"SERVICE_TRANSIT_URL": "https://127.0.0.1/\nX: y"}, "address"),
        ({"SERVICE_TRANSIT_URL": "https://v\N{LATIN SMALL LETTER A WITH DIAERESIS}ult.test"}, "address"),
        ({"SERVICE_TRANSIT_TOKEN_FILE": ""}, "SERVICE_TRANSIT_TOKEN_FILE"),
        ({"SERVICE_TRANSIT_TOKEN_FILE": "/nowhere/token"}, "No such file"),
        ({"SERVICE_TRANSIT_TOKEN_FILE": "/proc"}, "is no file"),
        ({"SERVICE_TRANSIT_TOKEN_FILE": "/dev/zero"}, "is no file"),
        ({"SERVICE_TRANSIT_TOKEN_FILE": "token"}, "absolute path"),
        ({"SERVICE_TRANSIT_URL": "https://127.0.0.1:1", "SERVICE_TRANSIT_CA_FILE": "/nowhere/ca.pem"}, "/nowhere/ca"),
        ({"SERVICE_TRANSIT_URL": "https://127.0.0.1:1", "SERVICE_TRANSIT_CA_FILE": __file__}, "cannot be read"),
    ],
)
def test_a_wrong_setting_is_named_with_its_cure(settings: dict[str, str], words: str, tmp_path: Path) -> None:
    said = at("http://127.0.0.1:1", tmp_path, **settings).open(HOLDER)

    assert (said.status, said.output) == (BAD_SETTINGS, b"")
    assert words in said.sentence
    assert "secret" not in said.sentence


@each("mode", [0o640, 0o604, 0o620, 0o644, 0o700 | 0o001])
def test_a_token_that_others_may_read_is_not_used(mode: int, tmp_path: Path) -> None:
    with serving(Transit()) as vault:
        opener = at(vault.url, tmp_path)
        (tmp_path / TOKEN[:9]).chmod(mode)
        said = opener.open(HOLDER)

        assert (said.status, vault.heard) == (BAD_SETTINGS, [])
        assert "chmod 0600" in said.sentence
        (tmp_path / TOKEN[:9]).chmod(0o600)
        assert opener.open(HOLDER).status == REFUSED


@each("content", [b"", b"\n", b"a b", b"one\ntwo\n", b"t\r\nX-Injected: 1", b"t\xff", b"t" * 4097, b"t\n" * 9999])
def test_a_file_that_holds_no_token_is_not_used(content: bytes, tmp_path: Path) -> None:
    with serving(Transit()) as vault:
        opener = at(vault.url, tmp_path)
        (tmp_path / TOKEN[:9]).write_bytes(content)

        assert (opener.open(HOLDER).status, vault.heard) == (BAD_SETTINGS, [])


def test_a_token_in_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)

    said = at("http://127.0.0.1:1", tmp_path, SERVICE_TRANSIT_TOKEN_FILE=str(tmp_path / "pipe")).open(HOLDER)

    assert (said.status, said.output) == (BAD_SETTINGS, b"")


@each("name", ["custody", "/transit/k", "transit//k", "transit/../sys/k", "transit/k?x", "transit/.", "t/k%2f", "t/k#"])
def test_a_name_leads_to_no_other_path(name: str, tmp_path: Path) -> None:
    with serving(Transit()) as vault:
        said = at(vault.url, tmp_path).open(Holder("transit", name, HOLDER.blob))

        assert (said.status, vault.heard) == (BAD_SETTINGS, [])


def test_the_fake_holds_to_what_it_is_told(vault: Transit, locker: Far) -> None:
    holder = locker.wrap(NAME)
    asked = msgspec.json.decode(vault.heard[0].body)

    assert set(asked) == {"plaintext", "associated_data"}
    assert vault.heard[0].headers["x-vault-token"] == LOCKS
    vault.tokens.clear()
    assert locker.open(holder).status == REFUSED
