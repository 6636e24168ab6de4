"""The opener of `gcpkms` against a fake that answers Google's own client as well."""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from custody.kit.key_head import Holder
from openers.asking import MAX_ANSWER
from openers.kinds import gcpkms
from tests.fixtures.each import each
from tests.openers.far import Far
from tests.outside.elsewhere import Surroundings
from tests.outside.google_kms import (
    HOST,
    KEY_NAME,
    TOKEN,
    TOKENS,
    GoogleKms,
    answer_error,
    answer_plaintext,
    crc32c,
    google,
)
from tests.outside.openers import ANOTHER_FILE, AWAY, BAD_SETTINGS, FILE, KEY, NOT_OURS, REFUSED, change_bit, set_up
from tests.outside.replies import Reply, drip, endless, html, json, redirect, silence, zip_bomb
from tests.outside.web_server import WebServer, serving

OPEN, WRAP = f"/v1/{KEY_NAME}:decrypt", f"/v1/{KEY_NAME}:encrypt"
HOLDER = Holder("gcpkms", KEY_NAME, bytes(60))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GoogleKms, Far]]:
    with (
        google(tmp_path_factory.mktemp("google")) as (server, settings, names),
        Far("gcpkms", set_up(), Surroundings(names), **settings).resident() as opener,
    ):
        yield server, opener


@pytest.fixture
def kms(running: tuple[GoogleKms, Far]) -> GoogleKms:
    server = running[0]
    server.well()
    server.heard.clear()
    server.states.clear()
    server.rights = {"encrypt", "decrypt"}
    server.sent = 0
    return server


@pytest.fixture
def opener(running: tuple[GoogleKms, Far], kms: GoogleKms) -> Far:
    return running[1]


def paths_of(kms: GoogleKms) -> list[str]:
    """The paths that Google's KMS was asked at, tokens apart."""
    return [one.path for one in kms.heard if one.headers["host"].startswith(HOST)]


def test_the_key_of_a_file_comes_back(kms: GoogleKms, opener: Far) -> None:
    holder, opener = opener.wrap(KEY_NAME), opener.using()

    assert holder.name == KEY_NAME
    assert KEY not in holder.blob
    assert opener.open(holder).output == KEY
    assert paths_of(kms) == [WRAP, OPEN]


def test_googles_own_client_opens_and_is_opened(kms: GoogleKms, opener: Far) -> None:
    holder = opener.wrap(KEY_NAME)
    theirs = opener.run_module("tests.outside.google_client", "open", KEY_NAME, FILE, b64encode(holder.blob).decode())
    assert b64decode(theirs.output) == KEY, theirs
    made = opener.run_module("tests.outside.google_client", "wrap", KEY_NAME, FILE, b64encode(KEY).decode())
    assert opener.open(msgspec.structs.replace(holder, blob=b64decode(made.output))).output == KEY

    # What we ask is what it asks, with the checksums that it leaves to its caller.
    bodies = [(one.path, msgspec.json.decode(one.body)) for one in kms.heard if one.path in (OPEN, WRAP)]
    ours, others = [bodies[0], bodies[3]], [bodies[2], bodies[1]]
    for (path, body), (their_path, their_body) in zip(ours, others, strict=True):
        assert path == their_path
        assert set(body) - set(their_body) == {f"{name}Crc32c" for name in their_body}
        assert body["additionalAuthenticatedData"] == their_body["additionalAuthenticatedData"]


def test_a_blob_of_another_file_or_a_changed_one_does_not_open(opener: Far) -> None:
    holder = opener.wrap(KEY_NAME)

    said = [
        opener.open(holder, file=ANOTHER_FILE),
        *(opener.open(change_bit(holder, place)) for place in (0, 20, -1)),
        opener.open(msgspec.structs.replace(holder, blob=b"\0")),
    ]

    assert [(one.status, one.output) for one in said] == [(NOT_OURS, b"")] * 5


@each("state", ["DISABLED", "DESTROY_SCHEDULED", "DESTROYED"])
def test_a_version_that_rests_is_refused_with_its_cure(state: str, kms: GoogleKms, opener: Far) -> None:
    kms.states[KEY_NAME] = state
    said = opener.open(HOLDER)

    assert (said.status, said.output) == (REFUSED, b"")
    assert "disabled or destroyed" in said.sentence


def test_each_right_is_asked_for_by_its_own_act(kms: GoogleKms, opener: Far) -> None:
    holder = opener.wrap(KEY_NAME)
    kms.rights = {"decrypt"}
    assert opener.open(holder).output == KEY
    assert opener.try_to_wrap(KEY_NAME).status == REFUSED
    kms.rights = {"encrypt"}
    assert opener.open(holder).status == REFUSED


@each(
    "code, status, outcome",
    [
        (401, "UNAUTHENTICATED", REFUSED),
        (403, "PERMISSION_DENIED", REFUSED),
        (404, "NOT_FOUND", BAD_SETTINGS),
        (400, "INVALID_ARGUMENT", NOT_OURS),
        (400, "ANOTHER", BAD_SETTINGS),
        (429, "RESOURCE_EXHAUSTED", AWAY),
        (500, "INTERNAL", AWAY),
        (503, "UNAVAILABLE", AWAY),
        (504, "DEADLINE_EXCEEDED", AWAY),
    ],
)
def test_each_error_of_google_has_its_outcome(
    code: int, status: str, outcome: int, kms: GoogleKms, opener: Far
) -> None:
    kms.replies(OPEN, answer_error(code, status))
    said = opener.open(HOLDER)

    assert (said.status, said.output) == (outcome, b"")
    assert "words of a server" not in said.sentence


@each("checksum", [0, crc32c(KEY) ^ 1, 2**32 + crc32c(KEY)])
def test_a_wrong_checksum_of_what_was_opened_is_seen(checksum: int, kms: GoogleKms, opener: Far) -> None:
    kms.replies(OPEN, answer_plaintext(KEY, checksum))
    said = opener.open(HOLDER)
    kms.replies(OPEN, answer_plaintext(KEY))

    assert (said.status, said.output) == (AWAY, b"")
    assert "checksum" in said.sentence
    assert opener.open(HOLDER).output == KEY


@each(
    "changed, outcome",
    [
        ({"verifiedPlaintextCrc32c": False}, AWAY),
        ({"verifiedAdditionalAuthenticatedDataCrc32c": False}, AWAY),
        ({"verifiedPlaintextCrc32c": None}, AWAY),
        ({"ciphertextCrc32c": "0"}, AWAY),
        ({"ciphertextCrc32c": 0}, AWAY),
        ({"ciphertext": "AAAA"}, AWAY),
        ({"ciphertext": "?"}, AWAY),
        ({"name": f"{KEY_NAME}-other/cryptoKeyVersions/1"}, NOT_OURS),
        ({"name": ""}, NOT_OURS),
    ],
)
def test_a_wrap_whose_answer_is_not_whole_fails(
    changed: dict[str, object], outcome: int, kms: GoogleKms, opener: Far
) -> None:
    kms.replies(WRAP, lambda heard: json(msgspec.json.decode(kms.respond(heard).body) | changed))

    assert opener.try_to_wrap(KEY_NAME).status == outcome


def test_a_checksum_is_the_published_one() -> None:
    # The check value of CRC-32C in the catalogues.
    assert gcpkms._checksum(b"123456789") == str(0xE3069283) == str(crc32c(b"123456789"))
    assert gcpkms._checksum(b"") == "0"


ANSWERS: dict[str, Reply] = {
    "an answer without an end": endless(),
    "10 MiB": Reply(200, b" " * 10 * 2**20),
    "a byte too many": json({"plaintext": "A" * MAX_ANSWER, "plaintextCrc32c": "0"}),
    "no JSON": html(),
    "nothing": Reply(200),
    "compressed": zip_bomb(),
    "deep": Reply(200, b"[" * 30_000),
    "no checksum": json({"plaintext": b64encode(KEY).decode()}),
    "no base64": json({"plaintext": "?", "plaintextCrc32c": "0"}),
    "another host": redirect("https://elsewhere.test/", 307),
}


@each("what", list(ANSWERS))
def test_an_answer_that_is_none_opens_nothing(what: str, kms: GoogleKms, opener: Far) -> None:
    kms.heard.clear()
    kms.replies(OPEN, ANSWERS[what])
    said = opener.open(HOLDER)

    assert (said.status, said.output, len(paths_of(kms))) == (AWAY, b"", 1)


@each("content", [b"", KEY[:-1], KEY + b"0"])
def test_an_answer_that_is_no_key_of_a_file_is_not_taken(content: bytes, kms: GoogleKms, opener: Far) -> None:
    kms.replies(OPEN, answer_plaintext(content))

    assert opener.open(HOLDER).status == NOT_OURS


def test_an_answer_without_an_end_ends(kms: GoogleKms, opener: Far) -> None:
    kms.replies(OPEN, silence())
    assert opener.among(asking=0.3).open(HOLDER).status == AWAY
    kms.replies(OPEN, drip())
    assert opener.among(deadline=2).open(HOLDER).status == AWAY


def test_google_that_cannot_be_reached_is_waited_for(opener: Far, running: tuple[GoogleKms, Far]) -> None:
    port = int(running[0].url.rpartition(":")[2])

    said = {
        "no names": opener.among({}).open(HOLDER),
        "tokens, and no KMS": opener.among({TOKENS: port}).open(HOLDER),
        "nobody there": opener.among({TOKENS: port, HOST: 1}).open(HOLDER),
        "a stranger's certificate": opener.using(SSL_CERT_FILE="").open(HOLDER),
    }

    assert {what: one.status for what, one in said.items()} == dict.fromkeys(said, AWAY)


def test_another_certificate_is_refused_in_googles_name(opener: Far) -> None:
    with serving(WebServer()) as plain:
        port = int(plain.url.rpartition(":")[2])
        said = opener.among(dict.fromkeys((HOST, TOKENS), port)).open(HOLDER)

        # It speaks no TLS at all, and hears no question.
        assert (said.status, plain.heard) == (AWAY, [])


def test_an_account_that_google_does_not_know_is_refused(
    opener: Far, running: tuple[GoogleKms, Far], tmp_path: Path
) -> None:
    with google(tmp_path) as (_, settings, _names):
        said = opener.using(GOOGLE_APPLICATION_CREDENTIALS=settings["GOOGLE_APPLICATION_CREDENTIALS"]).open(HOLDER)

    assert (said.status, said.output) == (REFUSED, b"")


def test_the_account_of_a_machine_is_asked_for(opener: Far) -> None:
    with serving(WebServer()) as machine:
        place = "/computeMetadata/v1/instance/service-accounts/default/"
        flavour = {"metadata-flavor": "Google", "content-type": "application/json"}
        told = {"email": "custody@p-1.iam.gserviceaccount.com", "aliases": ["default"], "scopes": []}
        token = {"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"}
        for path, content in (
            ("/", {}),
            ("/computeMetadata/v1/project/project-id", "p-1"),
            ("/computeMetadata/v1/universe/universe-domain", "googleapis.com"),
            (place, told),
            (f"{place}token", token),
        ):
            machine.replies(path, Reply(200, msgspec.json.encode(content), flavour))
        host = machine.url.removeprefix("http://")
        there = {"GCE_METADATA_HOST": host, "GCE_METADATA_IP": host, "NO_GCE_CHECK": ""}
        by_machine = opener.using(GOOGLE_APPLICATION_CREDENTIALS="", **there)
        holder = by_machine.wrap(KEY_NAME)
        assert by_machine.open(holder).output == KEY
        assert f"{place}token" in [one.path for one in machine.heard]

        machine.replies(f"{place}token", Reply(503))
        assert by_machine.open(holder).status == AWAY


@each(
    "content",
    [
        *("", "{}", "no JSON", "[]", '{"type": "authorized_user"}', '{"type": "SECRET"}'),
        '{"type": "external_account", "audience": "a", "subject_token_type": "t", "token_url": "SECRET"}',
        '{"type": "service_account", "private_key": "SECRET"}',
    ],
)
def test_a_file_of_credentials_that_is_none_is_named(content: str, opener: Far, tmp_path: Path) -> None:
    file = tmp_path / "account.json"
    file.write_text(content)
    said = opener.using(GOOGLE_APPLICATION_CREDENTIALS=str(file)).open(HOLDER)

    assert said.status == BAD_SETTINGS, said
    assert "SECRET" not in said.sentence


def test_missing_credentials_or_packages_are_named(opener: Far) -> None:
    gone = opener.using(GOOGLE_APPLICATION_CREDENTIALS="/nowhere/account.json").open(HOLDER)
    none = opener.using(GOOGLE_APPLICATION_CREDENTIALS="").open(HOLDER)
    without = Far("gcpkms").open(HOLDER)

    assert [one.status for one in (gone, none, without)] == [BAD_SETTINGS] * 3
    assert "GOOGLE_APPLICATION_CREDENTIALS" in none.sentence
    assert "custody[opener-gcp]" in without.sentence


@each(
    "name",
    [
        *(
            "file-key",
            f"{KEY_NAME}/cryptoKeyVersions/1",
            KEY_NAME.replace("p-1", "../x"),
            f"/{KEY_NAME}",
            f"{KEY_NAME}?a",
        ),
        *(f"{KEY_NAME}%2f", KEY_NAME.replace("projects", "folders"), f"{KEY_NAME}#", f"{KEY_NAME}@evil.test"),
    ],
)
def test_a_name_leads_to_no_other_path(name: str, kms: GoogleKms, opener: Far) -> None:
    kms.heard.clear()

    assert opener.open(Holder("gcpkms", name, HOLDER.blob)).status == BAD_SETTINGS
    assert kms.heard == []
