"""A name server on loopback, over UDP and TCP, that knows what a test tells it and keeps what it was asked.

A name that nobody told it of does not exist. What is told of a name replaces what was told before.
"""

import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import msgspec
from dns.exception import DNSException, TooBig
from dns.rdtypes.ANY.CNAME import CNAME
from dns.rdtypes.ANY.TXT import TXT

Transport = Literal["udp", "tcp"]
# A record of TXT is one text, which is cut every 255 bytes, or the strings as they are.
Text = str | tuple[bytes, ...]
_LONGEST_STRING = 255
_PLAIN_UDP = 512
_TTL_SECONDS = 60


class Query(msgspec.Struct, frozen=True):
    """One question as it came, its name in lower case without the dot at the end."""

    name: str
    kind: str
    transport: Transport


class _Known(msgspec.Struct, frozen=True):
    texts: tuple[tuple[bytes, ...], ...] = ()
    alias: str | None = None
    rcode: dns.rcode.Rcode = dns.rcode.NOERROR
    silent: tuple[Transport, ...] = ()


class DnsServer:
    """A name server: its address, its records, and the questions that it got."""

    def __init__(self) -> None:
        self.host, self.port = "127.0.0.1", 0
        self.queries: list[Query] = []
        self._known: dict[str, _Known] = {}

    def txt(self, name: str, *values: Text, only_udp: bool = False) -> None:
        """Let a name have these records and no others; with none it exists and has no answer."""
        texts = tuple(_cut(value) if isinstance(value, str) else value for value in values)
        self._known[_plain(name)] = _Known(texts, silent=("tcp",) if only_udp else ())

    def alias(self, name: str, to: str) -> None:
        """Let a name stand for another one, whose records come along."""
        self._known[_plain(name)] = _Known(alias=to)

    def fails(self, name: str, rcode: Literal["SERVFAIL", "REFUSED", "NXDOMAIN", "FORMERR"] = "SERVFAIL") -> None:
        """Answer questions for a name with an error."""
        self._known[_plain(name)] = _Known(rcode=dns.rcode.from_text(rcode))

    def silent(self, name: str) -> None:
        """Never answer questions for a name."""
        self._known[_plain(name)] = _Known(silent=("udp", "tcp"))

    def forget(self, name: str) -> None:
        """Let a name not exist."""
        self._known.pop(_plain(name), None)

    def questions_for(self, name: str) -> list[Query]:
        """The questions for a name, in order."""
        return [query for query in self.queries if query.name == _plain(name)]

    def answer(self, wire: bytes, transport: Transport) -> bytes | None:
        """The answer to a question as bytes, or None where there is to be none."""
        try:
            asked = dns.message.from_wire(wire)
            question = asked.question[0]
        except (DNSException, IndexError):
            return None
        name = _plain(question.name.to_text())
        self.queries.append(Query(name, dns.rdatatype.to_text(question.rdtype), transport))
        known = self._known.get(name, _Known(rcode=dns.rcode.NXDOMAIN))
        if transport in known.silent:
            return None
        reply = dns.message.make_response(asked, recursion_available=True)
        reply.set_rcode(known.rcode)
        self._fill(reply, question.name, question.rdtype)
        if transport == "tcp":
            return reply.to_wire(max_size=65535)
        try:
            return reply.to_wire(max_size=asked.payload or _PLAIN_UDP)
        except TooBig:
            reply.answer = []
            reply.flags |= dns.flags.TC
            return reply.to_wire()

    def _fill(self, reply: dns.message.Message, name: dns.name.Name, kind: dns.rdatatype.RdataType) -> None:
        # An alias may lead in a circle.
        for _ in range(8):
            known = self._known.get(_plain(name.to_text()), _Known())
            if known.alias is None:
                break
            target = dns.name.from_text(known.alias)
            made: Any = CNAME(dns.rdataclass.IN, dns.rdatatype.CNAME, target)
            reply.answer.append(dns.rrset.from_rdata(name, _TTL_SECONDS, made))
            name = target
        if kind == dns.rdatatype.TXT and known.texts:
            records = [TXT(dns.rdataclass.IN, dns.rdatatype.TXT, strings) for strings in known.texts]
            reply.answer.append(dns.rrset.from_rdata_list(name, _TTL_SECONDS, records))


def _plain(name: str) -> str:
    return name.rstrip(".").lower()


def _cut(text: str) -> tuple[bytes, ...]:
    whole = text.encode()
    return tuple(whole[at : at + _LONGEST_STRING] for at in range(0, len(whole), _LONGEST_STRING)) or (b"",)


class _Udp(socketserver.BaseRequestHandler):
    ours: DnsServer

    def handle(self) -> None:
        wire, socket = self.request
        if said := self.ours.answer(wire, "udp"):
            socket.sendto(said, self.client_address)


class _Tcp(socketserver.StreamRequestHandler):
    ours: DnsServer

    def handle(self) -> None:
        while head := self.rfile.read(2):
            said = self.ours.answer(self.rfile.read(struct.unpack("!H", head)[0]), "tcp")
            if said:
                self.wfile.write(struct.pack("!H", len(said)) + said)


class _TcpListener(socketserver.ThreadingTCPServer):
    daemon_threads, block_on_close = True, False


@contextmanager
def running_dns_server() -> Iterator[DnsServer]:
    """Start one in this process that knows nothing; UDP and TCP have the same port."""
    server = DnsServer()
    udp_handler, tcp_handler = type("Udp", (_Udp,), {"ours": server}), type("Tcp", (_Tcp,), {"ours": server})
    tcp, udp = _same_port(server.host, tcp_handler, udp_handler)
    server.port = udp.server_address[1]
    threads = [threading.Thread(target=one.serve_forever, args=(0.05,), daemon=True) for one in (tcp, udp)]
    for thread in threads:
        thread.start()
    try:
        yield server
    finally:
        for listener in (tcp, udp):
            listener.shutdown()
            listener.server_close()
        for thread in threads:
            thread.join()


def _same_port(host: str, tcp_handler: Any, udp_handler: Any) -> tuple[_TcpListener, socketserver.UDPServer]:
    for _ in range(20):
        tcp = _TcpListener((host, 0), tcp_handler)
        try:
            return tcp, socketserver.UDPServer((host, tcp.server_address[1]), udp_handler)
        except OSError:
            tcp.server_close()
    raise RuntimeError("no port is free for both UDP and TCP")
