"""A fake of the transit engine of Vault and OpenBao, from their documentation: no such server is to be had here.

It encrypts for real, with associated data, and holds tokens to their policies as the real one does.
"""

import os
import re
from base64 import b64decode, b64encode

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.outside.replies import Heard, Reply, json
from tests.outside.web_server import WebServer

_PATH = re.compile(r"/v1/(.+)/(encrypt|decrypt)/([^/]+)")


class Transit(WebServer):
    """A server with keys by `mount/key`, and tokens with the paths that each may update."""

    def __init__(self) -> None:
        super().__init__()
        self.sealed = False
        self.keys: dict[str, list[AESGCM]] = {}
        self.least: dict[str, int] = {}
        self.tokens: dict[str, set[str]] = {}

    def make_key(self, name: str) -> None:
        """Make a key, or its next version."""
        self.keys.setdefault(name, []).append(AESGCM(AESGCM.generate_key(256)))

    def allow(self, token: str, *paths: str) -> None:
        """Let a token update these paths."""
        self.tokens.setdefault(token, set()).update(paths)

    def respond(self, heard: Heard) -> Reply:
        """Answer as the documentation says."""
        if self.sealed:
            return _errors(503, "Vault is sealed")
        if not (said := _PATH.fullmatch(heard.path)):
            return _errors(404, "no handler for route")
        if heard.method != "POST" or heard.headers.get("x-vault-request") != "true":
            return _errors(412, "missing required header")
        mount, what, key = said.groups()
        if f"{mount}/{what}/{key}" not in self.tokens.get(heard.headers.get("x-vault-token", ""), set()):
            return _errors(403, "permission denied")
        if (name := f"{mount}/{key}") not in self.keys:
            return _errors(400, "encryption key not found")
        given = {
            name: b64decode(text) for name, text in msgspec.json.decode(heard.body).items() if name != "ciphertext"
        }
        data = given.get("associated_data", b"")
        if what == "encrypt":
            return self._encrypt(name, given["plaintext"], data)
        return self._decrypt(name, msgspec.json.decode(heard.body)["ciphertext"], data)

    def _encrypt(self, name: str, plaintext: bytes, data: bytes) -> Reply:
        version, nonce = len(self.keys[name]), os.urandom(12)
        wrapped = nonce + self.keys[name][-1].encrypt(nonce, plaintext, data)
        return _data(ciphertext=f"vault:v{version}:{b64encode(wrapped).decode()}", key_version=version)

    def _decrypt(self, name: str, ciphertext: str, data: bytes) -> Reply:
        said = re.fullmatch(r"vault:v([0-9]+):(.*)", ciphertext)
        if not said or not 1 <= int(said[1]) <= len(self.keys[name]):
            return _errors(400, "invalid ciphertext: no prefix")
        if int(said[1]) < self.least.get(name, 1):
            return _errors(400, "ciphertext or signature version is disallowed by policy (too old)")
        try:
            wrapped = b64decode(said[2], validate=True)
            plaintext = self.keys[name][int(said[1]) - 1].decrypt(wrapped[:12], wrapped[12:], data)
        except (InvalidTag, ValueError):
            return _errors(400, "cipher: message authentication failed")
        return _data(plaintext=b64encode(plaintext).decode())


def _data(**given: object) -> Reply:
    return json({"request_id": "0", "lease_id": "", "renewable": False, "lease_duration": 0, "data": given})


def _errors(status: int, *said: str) -> Reply:
    return json({"errors": said}, status)
