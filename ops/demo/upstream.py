"""An API on this machine that wants a key, for the walk-through: what an agent calls through the proxy.

Its certificate can vouch for nobody but itself, its key never leaves the memory of this process, and both are over in
an hour. So the proxy that trusts it for the first start's walk-through trusts nothing else.
"""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from custody.kit import clock
from ops.demo.callers import DemoFailed
from ops.demo.seller import Seller

_HOST = "localhost"
# What costs something.
SOLD = "/v1/quote"
_VALID = timedelta(hours=1)


class Upstream:
    """The API while it runs. It says to a caller what that caller showed, as careless APIs do, and remembers it."""

    certificate: str
    port: int
    # Whose calls below /v1/quote are sold; without one nothing is.
    seller: Seller | None = None

    def __init__(self) -> None:
        self.shown: list[str] = []

    @property
    def host(self) -> str:
        """The host and port where it listens, as a route or a caller names them."""
        return f"{_HOST}:{self.port}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *rest = head.split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
            path = first.split(" ")[1]
            status, more, said = await (self._sell(headers) if path == SOLD else self._greet(headers))
            body = msgspec.json.encode(said)
            lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", "Connection: close", *more]
            writer.write("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)
            await writer.drain()
        except (OSError, EOFError, IndexError, asyncio.LimitOverrunError):
            pass  # a caller that hangs up has its answer
        finally:
            writer.close()

    async def _greet(self, headers: Mapping[str, str]) -> tuple[str, list[str], object]:
        credential = headers.get("authorization", "")
        self.shown.append(credential)
        return "200 OK", [], {"hello": "agent", "authorization": credential}

    async def _sell(self, headers: Mapping[str, str]) -> tuple[str, list[str], object]:
        if self.seller is None:
            return "404 Not Found", [], {"error": "nothing is sold"}
        demand = f"PAYMENT-REQUIRED: {self.seller.demand(f'https://{self.host}{SOLD}')}"
        if (payment := headers.get("payment-signature")) is None:
            return "402 Payment Required", [demand], {}
        try:
            settled = await self.seller.settle(payment)
        except (ValueError, LookupError, TypeError, AttributeError, DemoFailed) as problem:
            return "402 Payment Required", [demand], {"error": str(problem)}
        return "200 OK", [f"PAYMENT-RESPONSE: {settled}"], {"quote": "A penny saved is a penny earned."}


@asynccontextmanager
async def running() -> AsyncIterator[Upstream]:
    """An API of this run alone, on a free port of this machine."""
    upstream = Upstream()
    certificate, key = _certificate()
    upstream.certificate = certificate.decode()
    server = await asyncio.start_server(upstream.answer, "127.0.0.1", 0, ssl=_tls(certificate + key))
    upstream.port = server.sockets[0].getsockname()[1]
    try:
        yield upstream
    finally:
        server.close()


def _tls(certificate_and_key: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # The library reads from files only; the folder is private and gone with the next line.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "upstream.pem")
        file.write_bytes(certificate_and_key)
        context.load_cert_chain(file)
    return context


def _certificate() -> tuple[bytes, bytes]:
    """A certificate that only stands for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Upstream of the walk-through")])
    now = clock.now()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
