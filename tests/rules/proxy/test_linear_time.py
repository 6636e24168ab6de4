"""Input of strangers is parsed in time that grows with its length: every regular expression and parser on 64 KiB.

The expressions are found, not listed: those of our modules that the proxy loads, as they are used there, and those of
the modules of its libraries that read a head or a body. For each, worst cases are made of its own syntax tree.
"""

import ast
import gc
import importlib
import inspect
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import product
from re import _constants as sre
from re import _parser
from typing import Any

import pytest
from h11 import _readers
from h11._receivebuffer import ReceiveBuffer
from mitmproxy import connection, http
from mitmproxy.net.http import http1, validate
from mitmproxy.proxy import context, events

import proxy_addon.__main__ as proxy_main
from custody.credentials import spelling
from custody.credentials.target import parse_target
from custody.credentials.types import InjectAs, RouteFields
from custody.kit.errors import CustodyError
from custody.kit.jwt import BadToken, TokenKeys
from proxy_addon import admission, agent_token, decode, inject, into_body
from proxy_addon.chunks import Chunks
from proxy_addon.frames import MaskedFrames
from proxy_addon.mask import Masker, Needles, mask_header, needles, unreadable
from proxy_addon.mitm import http1 as ours
from tests.fixtures.each import each
from tests.outside.processes import PROJECT

KIB = 1024
# Twice the text may take this many times as long; less than so much time is noise.
RATIO, FLOOR = 3.2, 0.02
SMALL, LARGE = KIB, 64 * KIB
# Heads, framing, authorities, lines: what our code has these libraries read.
LIBRARIES = (
    "h11._receivebuffer",
    "mitmproxy.net.check",
    "mitmproxy.net.http.http1.read",
    "mitmproxy.net.http.url",
    "mitmproxy.net.http.validate",
    "urllib.parse",
)
# What never sees more than so many bytes, and who sees to that.
BOUNDED = {
    "mitmproxy.net.http.validate: [\\t ]*,[\\t ]*": ours.MAX_FRAMING_VALUE,
    **{
        f"custody.credentials.spelling: {pattern.pattern}": spelling.MAX_HOST
        for pattern in (
            spelling._LABEL,
            spelling._WILD_LABEL,
            spelling._WILD_ADDRESS,
        )
    },
}
FILLERS = (" ", "\t", ",", '"', "'", ";", "=", "a", "0", "%", "%25", ".", ":", "/", "\\", "[", "@", "a ", ", ", "\xff")
ENDS = ("", "\n", "\0", "!x")
METHODS = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")


def took(work: Callable[[], object]) -> float:
    """Seconds of this process alone; what else the machine does has no part in it, nor has the collector."""
    gc.disable()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.enable()


def insist_on_linear(work: Callable[[int], Callable[[], object]], most: int = LARGE) -> None:
    """Compare sizes, the smaller first, so that what is quadratic fails before it takes long."""
    size = min(SMALL, most)
    before = min(took(work(size)) for _ in range(2))
    while size < most:
        size *= 2
        now = min(took(work(size)) for _ in range(2))
        if now > FLOOR and now > RATIO * before:
            # Again, for figures vary: the middle one of five comparisons counts.
            pairs = [tuple(min(took(work(one)) for _ in range(3)) for one in (size, size // 2)) for _ in range(5)]
            now, before = sorted(pairs, key=lambda pair: pair[0] / pair[1])[2]
            assert now <= FLOOR or now <= RATIO * before, f"{size} bytes: {now:.3f} s, half of them: {before:.3f} s"
        before = now


def insist_on_linear_for_worst(run: Callable[[str], object], texts: Iterator[tuple[str, str, str]], most: int) -> None:
    """Judge by the text (begin, repeated, end) that takes longest while it is small."""
    slowest, worst = -1.0, ("", " ", "")
    for text in texts:
        duration = took(partial(run, long(text, min(most, SMALL))))
        if duration > slowest:
            slowest, worst = duration, text
        if duration > FLOOR:
            insist_on_linear(lambda size, text=text: partial(run, long(text, size)), most)  # type: ignore[misc]
    insist_on_linear(lambda size: partial(run, long(worst, size)), most)


def long(text: tuple[str, str, str], size: int) -> str:
    begin, repeated, end = text
    return begin + repeated * ((size - len(begin) - len(end)) // len(repeated)) + end


# ---------------------------------------------------------------- regular expressions


_LOADS = """
import importlib, pkgutil, sys
import custody.credentials, proxy_addon
for package in (proxy_addon, custody.credentials):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
print(*sorted(name for name in sys.modules if name.split(".")[0] in ("proxy_addon", "custody")))
"""


def modules_loaded() -> list[str]:
    """Our modules that the proxy loads, and those of the rules about routes; asked of a process that has no others."""
    found = subprocess.run([sys.executable, "-c", _LOADS], capture_output=True, text=True, check=True).stdout.split()
    for name in found:
        importlib.import_module(name)
    return found


def inside(value: object, depth: int = 0) -> Iterator["re.Pattern[Any]"]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 3 and isinstance(value, Mapping | tuple | list | set | frozenset):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from inside(one, depth + 1)


@cache
def find_patterns() -> dict[str, tuple["re.Pattern[Any]", frozenset[str]]]:
    """Every expression by its place and text, with the methods that it is used with."""
    patterns: dict[str, tuple[re.Pattern[Any], frozenset[str]]] = {}
    for name in (*modules_loaded(), *LIBRARIES):
        module = importlib.import_module(name)
        used, inline = uses(module)
        for variable, value in list(vars(module).items()):
            for pattern in inside(value):
                # One that is reached by another name than its own may be used in any way.
                methods = frozenset(used.get(variable, METHODS))
                patterns[f"{name}: {pattern.pattern!s:.80}".strip()] = pattern, methods
        for pattern, method in inline:
            patterns[f"{name}: {pattern.pattern!s:.80}".strip()] = pattern, frozenset((method,))
    return patterns


def uses(module: Any) -> tuple[dict[str, set[str]], list[tuple["re.Pattern[Any]", str]]]:
    """Find the methods that are called on each name, and the expressions that are written where they are used."""
    used: dict[str, set[str]] = {}
    inline = []
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=method), args=[ast.Constant(value=text), *_]
            ) if method in METHODS:
                inline.append((re.compile(text), method))
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in METHODS:
                used.setdefault(name, set()).add(method)
    return used, inline


def example(tree: Any) -> str:
    """A short text that a part of an expression takes, more or less."""
    said = ""
    for kind, given in tree:
        if kind is sre.LITERAL:
            said += chr(given)
        elif kind in (sre.IN, sre.NOT_LITERAL, sre.ANY):
            said += next(members([(kind, given)]))
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            said += example(given[2]) * max(1, min(given[0], 64))
        elif kind in (sre.SUBPATTERN, sre.ATOMIC_GROUP):
            said += example(given[-1] if kind is sre.SUBPATTERN else given)
        elif kind is sre.BRANCH:
            said += example(given[1][0])
    return said


def members(tree: Any) -> Iterator[str]:
    """Some of the letters or words that a repeated part may be."""
    for kind, given in tree:
        if kind is sre.BRANCH:
            yield from (example(branch) for branch in given[1])
        elif kind in (sre.IN, sre.NOT_LITERAL, sre.ANY):
            one = re.compile(_compile([(kind, given)]), re.DOTALL)
            yield from [letter for letter in (*FILLERS, "z", "!", "x") if one.fullmatch(letter)][:6] or ["a"]
        elif kind is sre.SUBPATTERN:
            yield from members(given[-1])
    yield example(tree)


def _compile(tree: list[Any]) -> str:
    kind, given = tree[0]
    if kind is sre.ANY:
        return "."
    if kind is sre.NOT_LITERAL:
        return f"[^{re.escape(chr(given))}]"
    said = ""
    for what, value in given:
        if what is sre.NEGATE:
            said += "^"
        elif what is sre.LITERAL:
            said += re.escape(chr(value))
        elif what is sre.RANGE:
            said += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        elif what is sre.CATEGORY:
            said += {"CATEGORY_SPACE": r"\s", "CATEGORY_DIGIT": r"\d", "CATEGORY_WORD": r"\w"}[str(value)]
    return f"[{said}]"


def repeats(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """For each part that repeats without end: what may stand before it, and what it may repeat."""
    for kind, given in tree:
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            if given[1] > 64:
                yield from ((before, word) for word in members(given[2]) if word)
            yield from repeats(given[2], before)
        elif kind is sre.SUBPATTERN:
            yield from repeats(given[-1], before)
        elif kind is sre.ATOMIC_GROUP:
            yield from repeats(given, before)
        elif kind is sre.BRANCH:
            for branch in given[1]:
                yield from repeats(branch, before)
        before += example([(kind, given)])


def worst_of(pattern: "re.Pattern[Any]") -> Iterator[tuple[str, str, str]]:
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    own = list(dict.fromkeys(repeats(_parser.parse(text, pattern.flags & ~re.UNICODE))))
    begins = list(dict.fromkeys(("", *(before for before, _ in own), example(_parser.parse(text)))))
    words = list(dict.fromkeys((*FILLERS, *(word for _, word in own))))
    yield from product(begins, words, ENDS)
    # Near-matches, again and again: each begins like a match and is none.
    yield from (("", before + word * 16, end) for before, word in own for end in ENDS)
    yield from (("", begin, end) for begin in begins if begin for end in ENDS)


def run_of(pattern: "re.Pattern[Any]", method: str) -> Callable[[str], object]:
    call: Any = getattr(pattern, method)
    binary = isinstance(pattern.pattern, bytes)

    def run(text: str) -> object:
        given: Any = text.encode("latin-1") if binary else text
        if method == "sub":
            return call(b"" if binary else "", given)
        return list(call(given)) if method == "finditer" else call(given)

    return run


@each("place", find_patterns)
def test_an_expression(place: str) -> None:
    pattern, methods = find_patterns()[place]
    for method in methods:
        insist_on_linear_for_worst(run_of(pattern, method), worst_of(pattern), BOUNDED.get(place, LARGE))


@each(
    ("text", "method"),
    [
        (r"charset\s*=\s*[\"']?\s*(?:utf[-_ ]?16)", "search"),
        (r"[a-z]+@", "search"),
        (_readers.chunk_header_re.pattern.decode(), "fullmatch"),
    ],
)
def test_those_that_are_not_linear_are_found_out(text: str, method: str) -> None:
    pattern = re.compile(text)

    with pytest.raises(AssertionError):
        insist_on_linear_for_worst(run_of(pattern, method), worst_of(pattern), LARGE)


def test_the_libraries_reader_of_chunks_is_not_used() -> None:
    assert isinstance(ours._reader(None), Chunks)
    assert "ChunkedReader" not in "".join(file.read_text() for file in (PROJECT / "proxy_addon").rglob("*.py"))
    assert proxy_main.serve


# ---------------------------------------------------------------- parsers


def agent_side(text: str) -> None:
    side = ours.AgentSide(_context(), lambda _: "id")
    _hear(side, text)


def upstream_side(text: str) -> None:
    made = _context()
    made.server.state = connection.ConnectionState.OPEN
    side = ours.UpstreamSide(made)
    side.request, side.stream_id = http.Request.make("GET", "http://localhost/"), 1
    side.request_done = True
    _hear(side, text)


def _context() -> context.Context:
    client = connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2), timestamp_start=0)
    return context.Context(client, proxy_main._OPTIONS)  # type: ignore[arg-type]


def _hear(side: Any, text: str) -> None:
    """In pieces, as they come from a socket, and each until nothing is left to read."""
    raw = text.encode("latin-1")
    list(side.handle_event(events.Start()))
    for at in range(0, len(raw), 1_000):
        waiting = list(side.handle_event(events.DataReceived(side.conn, raw[at : at + 1_000])))
        while waiting:
            more = [one for one in waiting if type(one).__name__ == "RequestWakeup"]
            waiting = [event for one in more for event in side.handle_event(events.Wakeup(one))]


REQUEST = ("GET / HTTP/1.1", "Host: a")
ANSWER = ("HTTP/1.1 200 OK",)
NAMES = (
    "Host",
    "Transfer-Encoding",
    "Content-Length",
    "Connection",
    "Content-Type",
    "Authorization",
    "Upgrade",
    "X-Request-Id",
)
# What stands before the worst, by the side that reads it.
PLACES: dict[str, tuple[Callable[[str], None], str]] = {
    "an agent's first line": (agent_side, ""),
    "its path": (agent_side, "GET /"),
    "its version": (agent_side, "GET / HTTP/1.1"),
    "its authority": (agent_side, "GET http://"),
    "its bracketed authority": (agent_side, "GET http://["),
    "its tunnel": (agent_side, "CONNECT a"),
    "its header's name": (agent_side, "\r\n".join([*REQUEST, "x"])),
    **{f"its {name}": (agent_side, "\r\n".join([*REQUEST, f"{name}: "])) for name in NAMES},
    "its chunk line": (agent_side, "\r\n".join([*REQUEST, "Transfer-Encoding: chunked", "", "5"])),
    "its extension": (agent_side, "\r\n".join([*REQUEST, "Transfer-Encoding: chunked", "", "5;"])),
    "its trailer": (agent_side, "\r\n".join([*REQUEST, "Transfer-Encoding: chunked", "", "0", "a:"])),
    "an upstream's first line": (upstream_side, ""),
    "its reason": (upstream_side, "HTTP/1.1 200 "),
    **{f"an upstream's {name}": (upstream_side, "\r\n".join([*ANSWER, f"{name}: "])) for name in NAMES},
    "an upstream's extension": (upstream_side, "\r\n".join([*ANSWER, "Transfer-Encoding: chunked", "", "5;"])),
    "an upstream's trailer": (upstream_side, "\r\n".join([*ANSWER, "Transfer-Encoding: chunked", "", "0", "a:"])),
}
WORDS = (
    *FILLERS,
    "\r\n",
    "\n",
    "a:b\r\n",
    "a: b\r\n",
    "1\r\na\r\n",
    "chunked, ",
    "xn--a.",
    "\r",
    "0\r\n",
    "a=b; ",
    "]",
    "HTTP/1.1 103 a\r\n\r\n",
)
LAST = ("", "\0\r\n\r\n", " HTTP/1.1\r\n\r\n", "\nx\r\n\r\n")


@each("place", PLACES)
def test_a_head_or_body(place: str) -> None:
    read, begin = PLACES[place]

    insist_on_linear_for_worst(read, product((begin,), WORDS, LAST), LARGE - 10)


FORMS = needles("sk 'quo\"ted&<b>/blank+=" + "k9" * 12)
TOKENS = TokenKeys({}, "issuer")


def _expect_body(text: str) -> object:
    headers = http.Headers([(b"Transfer-Encoding", text.encode("latin-1"))])
    message = http.Response(b"HTTP/1.1", 200, b"", headers, None, None, 0, 0)
    return ours._body_size(http.Request.make("GET", "http://a/"), message)


def _valid(text: str) -> object:
    headers = http.Headers([(b"Content-Length", text.encode("latin-1")), (text.encode("latin-1"), b"x")])
    return validate.validate_headers(http.Response(b"HTTP/1.1", 200, b"", headers, None, None, 0, 0))


def _frames(text: str) -> None:
    frames = MaskedFrames(Needles.of(b"sk-12345"))
    frames.feed(text.encode("latin-1"))
    while frames.unread:
        frames.feed(b"")


def _lines(text: str) -> None:
    buffer = ReceiveBuffer()
    raw = text.encode("latin-1")
    for at in range(0, len(raw), 100):
        buffer += raw[at : at + 100]
        buffer.maybe_extract_lines()


def _feed(text: str) -> None:
    masker = Masker(FORMS)
    raw = text.encode("latin-1")
    for at in range(0, len(raw), 100):
        masker.feed(raw[at : at + 100])


def _header(name: bytes) -> Callable[[str], list[tuple[bytes, bytes]]]:
    return lambda text: [(name, text.encode("latin-1")), (b"X", text.encode("latin-1"))]


def _into(kind: str, text: str, way: InjectAs = "body", key: str = "key") -> bytes:
    said = RouteFields(host_pattern="api.example.com", inject_as=way, inject_key=key)
    return into_body.into_body(kind, None, text.encode("latin-1"), inject.Placed(said, "value"))


CONNECTION, ANY, OFFERED = _header(b"Connection"), _header(b"Cookie"), _header(b"Sec-WebSocket-Protocol")
PARSERS: dict[str, Callable[[str], object]] = {
    "a type's charset": unreadable,
    "the start of a charset": lambda text: unreadable(f"text/plain; charset={text}x"),
    "a media type": into_body._media_type,
    "what Connection names": lambda text: inject.returning_headers(CONNECTION(text), websocket=False),
    "the same of an agent": lambda text: inject.outgoing_headers(CONNECTION(text), token="t" * 300, websocket=True),
    "a header with a token": lambda text: inject.outgoing_headers(ANY(text), token="a" * 300, websocket=False),
    "a query": lambda text: inject.into_query(text.encode("latin-1"), "key", "value"),
    "a token in a query": lambda text: inject.without_token(text, "a" * 300),
    "a form": lambda text: _into(into_body.FORM, text),
    "an object": lambda text: _into("application/json", text),
    "a place in JSON": lambda text: _into("application/json", text, "json", "/*/a/b"),
    "a text with placeholders": lambda text: _into("text/plain", text, "text", "aa"),
    "a form of parts": lambda text: _into("multipart/form-data; boundary=a", text),
    "parts of a form": lambda text: _into("multipart/form-data; boundary=a", f"--a\r\n{text}\r\n--a--"),
    "the type of a form": lambda text: _into(f"multipart/form-data; {text}", "--a--"),
    "a coding": lambda text: decode.codings_in([text]),
    "a bearer token": lambda text: agent_token.forward_token(
        [(b"Proxy-Authorization", b"Bearer " + text.encode("latin-1"))]
    ),
    "a basic token": lambda text: agent_token.gateway_token([(b"Authorization", b"Basic " + text.encode("latin-1"))]),
    "offers with a token": lambda text: agent_token.gateway_token(OFFERED(text)),
    "offers without a token": lambda text: agent_token.without_offers(OFFERED(text), "t" * 300),
    "a signed token": TOKENS.verify,
    "a path": lambda text: parse_target("localhost", f"/{text}"),
    "a host": lambda text: parse_target(text, "/"),
    "a framing header": _expect_body,
    "an answer's head": lambda text: ours.clean_head([b"HTTP/1.1 200 OK", *text.encode("latin-1").split(b"\n")]),
    "an answer's length": lambda text: ours.clean_head(
        [b"HTTP/1.1 200 OK", b"Content-Length:" + text.encode("latin-1")]
    ),
    "headers' names": _valid,
    "whether to close": lambda text: http1.connection_close("HTTP/1.1", http.Headers(CONNECTION(text))),
    "frames": _frames,
    "lines": _lines,
    "a header to mask": lambda text: mask_header(b"Date", text.encode("latin-1"), FORMS),
    "a body to mask": _feed,
}


def _refusing(parse: Callable[[str], object]) -> Callable[[str], object]:
    def run(text: str) -> object:
        try:
            return parse(text)
        except (CustodyError, ValueError, BadToken, admission.Refused, agent_token.TwoTokens):
            return None

    return run


@each("name", PARSERS)
def test_a_parser(name: str) -> None:
    worst = product(
        ("", "{", "eyJ", "a=", "\x81\x7e"), (*WORDS, '{"a":', "a&", "%41", "\\u0061", "k9", "\x81\x01a"), ("", "\0")
    )

    insist_on_linear_for_worst(_refusing(PARSERS[name]), worst, LARGE)
