"""TLS on both sides of a tunnel: our certificates towards the agent, verified ones towards the upstream."""

import datetime
import functools
import ssl
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import certifi
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from mitmproxy.net import tls as net_tls
from mitmproxy.proxy import layer
from mitmproxy.proxy.layers.tls import ClientTLSLayer
from mitmproxy.tls import TlsData
from OpenSSL import SSL

from custody.credentials.spelling import is_address
from custody.kit import clock
from proxy_addon.exchange import Ticket

# A name's certificate is made once a day per process; agents see a fresh one after a restart.
_LEAF_DAYS = 7
_HELLO_BYTES, _HELLO_PIECES = 16 * 1024, 32
_HTTP1, _HTTP2 = b"http/1.1", b"h2"
# As OpenSSL says that an upstream speaks none of what it was offered; we offer HTTP/1.1 alone where that may do.
WANTS_HTTP2 = "no application protocol"
# Upstreams of which is remembered that they say so.
MAX_REMEMBERED = 1000
# pyOpenSSL has no name of its own for checking a host, so this reaches below it.
_below: Any = SSL
_HOST_FLAGS = _below._lib.X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | getattr(
    _below._lib, "X509_CHECK_FLAG_NEVER_CHECK_SUBJECT", 0
)


class AgentTls(ClientTLSLayer):
    """TLS with the agent inside a tunnel; a hello that does not come to its end is not waited for.

    mitmproxy keeps all of it and parses it again with each piece.
    """

    _bytes = _pieces = 0

    def receive_handshake_data(self, data: bytes) -> layer.CommandGenerator[tuple[bool, str | None]]:
        """Take a piece of the handshake."""
        if self.client_hello_parsed:
            return (yield from super().receive_handshake_data(data))
        self._bytes += len(data)
        self._pieces += 1
        if self._bytes > _HELLO_BYTES or self._pieces > _HELLO_PIECES:
            return False, "the hello has no end"
        return (yield from super().receive_handshake_data(data))


class Certificates:
    """Makes the certificates of tunnels, and checks those of upstreams."""

    def __init__(self, ca_file: Path, ca_key_file: Path, extra_ca_file: Path | None) -> None:
        self._ca = x509.load_pem_x509_certificate(ca_file.read_bytes())
        key = load_pem_private_key(ca_key_file.read_bytes(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != self._ca.public_key():
            raise ValueError(f"{ca_key_file} is not the key of {ca_file}; delete both to have new ones made")
        self._ca_key = key
        # One key for all tunnels of this process, never the authority's own.
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        # Upstreams that took nothing else, the last one last.
        self._speak_http2: dict[tuple[str, int], None] = {}
        self._leaf = functools.lru_cache(maxsize=1000)(self._make_leaf)
        self._agent_side = self._agent_context()
        self._upstream_side = _upstream_context(extra_ca_file)

    def start_client(self, data: TlsData, host: str) -> None:
        """TLS towards the agent, in the name of the host it asked for."""
        connection = SSL.Connection(self._agent_side)
        connection.use_certificate(self._leaf(host, clock.now().date()))
        connection.use_privatekey(self._leaf_key)
        connection.set_accept_state()
        data.ssl_conn = connection

    def start_server(self, data: TlsData) -> None:
        """TLS towards an upstream: name and chain are verified, without exception."""
        host = data.conn.sni
        if not host:
            return  # no context is given, so the connection fails
        name = host.encode("ascii")
        connection = SSL.Connection(self._upstream_side)
        parameters = _below._lib.SSL_get0_param(connection._ssl)
        _below._lib.X509_VERIFY_PARAM_set_hostflags(parameters, _HOST_FLAGS)
        if is_address(host):
            packed = _address(host).packed
            done = _below._lib.X509_VERIFY_PARAM_set1_ip(parameters, packed, len(packed))
        else:
            done = _below._lib.X509_VERIFY_PARAM_set1_host(parameters, name, len(name))
            connection.set_tlsext_host_name(name)
        _below._openssl_assert(done == 1)
        ticket = getattr(data.conn, "ticket", None)
        both = ticket is not None and (ticket.http2 or (ticket.host, ticket.port) in self._speak_http2)
        connection.set_alpn_protos([_HTTP2, _HTTP1] if both else [_HTTP1])
        connection.set_connect_state()
        data.ssl_conn = connection

    def note_failure(self, data: TlsData) -> None:
        """Take note of why TLS with an upstream failed."""
        ticket = getattr(data.conn, "ticket", None)
        if ticket is not None and WANTS_HTTP2 in (data.conn.error or "").lower():
            self.remember_http2(ticket)

    def remember_http2(self, ticket: Ticket) -> None:
        """Remember an upstream that HTTP/1.1 was not enough for."""
        self._speak_http2[ticket.host, ticket.port] = None
        if len(self._speak_http2) > MAX_REMEMBERED:
            del self._speak_http2[next(iter(self._speak_http2))]

    def _agent_context(self) -> SSL.Context:
        context = SSL.Context(SSL.TLS_SERVER_METHOD)
        context.set_min_proto_version(SSL.TLS1_2_VERSION)
        context.set_options(net_tls.DEFAULT_OPTIONS)
        context.set_alpn_select_callback(_choose)
        return context

    def _make_leaf(self, host: str, _day: datetime.date) -> x509.Certificate:
        now = clock.now()
        named = x509.IPAddress(_address(host)) if is_address(host) else x509.DNSName(host)
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, host)] if len(host) < 64 else []
        issuer = self._ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(subject))
            .issuer_name(self._ca.subject)
            .public_key(self._leaf_key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=_LEAF_DAYS))
            .add_extension(x509.SubjectAlternativeName([named]), critical=not subject)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer), critical=False)
        )
        return builder.sign(self._ca_key, SHA256())


def _address(host: str) -> IPv4Address | IPv6Address:
    return ip_address(host.strip("[]"))


def _choose(_connection: SSL.Connection, offered: list[bytes]) -> Any:
    """HTTP/1.1 where an agent speaks it, for everything works there; HTTP/2 for one that speaks nothing else."""
    return next((known for known in (_HTTP1, _HTTP2) if known in offered), SSL.NO_OVERLAPPING_PROTOCOLS)


def _upstream_context(extra_ca_file: Path | None) -> SSL.Context:
    """Trust in the usual authorities, the system's included, and the operator's own beside them."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(net_tls.DEFAULT_OPTIONS)
    context.set_verify(SSL.VERIFY_PEER)
    files = [certifi.where(), ssl.get_default_verify_paths().cafile, str(extra_ca_file) if extra_ca_file else None]
    for file in filter(None, files):
        context.load_verify_locations(file)
    return context
