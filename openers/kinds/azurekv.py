"""An RSA key of Azure Key Vault or a Managed HSM: the right to wrap for who locks the file, to unwrap for the service.

Credentials are found by azure-identity. The two calls are as Microsoft's documentation has them: until somebody ran it
against Azure itself, that is all that vouches for it.

A vault authenticates no data beside what it wraps, so a digest of the file's id is wrapped before the key: what was
wrapped for another file is told apart once it is open.
"""

import hashlib
import hmac
import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import msgspec

from custody.kit.key_head import binding
from openers import asking, deadline
from openers.outcomes import Away, BadSettings, NotOpened, NotOurs, Refused

# The name of the key is an address, and a token is sent there: so it is one of Microsoft's own.
_CLOUDS = "azure.net|azure.cn|usgovcloudapi.net"
_NAME = re.compile(
    rf"https://[A-Za-z0-9-]{{3,63}}\.((?:vault|managedhsm)\.(?:{_CLOUDS}))/keys/[A-Za-z0-9-]{{1,127}}/[A-Za-z0-9]{{1,64}}",
    re.ASCII,
)
_VERSION = "7.4"
_ALGORITHM = "RSA-OAEP-256"
_MARK_BYTES = 8
_ENVIRONMENT = ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH")


class _Said(msgspec.Struct):
    kid: str
    value: str


class _Error(msgspec.Struct):
    code: str = ""


class _Failed(msgspec.Struct):
    error: _Error


def wrap(name: str, file: str, key: bytes) -> tuple[str, bytes]:
    """Have the file's key wrapped, behind a mark of the file."""
    return name, _ask(name, "wrapkey", _mark(file) + key)


def unwrap(name: str, blob: bytes, file: str) -> bytes:
    """Have what was wrapped opened, and see that it is of this file."""
    opened = _ask(name, "unwrapkey", blob)
    if not hmac.compare_digest(opened[:_MARK_BYTES], _mark(file)):
        raise NotOurs("Azure opened something that was wrapped for another file.")
    return opened[_MARK_BYTES:]


def _mark(file: str) -> bytes:
    return hashlib.sha256(binding(file)).digest()[:_MARK_BYTES]


def _ask(name: str, what: str, content: bytes) -> bytes:
    deadline.begin()
    if not (known := _NAME.fullmatch(name)):
        raise BadSettings(
            "A holder of the kind azurekv is named by the identifier of a key with its version: "
            "https://VAULT.vault.azure.net/keys/NAME/VERSION"
        )
    headers = {"authorization": f"Bearer {_token(f'https://{known[1]}/.default')}", "content-type": "application/json"}
    body = msgspec.json.encode({"alg": _ALGORITHM, "value": urlsafe_b64encode(content).decode().rstrip("=")})
    answer = asking.ask(f"{name}/{what}?api-version={_VERSION}", body, headers)
    if answer.status != 200:
        raise _outcome(answer, what)
    said = asking.read(answer, _Said, "Azure Key Vault")
    if said.kid.lower() != name.lower():
        raise NotOurs("Azure Key Vault answered for another key than the one that was asked.")
    if not re.fullmatch("[A-Za-z0-9_-]+", said.value, re.ASCII):
        raise Away("What answers at the address of Azure Key Vault is something else.")
    try:
        return urlsafe_b64decode(said.value + "=" * (-len(said.value) % 4))
    except ValueError:
        raise Away("What answers at the address of Azure Key Vault is something else.") from None


def _token(scope: str) -> str:
    try:
        import azure.identity  # noqa: PLC0415
        from azure.core.exceptions import AzureError, ClientAuthenticationError  # noqa: PLC0415
    except ImportError:
        raise BadSettings("The kind azurekv needs a package: pip install 'custody[opener-azure]'") from None
    try:
        return str(_credential(azure.identity).get_token(scope).token)
    except azure.identity.CredentialUnavailableError:
        raise BadSettings(
            "Azure is not asked, for there are no credentials: an identity of this machine, "
            "or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET."
        ) from None
    except ClientAuthenticationError:
        raise Refused("Azure gives no token for these credentials: see to the application and its secret.") from None
    except AzureError as problem:
        raise Away(f"Azure gives no token now ({type(problem).__name__}).") from None
    except Exception as problem:
        # Files of certificates and of tokens are read there, and raise what they raise. Their words may repeat a line.
        raise BadSettings(f"The credentials for Azure cannot be used ({type(problem).__name__}).") from None


def _credential(identity: Any) -> Any:
    """The one credential that the settings name.

    Their chain of all kinds says "refused" where one of them has no network, and then nobody asks again.
    """
    if os.environ.get("AZURE_TOKEN_CREDENTIALS", "").lower() == "azureclicredential":
        return identity.AzureCliCredential()
    if os.environ.get("AZURE_FEDERATED_TOKEN_FILE"):
        return identity.WorkloadIdentityCredential()
    if any(os.environ.get(name) for name in _ENVIRONMENT):
        return identity.EnvironmentCredential()
    return identity.ManagedIdentityCredential(client_id=os.environ.get("AZURE_CLIENT_ID") or None)


def _outcome(answer: asking.Answer, what: str) -> NotOpened:
    try:
        code = msgspec.json.decode(answer.body, type=_Failed).error.code
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        code = ""
    match answer.status:
        case 400 if what == "unwrapkey" and code == "BadParameter":
            return NotOurs("Azure Key Vault cannot open it: it was wrapped by another key, or was changed.")
        case 400:
            return BadSettings("Azure Key Vault does not take this key: it must be RSA, of 2048 bits or more.")
        case 401 | 403:
            return Refused(f"Azure Key Vault refuses {what}: the role lacks that right, or the key is disabled.")
        case 404:
            return BadSettings("Azure Key Vault has no such key or version: see to its name, or recover the key.")
        case 409:
            return Refused("Azure Key Vault refuses: the key is deleted. Recover it, or open by another holder.")
        case other:
            return Away(f"Azure Key Vault cannot answer now ({other}).")
