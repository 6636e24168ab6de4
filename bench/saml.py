"""The cost of a SAML answer in identity: genuine ones of 6 KiB, and the worst that the bounds let in.

`python -m bench.saml`. One processor, no database and no HTTP; the median and the 99th percentile of many.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from custody.identity.saml_refusals import SamlRefused
from identity.saml.response import decode_response, read_response
from identity.saml.strict_xml import MAX_ATTRIBUTES, MAX_DEPTH
from identity.saml.types import Expected
from identity.saml.xml_text import MAX_BYTES, MAX_ELEMENTS
from tests.outside import saml_answers as saml

ROUNDS = 500
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ATTRIBUTES = {f"http://schemas.example/claims/attribute-{number}": [f"value {number}"] for number in range(9)}
ANSWER = saml.Answer(now=NOW, attributes=ATTRIBUTES | {"groups": [f"group-{number}" for number in range(14)]})


def measure() -> None:
    """Genuine answers by each kind of key, then hostile ones."""
    for kind, what in (("rsa", "assertion"), ("rsa", "both"), ("p256", "assertion"), ("p521", "assertion")):
        content = ANSWER.sign(saml.key(kind), what)
        _print(f"{kind}, {what} signed", content, _expectation(saml.key(kind)))
    five = tuple(saml.key("rsa", str(number)).certificate for number in range(5))
    unknown = msgspec.structs.replace(_expectation(saml.key()), certificates=five)
    _print("by none of five certificates", ANSWER.sign(saml.key()), unknown)
    for name, content in hostile().items():
        assert len(content) <= MAX_BYTES + 1, name
        _print(name, content, _expectation(saml.key()))


def hostile() -> dict[str, bytes]:
    """Documents of the size that is allowed, each with as much as can be of one thing, signed where that costs more."""
    wide = "".join(f" a{number}='1'" for number in range(30))
    many = ANSWER.but(attributes={"groups": ["x"] * 1_400})
    declared = " ".join(f"xmlns:p{number}='urn:{number}{'u' * 240}'" for number in range(28))
    used = f"<b {' '.join(f'p{number}:x=""' for number in range(28))}/>"
    return {
        "elements": _around("<b/>" * (MAX_ELEMENTS - 60)),
        "elements with an attribute": _around("<b c=''/>" * (MAX_ELEMENTS - 60)),
        "attributes": _around(f"<b{wide}/>" * (MAX_ATTRIBUTES // 30 - 5)),
        "depth": _around(("<b>" * (MAX_DEPTH - 8) + "</b>" * (MAX_DEPTH - 8)) * (MAX_ELEMENTS // (MAX_DEPTH - 8) - 4)),
        "references": _around("&#x41;" * 9_000),
        "namespaces, used again and again": _around(f"<b {declared}>{used * 60}</b>"),
        "namespaces, declared again and again": _around("<b xmlns:a='urn:a' xmlns:b='urn:b'/>" * 950),
        "1,400 groups, signed": many.sign(saml.key()),
        "one long text, signed": ANSWER.but(attributes={"a": ["&" * 11_000]}).sign(saml.key()),
        "open tags": b"<" * MAX_BYTES,
        "blanks in a tag": b"<a" + b" " * (MAX_BYTES - 2),
        "64 KiB and a byte": b"x" * (MAX_BYTES + 1),
        "the most elements and attributes, signed": _around("<b c=''/>" * (MAX_ELEMENTS - 90), signed=True),
    }


def _around(inside: str, *, signed: bool = False) -> bytes:
    """A genuine answer with something in an attribute's value; the IdP signed the rest of it, or this too."""
    tree = ANSWER.but(attributes={"a": ["@@@"]})
    content = tree.sign(saml.key(), "both")
    if not signed:
        return content.replace(b"@@@", inside.encode())
    root = saml.etree.fromstring(saml.to_bytes(tree.tree()).replace(b"@@@", inside.encode()))
    return saml.sign_tree(root, saml.key(), "both")


def _expectation(by: saml.Key) -> Expected:
    return Expected(
        idp_entity_id=ANSWER.idp_entity_id,
        sp_entity_id=ANSWER.sp_entity_id,
        acs_url=ANSWER.acs_url,
        request_id=ANSWER.request_id or "",
        certificates=(by.certificate,),
        groups_attribute="groups",
        now=NOW,
    )


def _print(name: str, content: bytes, expected: Expected) -> None:
    text = saml.form_value(content)

    def work() -> str:
        try:
            read_response(decode_response(text), expected)
        except SamlRefused as refused:
            return refused.code
        return "accepted"

    said = work()
    middle, late = _figures(work)
    print(f"{name}, {len(content):,} bytes: p50 {middle:.2f} ms, p99 {late:.2f} ms ({said})", flush=True)


def _figures(work: Callable[[], object]) -> tuple[float, float]:
    taken = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        work()
        taken.append(1_000 * (time.thread_time() - began))
    taken.sort()
    return taken[ROUNDS // 2], taken[ROUNDS * 99 // 100]


if __name__ == "__main__":
    measure()
