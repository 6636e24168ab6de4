"""People with wallets who sign in with Ethereum (EIP-4361): quick ones, and the libraries that real sites use."""

import os
import shutil
import subprocess
from datetime import UTC, datetime
from typing import Any, Self

import msgspec
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.judges import npm
from tests.outside.processes import die_with


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class SignIn(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields of a sign-in message, beside its address; times are RFC 3339."""

    domain: str
    uri: str
    nonce: str
    version: str = "1"
    chain_id: int = 1
    issued_at: str = msgspec.field(default_factory=_now)
    scheme: str | None = None
    statement: str | None = None
    expiration_time: str | None = None
    not_before: str | None = None
    request_id: str | None = None
    resources: tuple[str, ...] | None = None

    def text(self, address: str) -> str:
        """The message of that address, written by hand."""
        host = f"{self.scheme}://{self.domain}" if self.scheme else self.domain
        optional = {
            "Expiration Time": self.expiration_time,
            "Not Before": self.not_before,
            "Request ID": self.request_id,
        }
        lines = [
            f"{host} wants you to sign in with your Ethereum account:",
            address,
            "",
            *([] if self.statement is None else [self.statement]),
            "",
            f"URI: {self.uri}",
            f"Version: {self.version}",
            f"Chain ID: {self.chain_id}",
            f"Nonce: {self.nonce}",
            f"Issued At: {self.issued_at}",
            *(f"{name}: {value}" for name, value in optional.items() if value),
            *([] if self.resources is None else ["Resources:", *(f"- {resource}" for resource in self.resources)]),
        ]
        return "\n".join(lines)


class SignedIn(msgspec.Struct, frozen=True):
    """A message and its signature, as a browser posts them."""

    address: str
    message: str
    signature: str


class Refused(Exception):
    """The library would not make, read or accept the message; its own words."""


class Wallet:
    """A person without a browser: signs whatever text it is given."""

    def __init__(self, key: bytes | None = None) -> None:
        self._account = Account.from_key(key) if key else Account.create()
        self.address: str = self._account.address

    @property
    def key(self) -> str:
        """Its private key in hex."""
        return str(self._account.key.to_0x_hex())

    def sign_in(self, says: SignIn) -> SignedIn:
        """The message of this wallet, signed."""
        text = says.text(self.address)
        return SignedIn(self.address, text, self.sign(text))

    def sign(self, text: str) -> str:
        """An EIP-191 signature of any text."""
        return str(self._account.sign_message(encode_defunct(text=text)).signature.to_0x_hex())


class NodeWallet:
    """Wallets of ethers whose messages `siwe` makes and judges; one Node process for as long as this is open."""

    def __enter__(self) -> Self:
        npm.install()
        node = shutil.which("node")
        assert node
        self._process = subprocess.Popen(
            [node, "wallet.mjs"],
            cwd=npm.JUDGES,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
        )
        return self

    def __exit__(self, *_: object) -> None:
        # The end of its input is the end of it.
        self._process.communicate(timeout=60)

    def sign_in(self, says: SignIn, key: str | None = None) -> SignedIn:
        """The message of the wallet with this key, or of a new one, signed; Refused where siwe finds it malformed."""
        fields = {name: value for name, value in msgspec.to_builtins(says).items() if value is not None}
        return msgspec.convert(self._ask(kind="sign", fields=fields, key=key), SignedIn)

    def verify(self, message: str, signature: str, **expected: str) -> str:
        """The address that signed; Refused unless domain, nonce and time, where given, are as expected."""
        return str(self._ask(kind="verify", message=message, signature=signature, expected=expected)["address"])

    def _ask(self, **order: Any) -> dict[str, Any]:
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        self._process.stdin.flush()
        answer = msgspec.json.decode(self._process.stdout.readline())
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer  # type: ignore[no-any-return]
