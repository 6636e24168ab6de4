"""A fake of AWS KMS, from its documentation, that refuses as AWS does: moto opens what AWS would not.

Each signature is judged by another program's code, for the region and the service that the key is of.
"""

import os
from base64 import b64decode, b64encode

import msgspec
from awssig import AWSSigV4Verifier, InvalidSignatureError
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.outside.replies import Heard, Reply
from tests.outside.web_server import WebServer

REGION = "eu-central-1"
ACCESS, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


class StrictKms(WebServer):
    """A server with keys by ARN, each in one of AWS' states, and one user with some rights."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[str, bytes] = {}
        self.states: dict[str, str] = {}
        self.rights = {"Encrypt", "Decrypt"}

    def make_key(self, number: int = 1) -> str:
        """Make a key; its ARN."""
        arn = f"arn:aws:kms:{REGION}:123456789012:key/00000000-0000-4000-8000-{number:012}"
        self.keys[arn] = AESGCM.generate_key(256)
        return arn

    def respond(self, heard: Heard) -> Reply:
        """Answer as AWS says that it does."""
        if problem := _judge(heard):
            return _error("InvalidSignatureException", problem)
        what = heard.headers.get("x-amz-target", "").removeprefix("TrentService.")
        given = msgspec.json.decode(heard.body)
        arn = given.get("KeyId", "")
        if what not in self.rights:
            return _error("AccessDeniedException", f"not authorized to perform: kms:{what} on resource: {arn}")
        if arn not in self.keys:
            return _error("NotFoundException", f"Key '{arn}' does not exist")
        match self.states.get(arn):
            case "Disabled":
                return _error("DisabledException", f"{arn} is disabled.")
            case str(state):
                return _error("KMSInvalidStateException", f"{arn} is pending {state}.")
        return getattr(self, f"_{what.lower()}")(arn, given)

    def _encrypt(self, arn: str, given: dict[str, str]) -> Reply:
        nonce = os.urandom(12)
        data = msgspec.json.encode(given["EncryptionContext"], order="sorted")
        wrapped = AESGCM(self.keys[arn]).encrypt(nonce, b64decode(given["Plaintext"]), data)
        blob = len(arn).to_bytes() + arn.encode() + nonce + wrapped
        return _answer({"CiphertextBlob": b64encode(blob).decode(), "KeyId": arn, **_ALGORITHM})

    def _decrypt(self, arn: str, given: dict[str, str]) -> Reply:
        blob = b64decode(given["CiphertextBlob"])
        wrapped = blob[1 + len(arn) :]
        if blob[1 : 1 + blob[0]].decode("latin-1") in self.keys.keys() - {arn}:
            return _error("IncorrectKeyException", "The key ID in the request does not identify a CMK that can do it.")
        data = msgspec.json.encode(given.get("EncryptionContext", {}), order="sorted")
        try:
            plaintext = AESGCM(self.keys[arn]).decrypt(wrapped[:12], wrapped[12:], data)
        except (InvalidTag, ValueError):
            return _error("InvalidCiphertextException", None)
        return _answer({"Plaintext": b64encode(plaintext).decode(), "KeyId": arn, **_ALGORITHM})


_ALGORITHM = {"EncryptionAlgorithm": "SYMMETRIC_DEFAULT"}


def _judge(heard: Heard) -> str:
    try:
        AWSSigV4Verifier(
            request_method=heard.method,
            uri_path=heard.path,
            query_string=heard.query,
            headers={name: [value] for name, value in heard.headers.items()},
            body=heard.body,
            region=REGION,
            service="kms",
            key_mapping=lambda access, *_: SECRET if access == ACCESS else "",
        ).verify()
    except InvalidSignatureError as problem:
        return str(problem)
    return ""


def _answer(said: object, status: int = 200) -> Reply:
    return Reply(status, msgspec.json.encode(said), {"content-type": "application/x-amz-json-1.1"})


def _error(kind: str, said: str | None) -> Reply:
    return _answer({"__type": kind, **({"message": said} if said else {})}, 400)


def answer_error(kind: str, status: int) -> Reply:
    """An error of this kind, with words that nobody should repeat."""
    return _answer({"__type": kind, "message": "words of a server"}, status)
