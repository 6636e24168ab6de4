"""The opener of `azurekv` against a fake that answers Microsoft's own client as well."""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterator

import msgspec
import pytest

from custody.kit.key_head import Holder, binding
from openers.asking import MAX_ANSWER
from tests.fixtures.each import each
from tests.openers.far import Far
from tests.outside.azure_vault import (
    CLIENT,
    KEY_NAME,
    LOGIN,
    SECRET,
    TOKEN,
    VAULT,
    AzureVault,
    answer_error,
    answer_value,
    azure,
)
from tests.outside.elsewhere import Surroundings
from tests.outside.openers import ANOTHER_FILE, AWAY, BAD_SETTINGS, FILE, KEY, NOT_OURS, REFUSED, change_bit, set_up
from tests.outside.replies import Reply, drip, endless, html, json, redirect, silence, zip_bomb
from tests.outside.web_server import WebServer, serving

PATH = KEY_NAME.removeprefix(f"https://{VAULT}")
OPEN, WRAP = f"{PATH}/unwrapkey", f"{PATH}/wrapkey"
HOLDER = Holder("azurekv", KEY_NAME, bytes(256))
MARK = hashlib.sha256(binding(FILE)).digest()[:8]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[AzureVault, Far]]:
    with (
        azure(tmp_path_factory.mktemp("azure")) as (server, settings, names),
        Far("azurekv", set_up(), Surroundings(names), **settings).resident() as opener,
    ):
        yield server, opener


@pytest.fixture
def vault(running: tuple[AzureVault, Far]) -> AzureVault:
    server = running[0]
    server.well()
    server.heard.clear()
    server.matters.clear()
    server.rights = {"wrapkey", "unwrapkey"}
    return server


@pytest.fixture
def opener(running: tuple[AzureVault, Far], vault: AzureVault) -> Far:
    return running[1]


def paths_of(vault: AzureVault) -> list[str]:
    """The paths that the vault was asked at, tokens apart."""
    return [one.path for one in vault.heard if one.headers["host"].startswith(VAULT)]


def test_the_key_of_a_file_comes_back(vault: AzureVault, opener: Far) -> None:
    holder, opener = opener.wrap(KEY_NAME), opener.using()

    assert (holder.name, len(holder.blob)) == (KEY_NAME, 256)
    assert opener.open(holder).output == KEY
    assert paths_of(vault) == [WRAP, OPEN]


def test_microsofts_own_client_opens_and_is_opened(vault: AzureVault, opener: Far) -> None:
    holder = opener.wrap(KEY_NAME)
    theirs = opener.run_module("tests.outside.azure_client", "open", KEY_NAME, b64encode(holder.blob).decode())
    assert b64decode(theirs.output) == MARK + KEY, theirs
    made = opener.run_module("tests.outside.azure_client", "wrap", KEY_NAME, b64encode(MARK + KEY).decode())
    assert opener.open(msgspec.structs.replace(holder, blob=b64decode(made.output))).output == KEY

    asked = {path: [one for one in vault.heard if one.path == path and one.body] for path in (OPEN, WRAP)}
    for ours, others in ((asked[WRAP][0], asked[WRAP][-1]), (asked[OPEN][-1], asked[OPEN][0])):
        body, their_body = msgspec.json.decode(ours.body), msgspec.json.decode(others.body)
        assert {name: body[name] for name in ("alg",)} == {name: their_body[name] for name in ("alg",)}
        assert set(body) == set(their_body)
        assert [len(one["value"]) for one in (body, their_body)] == [len(body["value"])] * 2


def test_a_blob_of_another_file_or_a_changed_one_does_not_open(opener: Far) -> None:
    holder = opener.wrap(KEY_NAME)

    said = [
        opener.open(holder, file=ANOTHER_FILE),
        *(opener.open(change_bit(holder, place)) for place in (3, -1)),
        opener.open(msgspec.structs.replace(holder, blob=b"\0")),
    ]

    assert [(one.status, one.output) for one in said] == [(NOT_OURS, b"")] * 4
    assert "another file" in said[0].sentence


def test_a_key_of_another_name_does_not_open_it(vault: AzureVault, opener: Far) -> None:
    holder, another = opener.wrap(KEY_NAME), KEY_NAME.replace("file-key", "another")
    vault.make_key(another)

    assert opener.open(msgspec.structs.replace(holder, name=another)).status == NOT_OURS
    assert opener.open(msgspec.structs.replace(holder, name=f"{KEY_NAME}0")).status == BAD_SETTINGS


def test_each_right_is_asked_for_by_its_own_act(vault: AzureVault, opener: Far) -> None:
    holder = opener.wrap(KEY_NAME)
    vault.rights = {"unwrapkey"}
    assert opener.open(holder).output == KEY
    assert opener.try_to_wrap(KEY_NAME).status == REFUSED
    vault.rights = {"wrapkey"}
    assert opener.open(holder).status == REFUSED


@each(
    "status, code, outcome",
    [
        (400, "BadParameter", NOT_OURS),
        (400, "KeyOperationNotAllowed", BAD_SETTINGS),
        (401, "Unauthorized", REFUSED),
        (403, "Forbidden", REFUSED),
        (404, "KeyNotFound", BAD_SETTINGS),
        (409, "Conflict", REFUSED),
        (429, "Throttled", AWAY),
        (500, "InternalServerError", AWAY),
        (503, "ServiceUnavailable", AWAY),
    ],
)
def test_each_error_of_azure_has_its_outcome(
    status: int, code: str, outcome: int, vault: AzureVault, opener: Far
) -> None:
    vault.matters[PATH] = answer_error(status, code)
    said = opener.open(HOLDER)

    assert (said.status, said.output) == (outcome, b"")
    assert "words of a server" not in said.sentence


ANSWERS: dict[str, tuple[Reply, int]] = {
    "an answer without an end": (endless(), AWAY),
    "10 MiB": (Reply(200, b" " * 10 * 2**20), AWAY),
    "a byte too many": (json({"kid": KEY_NAME, "value": "A" * MAX_ANSWER}), AWAY),
    "no JSON": (html(), AWAY),
    "nothing": (Reply(200), AWAY),
    "compressed": (zip_bomb(), AWAY),
    "no value": (json({"kid": KEY_NAME}), AWAY),
    "no base64": (json({"kid": KEY_NAME, "value": "?"}), AWAY),
    "a letter of base64": (json({"kid": KEY_NAME, "value": "A"}), AWAY),
    "another host": (redirect("https://elsewhere.test/", 307), AWAY),
    "another key": (answer_value(f"{KEY_NAME}0", MARK + KEY), NOT_OURS),
    "a key without the mark": (answer_value(KEY_NAME, KEY), NOT_OURS),
    "a wrong mark": (answer_value(KEY_NAME, bytes(8) + KEY), NOT_OURS),
    "31 bytes": (answer_value(KEY_NAME, MARK + KEY[:-1]), NOT_OURS),
    "33 bytes": (answer_value(KEY_NAME, MARK + KEY + b"0"), NOT_OURS),
    "the mark alone": (answer_value(KEY_NAME, MARK), NOT_OURS),
}


@each("what", list(ANSWERS))
def test_an_answer_that_is_none_opens_nothing(what: str, vault: AzureVault, opener: Far) -> None:
    answer, outcome = ANSWERS[what]
    vault.heard.clear()
    vault.replies(OPEN, answer)
    said = opener.open(HOLDER)

    assert (said.status, said.output, len(paths_of(vault))) == (outcome, b"", 1)
    vault.replies(OPEN, answer_value(KEY_NAME.upper().replace("HTTPS", "https"), MARK + KEY))
    assert what != "31 bytes" or opener.open(HOLDER).output == KEY


def test_an_answer_without_an_end_ends(vault: AzureVault, opener: Far) -> None:
    vault.replies(OPEN, silence())
    assert opener.among(asking=0.3).open(HOLDER).status == AWAY
    vault.replies(OPEN, drip())
    assert opener.among(deadline=2).open(HOLDER).status == AWAY


def test_azure_that_cannot_be_reached_is_waited_for(opener: Far, running: tuple[AzureVault, Far]) -> None:
    port = int(running[0].url.rpartition(":")[2])

    said = {
        "tokens, and no vault": opener.among({LOGIN: port}).open(HOLDER),
        "nobody there": opener.among({LOGIN: port, VAULT: 1}).open(HOLDER),
        "a stranger's certificate": opener.using(SSL_CERT_FILE="").open(HOLDER),
        # Its library tries for longer than we let it.
        "no names": opener.among({}, deadline=2).open(HOLDER),
    }

    assert {what: one.status for what, one in said.items()} == dict.fromkeys(said, AWAY)


def test_a_secret_that_azure_does_not_know_is_refused(vault: AzureVault, opener: Far) -> None:
    said = opener.using(AZURE_CLIENT_SECRET="another~secret").open(HOLDER)

    assert (said.status, paths_of(vault)) == (REFUSED, [])
    assert "another~secret" not in said.sentence


def test_the_identity_of_a_machine_is_asked_for(opener: Far) -> None:
    with serving(WebServer()) as machine:
        place = "/metadata/identity/oauth2/token"
        token = {"access_token": TOKEN, "expires_in": "3599", "resource": "https://vault.azure.net"}
        machine.replies(place, json({**token, "token_type": "Bearer"}))
        by_machine = opener.using(AZURE_CLIENT_SECRET="", AZURE_POD_IDENTITY_AUTHORITY_HOST=machine.url)

        holder = by_machine.wrap(KEY_NAME)
        assert by_machine.open(holder).output == KEY
        asked = machine.heard[-1]
        assert (asked.headers["metadata"], asked.parameters["resource"]) == ("true", "https://vault.azure.net")
        assert CLIENT in asked.query

        machine.replies(place, Reply(503))
        assert by_machine.among(deadline=2).open(holder).status == AWAY


@each(
    "settings",
    [
        {"AZURE_FEDERATED_TOKEN_FILE": "/nowhere/token"},
        {"AZURE_CLIENT_SECRET": "", "AZURE_CLIENT_CERTIFICATE_PATH": "/nowhere/certificate.pem"},
        {"AZURE_CLIENT_SECRET": "", "AZURE_CLIENT_CERTIFICATE_PATH": __file__},
        {"AZURE_AUTHORITY_HOST": "http://login.microsoftonline.com"},
        {"AZURE_TENANT_ID": "no tenant/"},
    ],
)
def test_a_credential_that_cannot_be_used_is_told_without_its_words(settings: dict[str, str], opener: Far) -> None:
    said = opener.using(**settings).open(HOLDER)

    assert (said.status, said.output) == (BAD_SETTINGS, b""), said
    assert "Traceback" not in said.sentence
    assert "certificate.pem" not in said.sentence


def test_missing_credentials_or_packages_are_named(opener: Far) -> None:
    half = opener.using(AZURE_TENANT_ID="").open(HOLDER)
    without = Far("azurekv").open(HOLDER)

    assert (half.status, without.status) == (BAD_SETTINGS, BAD_SETTINGS)
    assert "AZURE_TENANT_ID" in half.sentence
    assert SECRET not in half.sentence
    assert "custody[opener-azure]" in without.sentence


@each(
    "name",
    [
        *(f"https://evil.test/keys/k/{'0' * 32}", KEY_NAME.replace(VAULT, f"{VAULT}.evil.test"), "file-key"),
        *(KEY_NAME.replace("https", "http"), KEY_NAME.replace(VAULT, f"x@{VAULT}"), KEY_NAME.rpartition("/")[0]),
        *(
            KEY_NAME.replace(VAULT, f"evil.test/{VAULT}"),
            KEY_NAME.replace("keys", "secrets"),
            f"{KEY_NAME}?x",
            f"{KEY_NAME}/",
        ),
        *(
            KEY_NAME.replace(VAULT, f"evil.test#.{VAULT}"),
            KEY_NAME.replace(".net", ".net:8443"),
            KEY_NAME.replace("a", "%61"),
        ),
    ],
)
def test_a_token_goes_to_a_host_of_azure_alone(name: str, vault: AzureVault, opener: Far) -> None:
    port = int(vault.url.rpartition(":")[2])
    vault.heard.clear()
    said = opener.among(dict.fromkeys((LOGIN, VAULT, "evil.test", f"{VAULT}.evil.test"), port)).open(
        Holder("azurekv", name, HOLDER.blob)
    )

    assert said.status == BAD_SETTINGS
    assert [one for one in vault.heard if TOKEN in str(one.headers)] == []
