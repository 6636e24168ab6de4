"""The opener of `awskms` against moto, and against a strict fake for all that moto lets pass."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from botocore.config import Config
from botocore.session import Session

from custody.kit.key_head import Holder
from openers.asking import MAX_ANSWER
from tests.fixtures.each import each
from tests.openers.far import Far
from tests.outside.certificates import Authority
from tests.outside.moto_server import running_moto
from tests.outside.openers import ANOTHER_FILE, AWAY, BAD_SETTINGS, FILE, KEY, NOT_OURS, REFUSED, change_bit, set_up
from tests.outside.processes import PROJECT
from tests.outside.replies import Reply, drip, endless, html, json, redirect, silence, zip_bomb
from tests.outside.strict_kms import ACCESS, REGION, SECRET, StrictKms, answer_error
from tests.outside.web_server import WebServer, serving

CREDENTIALS = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true"}
ARN = f"arn:aws:kms:{REGION}:123456789012:key/00000000-0000-4000-8000-000000000001"
HOLDER = Holder("awskms", ARN, bytes(170))


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with running_moto(set_up()) as url:
        yield url


@pytest.fixture
def kms() -> Iterator[StrictKms]:
    with serving(StrictKms()) as made:
        made.make_key()
        yield made


def at(url: str, **settings: str) -> Far:
    return Far("awskms", **CREDENTIALS | {"AWS_ENDPOINT_URL_KMS": url} | settings)


@pytest.fixture(scope="module")
def ill() -> Iterator[tuple[WebServer, Far]]:
    """A server that answers what a test says, and an opener that stays."""
    with serving(WebServer()) as server, at(server.url).resident() as opener:
        yield server, opener


def client(url: str) -> object:
    made = Session()
    made.set_credentials(ACCESS, SECRET)
    return made.create_client("kms", REGION, endpoint_url=url, config=Config(retries={"total_max_attempts": 1}))


class TestAgainstMoto:
    """Another implementation encrypts and opens."""

    def test_the_key_of_a_file_comes_back(self, moto: str) -> None:
        arn = client(moto).create_key()["KeyMetadata"]["Arn"]
        holder = at(moto).wrap(arn)

        assert holder.name == arn
        assert KEY not in holder.blob
        assert at(moto).open(holder).output == KEY
        # A person with the right reads it with AWS' own client, and the context that the page names.
        read = client(moto).decrypt(
            KeyId=arn, CiphertextBlob=holder.blob, EncryptionContext={"custody": "file-key/1", "file": FILE}
        )
        assert read["Plaintext"] == KEY

    def test_a_blob_of_another_file_or_key_or_a_changed_one_does_not_open(self, moto: str) -> None:
        arn, another = (client(moto).create_key()["KeyMetadata"]["Arn"] for _ in range(2))
        holder = at(moto).wrap(arn)

        said = {
            "another file": at(moto).open(holder, file=ANOTHER_FILE),
            "another key": at(moto).open(msgspec.structs.replace(holder, name=another)),
            "a bit": at(moto).open(change_bit(holder, -1)),
            "half": at(moto).open(msgspec.structs.replace(holder, blob=holder.blob[:60])),
        }

        # AWS itself says of another key what the strict fake says.
        outcomes = dict.fromkeys(said, NOT_OURS) | {"another key": REFUSED}
        assert {what: one.status for what, one in said.items()} == outcomes
        assert {one.output for one in said.values()} == {b""}

    def test_a_blob_of_an_older_version_of_the_key_still_opens(self, moto: str) -> None:
        arn = client(moto).create_key()["KeyMetadata"]["Arn"]
        holder = at(moto).wrap(arn)
        client(moto).rotate_key_on_demand(KeyId=arn)

        assert at(moto).open(holder).output == KEY

    def test_a_key_that_is_not_there_is_refused(self, moto: str) -> None:
        said = at(moto).open(HOLDER)

        assert (said.status, said.output) == (REFUSED, b"")
        assert "another holder" in said.sentence


def test_a_request_is_signed_and_binds_the_file(kms: StrictKms) -> None:
    holder = at(kms.url).wrap(ARN)

    assert at(kms.url).open(holder).output == KEY
    wrapped, opened = (msgspec.json.decode(one.body) for one in kms.heard)
    assert wrapped["EncryptionContext"] == opened["EncryptionContext"] == {"custody": "file-key/1", "file": FILE}
    assert wrapped["KeyId"] == opened["KeyId"] == ARN
    # The control: the fake judges each signature.
    assert at(kms.url, AWS_SECRET_ACCESS_KEY="another").open(holder).status == REFUSED


def test_a_holder_of_another_file_or_key_does_not_open(kms: StrictKms) -> None:
    holder, another = at(kms.url).wrap(ARN), kms.make_key(2)

    said = [
        at(kms.url).open(holder, file=ANOTHER_FILE),
        at(kms.url).open(msgspec.structs.replace(holder, name=another)),
        *(at(kms.url).open(change_bit(holder, place)) for place in (-1, -17, -50)),
    ]

    assert [one.status for one in said] == [NOT_OURS] * 5


@each("state, words", [("Disabled", "enable the key"), ("deletion", "cancel the deletion"), ("import", "KMSInvalid")])
def test_a_key_that_rests_is_refused_with_its_cure(state: str, words: str) -> None:
    with serving(StrictKms()) as kms:
        kms.make_key()
        holder = at(kms.url).wrap(ARN)
        kms.states[ARN] = state
        said = at(kms.url).open(holder)

        assert (said.status, said.output) == (REFUSED, b"")
        assert words in said.sentence
        kms.states.clear()
        assert at(kms.url).open(holder).output == KEY


def test_each_right_is_asked_for_by_its_own_act(kms: StrictKms) -> None:
    holder = at(kms.url).wrap(ARN)
    kms.rights = {"Decrypt"}
    assert at(kms.url).open(holder).output == KEY
    locks = at(kms.url).try_to_wrap(ARN)
    kms.rights = {"Encrypt"}
    opens = at(kms.url).open(holder)

    assert [locks.status, opens.status] == [REFUSED] * 2
    assert "kms:Encrypt" in locks.sentence
    assert "kms:Decrypt" in opens.sentence


OUTCOMES = {
    **dict.fromkeys(
        [
            *("ThrottlingException", "LimitExceededException", "DependencyTimeoutException", "KMSInternalException"),
            *("KeyUnavailableException", "RequestTimeout"),
        ],
        AWAY,
    ),
    **dict.fromkeys(
        [
            *("AccessDeniedException", "DisabledException", "KMSInvalidStateException", "NotFoundException"),
            *("UnrecognizedClientException", "ExpiredTokenException", "InvalidSignatureException", "GrantException"),
        ],
        REFUSED,
    ),
    **dict.fromkeys(["InvalidCiphertextException", "IncorrectKeyException"], NOT_OURS),
    **dict.fromkeys(["ValidationException", "InvalidKeyUsageException"], BAD_SETTINGS),
}


@each("code, outcome", list(OUTCOMES.items()))
def test_each_error_of_aws_has_its_outcome(code: str, outcome: int, ill: tuple[WebServer, Far]) -> None:
    server, opener = ill
    server.heard.clear()
    server.replies("/", answer_error(code, 400))
    said = opener.open(HOLDER)

    assert (said.status, said.output, len(server.heard)) == (outcome, b"", 1)
    assert "words of a server" not in said.sentence


@each("status", [429, 500, 503])
def test_a_server_that_is_ill_is_waited_for(status: int, ill: tuple[WebServer, Far]) -> None:
    server, opener = ill
    for content in (answer_error("AccessDeniedException", status), html(status=status)):
        server.replies("/", content)
        assert opener.open(HOLDER).status == AWAY


ANSWERS: dict[str, tuple[Reply, int]] = {
    "an answer without an end": (endless(), AWAY),
    "10 MiB": (Reply(200, b" " * 10 * 2**20), AWAY),
    "a byte too many": (json({"Plaintext": "A" * MAX_ANSWER, "KeyId": ARN}), AWAY),
    "no JSON": (html(), AWAY),
    "compressed": (zip_bomb(), AWAY),
    "another host": (redirect("https://elsewhere.test/", 307), AWAY),
    "an error that is a page": (html(status=404), AWAY),
    "an error of another length": (Reply(400, b"{}"), AWAY),
    "no key": (json({"KeyId": ARN}), AWAY),
    "nothing": (json({}), AWAY),
    "a list": (json([]), AWAY),
    "another key": (json({"KeyId": ARN + "0", "Plaintext": "A" * 43 + "="}), NOT_OURS),
    "31 bytes": (json({"KeyId": ARN, "Plaintext": "A" * 42 + "=="}), NOT_OURS),
    "33 bytes": (json({"KeyId": ARN, "Plaintext": "A" * 44}), NOT_OURS),
    "no bytes": (json({"KeyId": ARN, "Plaintext": ""}), NOT_OURS),
    "42 letters": (json({"KeyId": ARN, "Plaintext": "A" * 42}), AWAY),
    "no base64": (json({"KeyId": ARN, "Plaintext": "?"}), AWAY),
    "a number": (json({"KeyId": ARN, "Plaintext": 1}), AWAY),
}


@each("what", list(ANSWERS))
def test_an_answer_that_is_none_opens_nothing(what: str, ill: tuple[WebServer, Far]) -> None:
    (server, opener), (answer, outcome) = ill, ANSWERS[what]
    server.heard.clear()
    server.replies("/", answer)
    said = opener.open(HOLDER)

    assert (said.status, said.output, len(server.heard)) == (outcome, b"", 1)
    server.replies("/", json({"KeyId": ARN, "Plaintext": "A" * 43 + "="}))
    assert opener.open(HOLDER).output == bytes(32)


def test_a_wrapped_key_of_another_key_is_not_taken() -> None:
    with serving(WebServer()) as other:
        other.replies("/", json({"KeyId": ARN[:-1] + "2", "CiphertextBlob": "AAAA"}))

        assert at(other.url).try_to_wrap(ARN).status == NOT_OURS


@each("what, bounds", [("silence", {"asking": 0.3}), ("drip", {"deadline": 2})])
def test_an_answer_without_an_end_ends(what: str, bounds: dict[str, float]) -> None:
    with serving(WebServer()) as other:
        other.replies("/", {"silence": silence, "drip": drip}[what]())

        assert at(other.url).among(**bounds).open(HOLDER).status == AWAY


def test_an_endpoint_that_nobody_listens_at_is_waited_for() -> None:
    for url in ("http://127.0.0.1:1", "https://nowhere.test"):
        assert at(url).open(HOLDER).status == AWAY
    # Where none is named it is the region's, of the ARN.
    assert "kms.eu-central-1.amazonaws.com" in at("", AWS_REGION="us-east-1").open(HOLDER).sentence


def test_https_is_spoken_to_whom_the_bundle_vouches_for(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    host = f"kms.{REGION}.amazonaws.com"
    with serving(StrictKms(), authority, host) as kms:
        kms.make_key()
        port = int(kms.url.rpartition(":")[2])
        there = at("").among({host: port})
        holder = there.using(AWS_CA_BUNDLE=str(authority.ca_file)).wrap(ARN)
        strangers = there.open(holder)

    assert len(holder.blob) > len(KEY)
    assert strangers.status == AWAY
    assert "certificate is refused" in strangers.sentence


def test_credentials_are_found_as_aws_finds_them(kms: StrictKms, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = x\naws_secret_access_key = y\n"
        f"[custody]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n"
    )
    settings = {"AWS_ENDPOINT_URL_KMS": kms.url, "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials")}
    by_file = Far("awskms", **settings)

    assert by_file.using(AWS_PROFILE="custody").wrap(ARN).name == ARN
    assert by_file.try_to_wrap(ARN).status == REFUSED
    assert by_file.using(AWS_PROFILE="nobody").try_to_wrap(ARN).status == BAD_SETTINGS


def test_the_role_of_a_machine_is_asked_for(kms: StrictKms) -> None:
    with serving(WebServer()) as machine:
        role = "/latest/meta-data/iam/security-credentials/"
        given = {"AccessKeyId": ACCESS, "SecretAccessKey": SECRET, "Token": "t", "Expiration": "2999-01-01T00:00:00Z"}
        machine.replies("/latest/api/token", Reply(200, b"session"), "PUT")
        machine.replies(role, Reply(200, b"custody"))
        machine.replies(f"{role}custody", json({"Code": "Success", "Type": "AWS-HMAC", **given}))
        settings = {"AWS_ENDPOINT_URL_KMS": kms.url, "AWS_EC2_METADATA_SERVICE_ENDPOINT": machine.url}

        assert Far("awskms", **settings).wrap(ARN).name == ARN
        assert machine.heard[-1].headers["x-aws-ec2-metadata-token"] == "session"


def test_a_role_is_had_for_a_token_of_the_web(kms: StrictKms, moto: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a.web.token")
    settings = {
        "AWS_ENDPOINT_URL_KMS": kms.url,
        "AWS_ENDPOINT_URL_STS": moto,
        "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/custody",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
        "AWS_REGION": REGION,
    }
    said = Far("awskms", **settings).try_to_wrap(ARN)
    away = Far("awskms", **settings | {"AWS_ENDPOINT_URL_STS": "http://127.0.0.1:1"}).try_to_wrap(ARN)
    gone = Far("awskms", **settings | {"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere/token"}).try_to_wrap(ARN)

    # The fake knows the one user alone: it was asked with the key of the role, and refuses that.
    assert (said.status, "x-amz-security-token" in kms.heard[-1].headers, len(kms.heard)) == (REFUSED, True, 1)
    assert (away.status, gone.status) == (AWAY, BAD_SETTINGS)


def test_credentials_of_a_container_are_asked_for(kms: StrictKms) -> None:
    with serving(WebServer()) as container:
        given = {"AccessKeyId": ACCESS, "SecretAccessKey": SECRET, "Token": "t", "Expiration": "2999-01-01T00:00:00Z"}
        container.replies("/role", json(given))
        settings = {"AWS_ENDPOINT_URL_KMS": kms.url, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{container.url}/role"}

        assert Far("awskms", **settings).wrap(ARN).name == ARN
        assert kms.heard[-1].headers["x-amz-security-token"] == "t"


@each(
    "settings, words",
    [
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "no credentials"),
        ({"AWS_PROFILE": "nobody"}, "AWS_PROFILE"),
        ({"AWS_SECRET_ACCESS_KEY": ""}, "one half"),
        ({"AWS_ENDPOINT_URL_KMS": "http://10.1.2.3:4566"}, "https alone"),
        ({"AWS_ENDPOINT_URL_KMS": "http://kms.test"}, "https alone"),
        ({"AWS_ENDPOINT_URL_KMS": "kms.test"}, "setting"),
        ({"AWS_CONFIG_FILE": __file__}, "setting"),
        ({"AWS_CA_BUNDLE": "/nowhere/ca.pem", "AWS_ENDPOINT_URL_KMS": "https://localhost:1"}, "/nowhere/ca.pem"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, str], words: str) -> None:
    said = at("http://127.0.0.1:1", **settings).open(HOLDER)

    assert (said.status, said.output) == (BAD_SETTINGS, b""), said
    assert words in said.sentence
    assert SECRET not in said.sentence


def test_the_policies_of_the_page_give_the_rights_that_are_asked_for() -> None:
    page = (PROJECT / "docs/master-key/awskms.md").read_text()
    given = [msgspec.json.decode(text)["Statement"][0] for text in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]

    assert [one["Action"] for one in given] == ["kms:Decrypt", ["kms:Encrypt", "kms:Decrypt"]]
    assert {one["Resource"] for one in given} == {ARN}
    assert {str(one["Condition"]) for one in given} == {
        "{'StringEquals': {'kms:EncryptionContext:custody': 'file-key/1'}}"
    }


@each(
    "name",
    [
        *("alias/custody", "00000000-0000-4000-8000-000000000001", f"arn:aws:kms:{REGION}:123456789012:alias/custody"),
        *(ARN.replace(":kms:", ":s3:"), ARN.replace("123456789012", "1"), ARN + "/x", ARN.upper(), "arn:aws:kms"),
        *(ARN.replace(REGION, "evil.test/"), ARN.replace(REGION, "x@evil.test"), ARN.replace(REGION, "")),
    ],
)
def test_a_name_that_is_no_arn_of_a_key_is_asked_about_nowhere(name: str, ill: tuple[WebServer, Far]) -> None:
    server, opener = ill
    server.heard.clear()
    said = opener.open(Holder("awskms", name, HOLDER.blob))

    assert (said.status, server.heard) == (BAD_SETTINGS, [])
    assert "arn:aws:kms:REGION" in said.sentence


def test_a_second_region_is_asked_where_the_first_is_away(kms: StrictKms) -> None:
    holder = at(kms.url).wrap(ARN)
    away = Holder("awskms", ARN.replace(REGION, "eu-west-1"), holder.blob)

    # The fake is of one region: it refuses what was signed for another.
    assert at(kms.url).open(away).status == REFUSED
    assert at(kms.url).open(away, holder).output == KEY
