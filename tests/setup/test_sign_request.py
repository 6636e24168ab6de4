"""`custody sign-request`: its headers pass the check of the service, and its errors name the cure."""

import json
import os
import shlex
import stat
import subprocess
from base64 import b64decode
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, SECP384R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_public_key,
    load_pem_private_key,
)

from custody.identity.request_signature import canonical, check_times, parse_header, verify
from custody.kit import clock
from ops.main import main
from tests.outside.processes import PROJECT

CUSTODY = PROJECT / ".venv/bin/custody"
VECTORS = msgspec.json.decode((PROJECT / "tests/vectors/request_signature.json").read_bytes())
ONE, TWO, QUORUM = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "123")
BODY = b'{"to":"0x00","note":"it\'s"}\n'
PATH = "/vault/shop/sign?dry=1&x=%20y"


def run(folder: Path, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The program, in a folder of its own and with no setting of the service."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    command = [CUSTODY, "sign-request", *words]
    return subprocess.run(command, cwd=folder, env=environment, input=given, capture_output=True, check=False)


def private(file: Path, content: bytes) -> Path:
    file.touch(0o600)
    file.write_bytes(content)
    return file


def pem(key, password=None) -> bytes:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


@pytest.fixture
def keys(tmp_path):
    """Two keys as openssl writes them, a secret, a body: by the names of their files."""
    for name in ("one.pem", "two.pem"):
        private(tmp_path / name, pem(generate_private_key(SECP256R1())))
    private(tmp_path / "secret", b"secret-of-a-signer\n")
    (tmp_path / "body.json").write_bytes(BODY)
    return tmp_path


def public(file: Path):
    return load_pem_private_key(file.read_bytes(), None).public_key()


def heads(output: bytes) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in output.decode().splitlines())


def text_of(found: dict[str, str], method="POST", path=PATH, body=BODY) -> bytes:
    """The text as the service builds it from a request with these headers."""
    times = found["X-Service-Request-Timestamp"], found.get("X-Service-Request-Expires-At")
    check_times(*times, clock.now())
    return canonical(method, path, "acme", *times, found["Idempotency-Key"], body)


def test_a_request_signed_with_a_key_passes_the_check_of_the_service(keys):
    ended = run(keys, "POST", f"http://127.0.0.1:3200{PATH}", "--tenant", "acme", "--signer", ONE, "--key", "one.pem",
                "--body", "body.json")  # fmt: skip

    assert (ended.returncode, ended.stderr) == (0, b"")
    found = heads(ended.stdout)
    assert found["X-Service-Signer-Id"] == ONE
    signature = parse_header(found["X-Service-Signature"])
    assert verify(signature, public(keys / "one.pem"), text_of(found))
    assert not verify(signature, public(keys / "one.pem"), text_of(found, path="/vault/shop/sign"))
    assert not verify(signature, public(keys / "two.pem"), text_of(found))


def test_a_secret_signs_as_the_vectors_say(tmp_path):
    vector = VECTORS["requests"][0]
    private(tmp_path / "secret", VECTORS["secret"].encode() + b"\n")

    ended = run(tmp_path, vector["method"], vector["pathWithQuery"], "--tenant", vector["tenant"], "--signer", ONE,
                "--secret-file", "secret", "--body", "-", "--timestamp", vector["timestamp"],
                "-H", f"x-service-request-expires-at: {vector['expiresAt']}",
                "-H", f"Idempotency-Key: {vector['idempotencyKey']}", given=vector["body"].encode())  # fmt: skip

    assert heads(ended.stdout) == {
        "Idempotency-Key": vector["idempotencyKey"],
        "X-Service-Request-Timestamp": vector["timestamp"],
        "X-Service-Request-Expires-At": vector["expiresAt"],
        "X-Service-Signer-Id": ONE,
        "X-Service-Signature": vector["v1"],
    }


def test_a_quorum_has_a_signature_of_each_signer_in_json(keys):
    ended = run(keys, "put", PATH, "--tenant", "acme", "--quorum", QUORUM, "--signer", f"{ONE}=one.pem",
                "--signer", f"{TWO}=secret", "--output", "json")  # fmt: skip

    found = json.loads(ended.stdout)
    text = text_of(found, "PUT", body=b"")
    first, second = json.loads(found["X-Service-Key-Quorum-Signatures"])
    assert found["X-Service-Key-Quorum-Id"] == QUORUM
    assert (first["signerId"], second["signerId"]) == (ONE, TWO)
    assert verify(parse_header(first["signature"]), public(keys / "one.pem"), text)
    assert verify(parse_header(second["signature"]), b"secret-of-a-signer", text)
    assert not {"X-Service-Signer-Id", "X-Service-Signature"} & set(found)


@pytest.mark.parametrize(("from_file", "sent"), [(True, "@body.json"), (False, BODY.decode())])
def test_a_curl_command_sends_the_bytes_that_were_signed_and_no_secret(keys, from_file, sent):
    ended = run(keys, "POST", f"http://h:1{PATH}", "--tenant", "acme", "--signer", ONE, "--secret-file", "secret",
                "--body", "body.json" if from_file else "-", "--output", "curl", given=BODY)  # fmt: skip

    words = shlex.split(ended.stdout.decode())
    found = dict(word.split(": ", 1) for word in words if ": " in word and not word.startswith("{"))
    assert words[:4] == ["curl", "-X", "POST", f"http://h:1{PATH}"]
    assert words[words.index("--data-binary") + 1] == sent
    assert found["Authorization"] == "Bearer $SERVICE_AGENT_TOKEN"
    assert verify(parse_header(found["X-Service-Signature"]), b"secret-of-a-signer", text_of(found))
    assert b"secret-of-a-signer" not in ended.stdout


def test_a_new_key_is_private_and_what_is_printed_registers_it(tmp_path):
    ended = run(tmp_path, "new-key", "signer.pem")

    assert ended.returncode == 0
    assert stat.S_IMODE((tmp_path / "signer.pem").stat().st_mode) == 0o600
    spki = b64decode(ended.stdout.strip(), validate=True)
    assert len(spki) == 91
    assert load_der_public_key(spki) == public(tmp_path / "signer.pem")
    assert b"PRIVATE" not in ended.stdout + ended.stderr


def test_a_new_key_overwrites_nothing_and_follows_no_link(tmp_path):
    (tmp_path / "signer.pem").write_text("precious")
    (tmp_path / "link.pem").symlink_to(tmp_path / "elsewhere.pem")

    for name in ("signer.pem", "link.pem"):
        ended = run(tmp_path, "new-key", name)
        assert ended.returncode == 2
        assert f"{name} exists and is not overwritten; choose another name" in ended.stderr.decode()
    assert (tmp_path / "signer.pem").read_text() == "precious"
    assert not (tmp_path / "elsewhere.pem").exists()


def test_each_key_and_each_idempotency_key_is_another(keys, capsys):
    made = []
    for _ in range(2):
        assert main(["sign-request", "POST", "/a", "--tenant", "acme", "--signer", f"{ONE}={keys / 'secret'}"]) == 0
        made.append(heads(capsys.readouterr().out.encode())["Idempotency-Key"])

    assert made[0] != made[1]


GOOD = ["POST", "/a", "--tenant", "acme"]
KEY = ["--signer", ONE, "--key", "one.pem"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["POST", "/a", *KEY], "name the tenant with --tenant ID"),
        (["POST", "/a", "--tenant", "a\nb", *KEY], "name the tenant with --tenant ID"),
        (["GET", "/a", "--tenant", "acme", *KEY], "the method is one of POST, PUT, PATCH, DELETE"),
        (["POST", "a", "--tenant", "acme", *KEY], "write http://HOST/path or /path"),
        (["POST", "http://host", "--tenant", "acme", *KEY], "write http://HOST/path or /path"),
        (["POST", "/a b", "--tenant", "acme", *KEY], "percent-encoded"),
        (["POST", "/ä", "--tenant", "acme", *KEY], "percent-encoded"),
        (["POST", "/a\n", "--tenant", "acme", *KEY], "percent-encoded"),
        (["POST", "/a#b", "--tenant", "acme", *KEY], "write it as %23"),
        (["POST", "/a/../b", "--tenant", "acme", *KEY], "without `.` and `..`"),
        (GOOD, "name the signer with --signer ID"),
        ([*GOOD, "--signer", ONE], "--key FILE or --secret-file FILE"),
        ([*GOOD, "--signer", "shop", "--key", "one.pem"], "GET /agents/<agent>/signers lists them"),
        ([*GOOD, "--signer", f"{ONE}=one.pem", "--signer", f"{TWO}=two.pem"], "name it with --quorum ID"),
        ([*GOOD, "--quorum", "q", "--signer", f"{ONE}=one.pem"], "GET /agents/<agent>/key-quorums lists them"),
        ([*GOOD, "--quorum", QUORUM, "--signer", ONE], "--signer ID=FILE for each"),
        ([*GOOD, "--quorum", QUORUM, *["--signer", f"{ONE}=one.pem"] * 2], "is there twice"),
        ([*GOOD, "--quorum", QUORUM, *["--signer", f"{ONE}=one.pem"] * 33], "at most 32 signers"),
        ([*GOOD, "--signer", f"{ONE}=one.pem", "--key", "one.pem"], "leave out --key and --secret-file"),
        ([*GOOD, "--signer", ONE, "--key", "gone.pem"], "cannot read gone.pem: No such file or directory"),
        ([*GOOD, "--signer", ONE, "--key", "open.pem"], "chmod 0600 open.pem"),
        ([*GOOD, "--signer", ONE, "--key", "secret"], "make one with `custody sign-request new-key FILE`"),
        ([*GOOD, "--signer", ONE, "--key", "p384.pem"], "signers have P-256 keys"),
        ([*GOOD, "--signer", ONE, "--key", "locked.pem"], "`openssl pkey -in FILE -out OTHER` writes it without"),
        ([*GOOD, "--signer", ONE, "--secret-file", "one.pem"], "name it with --key"),
        ([*GOOD, "--signer", ONE, "--secret-file", "empty"], "write the signer's `credentialSecret` into it"),
        ([*GOOD, "--signer", ONE, "--secret-file", "large"], "too large for a key"),
        ([*GOOD, *KEY, "--body", "gone.json"], "cannot read gone.json: No such file or directory"),
        ([*GOOD, *KEY, "--idempotency-key", "short"], "8 to 255 printable ASCII characters"),
        ([*GOOD, *KEY, "--timestamp", "noon"], "write Unix seconds, milliseconds, or ISO 8601 with a zone"),
        ([*GOOD, *KEY, "--expires-at", "2026-01-01T00:00:00"], "write Unix seconds, milliseconds, or ISO 8601"),
        ([*GOOD, *KEY, "--header", "Idempotency-Key"], "--header takes 'Name: value'"),
        ([*GOOD, *KEY, *["-H", "Idempotency-Key: 12345678"] * 2], "is there twice; send it once"),
        ([*GOOD, *KEY, "--timestamp", "1", "-H", "X-Service-Request-Timestamp: 2"], "give one of them"),
        (["new-key", "no/such/folder"], "cannot write no/such/folder: No such file or directory"),
    ],
)
def test_an_error_signs_nothing_and_names_the_cure(keys, monkeypatch, capsys, words, said):
    monkeypatch.chdir(keys)
    (keys / "open.pem").write_bytes((keys / "one.pem").read_bytes())
    (keys / "open.pem").chmod(0o640)
    private(keys / "p384.pem", pem(generate_private_key(SECP384R1())))
    private(keys / "locked.pem", pem(generate_private_key(SECP256R1()), b"word"))
    private(keys / "empty", b"\n")
    private(keys / "large", b"x" * 20_000)

    assert main(["sign-request", *words]) == 2

    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert shown.err.startswith("custody sign-request: ")
    assert shown.err.count("\n") == 1


def test_a_file_that_is_no_key_is_not_shown(keys, monkeypatch, capsys):
    monkeypatch.chdir(keys)

    main(["sign-request", *GOOD, "--signer", ONE, "--key", "secret"])

    assert "secret-of-a-signer" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["ecparam", "-name", "prime256v1", "-genkey"],
        ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    ],
)
def test_keys_that_openssl_makes_are_read(tmp_path, arguments, capsys):
    made = subprocess.run(["openssl", *arguments], capture_output=True, check=True).stdout
    file = private(tmp_path / "key.pem", made)

    assert main(["sign-request", *GOOD, "--signer", f"{ONE}={file}"]) == 0

    found = heads(capsys.readouterr().out.encode())
    spki = subprocess.run(
        ["openssl", "pkey", "-pubout", "-outform", "DER"], input=made, capture_output=True, check=True
    )
    key = load_der_public_key(spki.stdout)
    assert verify(parse_header(found["X-Service-Signature"]), key, text_of(found, path="/a", body=b""))
