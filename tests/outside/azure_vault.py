"""A fake of Azure Key Vault and of Microsoft's server of tokens, from their documentation: there is no emulator.

Microsoft's own client is answered by it, too, so what it says is at least what that reads.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.outside.certificates import Authority
from tests.outside.replies import Heard, Reply, json
from tests.outside.web_server import WebServer, serving

VAULT, LOGIN = "custody-1.vault.azure.net", "login.microsoftonline.com"
KEY_NAME = f"https://{VAULT}/keys/file-key/0123456789abcdef0123456789abcdef"
TENANT, CLIENT, SECRET, TOKEN = "11111111-1111-4111-8111-111111111111", "22222222", "the~client~secret", "eyJ.token"
_OAEP = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)


class AzureVault(WebServer):
    """A server with keys by their path, what is the matter with each, and what the one application may do."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = {_path(KEY_NAME): rsa.generate_private_key(65537, 2048)}
        self.matters: dict[str, Reply] = {}
        self.rights = {"wrapkey", "unwrapkey"}

    def make_key(self, name: str) -> None:
        """Make a key."""
        self.keys[_path(name)] = rsa.generate_private_key(65537, 2048)

    def respond(self, heard: Heard) -> Reply:
        """Answer as the documentation says."""
        host = heard.headers["host"].partition(":")[0]
        if host == LOGIN:
            return self._give_token(heard)
        if heard.headers.get("authorization") != f"Bearer {TOKEN}":
            challenge = f'Bearer authorization="https://{LOGIN}/{TENANT}", resource="https://vault.azure.net"'
            refused = answer_error(401, "Unauthorized")
            return msgspec.structs.replace(refused, headers={**refused.headers, "www-authenticate": challenge})
        path, _, what = heard.path.rpartition("/")
        if heard.method == "GET":
            # To read a public key is a right of its own, which nobody here has.
            return answer_error(403, "Forbidden")
        if not heard.parameters.get("api-version"):
            return answer_error(400, "BadParameter")
        if what not in self.rights:
            return answer_error(403, "Forbidden")
        if path not in self.keys:
            return answer_error(404, "KeyNotFound")
        if path in self.matters:
            return self.matters[path]
        given = msgspec.json.decode(heard.body)
        if given["alg"] != "RSA-OAEP-256":
            return answer_error(400, "BadParameter")
        value, key = urlsafe_b64decode(given["value"] + "=="), self.keys[path]
        try:
            made = key.public_key().encrypt(value, _OAEP) if what == "wrapkey" else key.decrypt(value, _OAEP)
        except ValueError:
            return answer_error(400, "BadParameter")
        return answer_value(f"https://{host}{path}", made)

    def _give_token(self, heard: Heard) -> Reply:
        if heard.path == "/common/discovery/instance":
            return json(
                {
                    "tenant_discovery_endpoint": f"https://{LOGIN}/{TENANT}/v2.0/.well-known/openid-configuration",
                    "api-version": "1.1",
                    "metadata": [],
                }
            )
        if heard.path.endswith("/.well-known/openid-configuration"):
            base = f"https://{LOGIN}/{TENANT}"
            return json(
                {
                    "token_endpoint": f"{base}/oauth2/v2.0/token",
                    "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
                    "issuer": f"{base}/v2.0",
                }
            )
        given = heard.form
        if (given.get("client_id"), given.get("client_secret")) != (CLIENT, SECRET):
            return json({"error": "invalid_client", "error_description": "words of a server"}, 401)
        if given.get("scope") != "https://vault.azure.net/.default":
            return json({"error": "invalid_scope", "error_description": "words of a server"}, 400)
        return json({"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"})


def _path(name: str) -> str:
    return name.removeprefix(f"https://{VAULT}")


def answer_value(kid: str, value: bytes) -> Reply:
    """Answer with what a key made of something."""
    return json({"kid": kid, "value": urlsafe_b64encode(value).decode().rstrip("=")})


def answer_error(status: int, code: str) -> Reply:
    """Answer with an error as Azure writes it."""
    return json({"error": {"code": code, "message": "words of a server"}}, status)


@contextmanager
def azure(folder: Path) -> Iterator[tuple[AzureVault, dict[str, str], dict[str, int]]]:
    """Run it; with the settings that lead to it, and the names that do."""
    authority = Authority(folder)
    with serving(AzureVault(), authority, VAULT, LOGIN) as server:
        port = int(server.url.rpartition(":")[2])
        trust = {name: str(authority.ca_file) for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")}
        client = {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT, "AZURE_CLIENT_SECRET": SECRET}
        yield server, client | trust, {VAULT: port, LOGIN: port}
