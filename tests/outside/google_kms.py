"""A fake of Google's Cloud KMS and of its server of tokens, from their documentation: there is no emulator.

Google's own client is answered by it, too, so what it says is at least what that reads.
"""

import os
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jwt
import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.outside.certificates import Authority
from tests.outside.replies import Heard, Reply, json
from tests.outside.web_server import WebServer, serving

HOST, TOKENS = "cloudkms.googleapis.com", "oauth2.googleapis.com"
KEY_NAME = "projects/p-1/locations/europe-west3/keyRings/custody/cryptoKeys/file-key"
TOKEN = "ya29.token"


def crc32c(content: bytes) -> int:
    """Checksum by the table of CRC-32C, which the opener does without."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _entry(index: int) -> int:
    for _ in range(8):
        index = (index >> 1) ^ (0x82F63B78 * (index & 1))
    return index


_TABLE = [_entry(index) for index in range(256)]


class GoogleKms(WebServer):
    """A server with keys by name, what state each has, and who may do what."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = {KEY_NAME: AESGCM.generate_key(256)}
        self.states: dict[str, str] = {}
        self.rights = {"encrypt", "decrypt"}
        self.account = rsa.generate_private_key(65537, 2048)

    def respond(self, heard: Heard) -> Reply:
        """Answer as the documentation says."""
        if heard.headers["host"].startswith(TOKENS):
            return self._give_token(heard)
        if not self._knows(heard.headers.get("authorization", "").removeprefix("Bearer ")):
            return answer_error(401, "UNAUTHENTICATED")
        name, _, what = heard.path.removeprefix("/v1/").partition(":")
        if what not in self.rights:
            return answer_error(403, "PERMISSION_DENIED")
        if name not in self.keys:
            return answer_error(404, "NOT_FOUND")
        if state := self.states.get(name):
            return answer_error(400, "FAILED_PRECONDITION", f"is not enabled, current state is: {state}.")
        given = msgspec.json.decode(heard.body)
        data = b64decode(given["additionalAuthenticatedData"])
        if given.get("additionalAuthenticatedDataCrc32c", str(crc32c(data))) != str(crc32c(data)):
            return answer_error(400, "INVALID_ARGUMENT", "checksum")
        if what == "encrypt":
            return self._encrypt(name, b64decode(given["plaintext"]), data, given)
        return self._decrypt(name, b64decode(given["ciphertext"]), data, given)

    def _knows(self, token: str) -> bool:
        """Say whether it is a token from here, or one that the account signed itself, as Google's own client does."""
        try:
            return token == TOKEN or bool(
                jwt.decode(token, self.account.public_key(), ["RS256"], audience=f"https://{HOST}/")
            )
        except jwt.InvalidTokenError:
            return False

    def _give_token(self, heard: Heard) -> Reply:
        try:
            claims = jwt.decode(
                heard.form["assertion"], self.account.public_key(), ["RS256"], audience=f"https://{TOKENS}/token"
            )
        except jwt.InvalidTokenError:
            return json({"error": "invalid_grant"}, 400)
        if claims["scope"] != "https://www.googleapis.com/auth/cloudkms":
            return json({"error": "invalid_scope"}, 400)
        return json({"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"})

    def _encrypt(self, name: str, plaintext: bytes, data: bytes, given: dict[str, str]) -> Reply:
        nonce = os.urandom(12)
        ciphertext = nonce + AESGCM(self.keys[name]).encrypt(nonce, plaintext, data)
        return json(
            {
                "name": f"{name}/cryptoKeyVersions/1",
                "ciphertext": b64encode(ciphertext).decode(),
                "ciphertextCrc32c": str(crc32c(ciphertext)),
                "verifiedPlaintextCrc32c": given.get("plaintextCrc32c") == str(crc32c(plaintext)),
                "verifiedAdditionalAuthenticatedDataCrc32c": "additionalAuthenticatedDataCrc32c" in given,
                "protectionLevel": "HSM",
            }
        )

    def _decrypt(self, name: str, ciphertext: bytes, data: bytes, given: dict[str, str]) -> Reply:
        if given.get("ciphertextCrc32c", str(crc32c(ciphertext))) != str(crc32c(ciphertext)):
            return answer_error(400, "INVALID_ARGUMENT", "checksum")
        try:
            plaintext = AESGCM(self.keys[name]).decrypt(ciphertext[:12], ciphertext[12:], data)
        except (InvalidTag, ValueError):
            return answer_error(400, "INVALID_ARGUMENT", "Decryption failed")
        return answer_plaintext(plaintext)


def answer_plaintext(plaintext: bytes, checksum: int | None = None) -> Reply:
    """Answer with what was opened, and its checksum or another one."""
    return json(
        {
            "plaintext": b64encode(plaintext).decode(),
            "plaintextCrc32c": str(crc32c(plaintext) if checksum is None else checksum),
            "usedPrimary": True,
            "protectionLevel": "HSM",
        }
    )


def answer_error(code: int, status: str, said: str = "words of a server") -> Reply:
    """Answer with an error as Google writes it."""
    return json({"error": {"code": code, "message": said, "status": status}}, code)


@contextmanager
def google(folder: Path) -> Iterator[tuple[GoogleKms, dict[str, str], dict[str, int]]]:
    """Run it; with the settings that lead to it, and the names that do."""
    authority = Authority(folder)
    with serving(GoogleKms(), authority, HOST, TOKENS) as server:
        port = int(server.url.rpartition(":")[2])
        pem = server.account.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        account = {
            "type": "service_account",
            "project_id": "p-1",
            "private_key_id": "1",
            "private_key": pem.decode(),
            "client_email": "custody@p-1.iam.gserviceaccount.com",
            "client_id": "1",
            "token_uri": f"https://{TOKENS}/token",
        }
        file = folder / "account.json"
        file.write_bytes(msgspec.json.encode(account))
        trust = {name: str(authority.ca_file) for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")}
        settings = {"GOOGLE_APPLICATION_CREDENTIALS": str(file), "NO_GCE_CHECK": "true", **trust}
        yield server, settings, {HOST: port, TOKENS: port}
