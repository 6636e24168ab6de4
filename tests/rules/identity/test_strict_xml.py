"""The strict reader of XML: what it reads libxml2 reads alike, and what hides, splits or grows is refused."""

import hashlib
from base64 import b64encode
from collections.abc import Iterable
from random import Random

import pytest
import xmlsec
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from custody.identity.canonical_xml import canonical
from custody.identity.xml_tree import Element
from identity.saml.strict_xml import MAX_DEPTH, MAX_NAMESPACES, read
from identity.saml.xml_text import MAX_BYTES, MAX_ELEMENTS, XmlRefused
from tests.fixtures.each import each
from tests.fixtures.thorough import THOROUGH
from tests.outside.saml_answers import EXCLUSIVE, key
from tests.outside.xml_documents import change_place, document, element

MANY = settings(max_examples=1_000 if THOROUGH == 1 else 4_000 * THOROUGH, deadline=None)
chances = st.randoms(use_true_random=True)


def pairs(ours: Element, theirs: etree._Element) -> Iterable[tuple[Element, etree._Element]]:
    yield ours, theirs
    for child, other in zip(ours.elements, theirs, strict=True):
        yield from pairs(child, other)


@MANY
@given(chances, st.lists(st.sampled_from(("a", "b", "xs", "zz")), max_size=3, unique=True))
def test_libxml2_reads_alike_what_is_read(random: Random, prefixes: list[str]) -> None:
    written = document(random)

    for one, other in pairs(read(written), etree.fromstring(written)):
        judged = etree.tostring(other, method="c14n", exclusive=True, inclusive_ns_prefixes=prefixes, with_tail=False)
        assert canonical(one, frozenset(prefixes)) == judged
        assert one.text in (None, other.text or "")
        assert (one.namespace, one.local) == (etree.QName(other).namespace or "", etree.QName(other).localname)


@MANY
@given(chances)
def test_libxml2_reads_alike_what_survives_a_change(random: Random) -> None:
    written = change_place(random, document(random))
    try:
        ours = read(written)
    except XmlRefused:
        return
    assert canonical(ours) == etree.tostring(etree.fromstring(written), method="c14n", exclusive=True)


@settings(max_examples=100 * THOROUGH, deadline=None)
@given(chances, st.sampled_from(["", "#default", "#default a", "a #default xs", "b"]))
def test_xmlsec_signs_the_bytes_that_are_written_with_a_prefix_list(random: Random, listed: str) -> None:
    """lxml ignores #default, so its judge is a digest that xmlsec made."""
    body = element(random, {"": "urn:a", "a": "urn:b", "xs": "urn:b"}, 3)
    root = etree.fromstring(f'<r xmlns="urn:a" xmlns:a="urn:b" xmlns:xs="urn:b"><p ID="x">{body}</p></r>')
    signature = xmlsec.template.create(root, xmlsec.Transform.EXCL_C14N, xmlsec.Transform.RSA_SHA256, ns="ds")
    root.append(signature)
    reference = xmlsec.template.add_reference(signature, xmlsec.Transform.SHA256, uri="#x")
    exclusive = xmlsec.template.add_transform(reference, xmlsec.Transform.EXCL_C14N)
    etree.SubElement(exclusive, f"{{{EXCLUSIVE}}}InclusiveNamespaces", PrefixList=listed)
    context = xmlsec.SignatureContext()
    context.key = xmlsec.Key.from_memory(key().pem, xmlsec.KeyFormat.PEM)
    context.register_id(root[0], "ID")
    context.sign(signature)

    ours = read(etree.tostring(root)).elements[0]
    prefixes = frozenset("" if prefix == "#default" else prefix for prefix in listed.split())
    digest = hashlib.sha256(canonical(ours, prefixes)).digest()
    assert b64encode(digest).decode() == signature.findtext(".//{*}DigestValue")


@MANY
@given(st.text("aZ09:/?#@!$()*+,;=%[]-._~'", max_size=14), st.sampled_from(["http:", "http://", "urn:", "a:", ""]))
def test_libxml2_takes_each_namespace_that_is_taken(rest: str, scheme: str) -> None:
    written = f'<a xmlns="{scheme}{rest}"/>'.encode()
    try:
        ours = read(written)
    except XmlRefused:
        return
    assert canonical(ours) == etree.tostring(etree.fromstring(written), method="c14n", exclusive=True)


GOOD = b'<a xmlns="urn:a"><b c="d">e</b></a>'
BAD = {
    "comment": b"<a>x<!-- y --></a>",
    "CDATA": b"<a><![CDATA[x]]></a>",
    "processing instruction": b"<a><?x y?></a>",
    "processing instruction in front": b"<?x y?><a/>",
    "DOCTYPE": b"<!DOCTYPE a><a/>",
    "default attribute": b'<!DOCTYPE a [<!ATTLIST a ID CDATA "x">]><a/>',
    "expansion": b'<!DOCTYPE a [<!ENTITY x "yy">]><a>&x;</a>',
    "unknown entity": b"<a>&x;</a>",
    "bare ampersand": b"<a>x & y</a>",
    "reference to nothing": b"<a>&#0;</a>",
    "reference to a surrogate": b"<a>&#xD800;</a>",
    "reference beyond Unicode": b"<a>&#x110000;</a>",
    "reference to a control": b"<a>&#1;</a>",
    "reference to a noncharacter": b"<a>&#xFFFE;</a>",
    "reference without end": b"<a>&#65</a>",
    "NUL": b"<a>\x00</a>",
    "control": b"<a>\x0b</a>",
    "noncharacter": "<a>\ufffe</a>".encode(),
    "UTF-16": "<a/>".encode("utf-16"),
    "UTF-7": b'<?xml version="1.0" encoding="UTF-7"?><a/>',
    "Latin-1": "<a>é</a>".encode("latin-1"),
    "overlong": b"<a>\xc0\xbc</a>",
    "surrogate in UTF-8": b"<a>\xed\xa0\x80</a>",
    "XML 1.1": b'<?xml version="1.1"?><a/>',
    "two declarations": b'<?xml version="1.0"?><?xml version="1.0"?><a/>',
    "two byte order marks": "\ufeff\ufeff<a/>".encode(),
    "blank before the declaration": b' <?xml version="1.0"?><a/>',
    "two roots": b"<a/><b/>",
    "trailing bytes": b"<a/>x",
    "text in front": b"x<a/>",
    "nothing": b"",
    "only blanks": b" \n",
    "no end": b"<a>",
    "end only": b"</a>",
    "another's end": b"<a></b>",
    "end with more": b"<a></ab>",
    "end with an attribute": b"<a></a b='c'>",
    "unclosed quote": b'<a b="c></a>',
    "no quote": b"<a b=c/>",
    "no blank between attributes": b"<a b='c'd='e'/>",
    "less-than in a value": b"<a b='<'/>",
    "end of CDATA in a text": b"<a>]]></a>",
    "attribute twice": b"<a b='1' b='2'/>",
    "attribute twice by namespace": b"<a xmlns:x='urn:a' xmlns:y='urn:a' x:b='1' y:b='2'/>",
    "declaration twice": b"<a xmlns:x='urn:a' xmlns:x='urn:b'/>",
    "unbound prefix": b"<x:a/>",
    "unbound prefix of an attribute": b"<a x:b='c'/>",
    "prefix out of scope": b"<a><b xmlns:x='urn:x'/><x:c/></a>",
    "xml redefined": b"<a xmlns:xml='urn:a'/>",
    "xml declared": b"<a xmlns:xml='http://www.w3.org/XML/1998/namespace'/>",
    "xmlns declared": b"<a xmlns:xmlns='urn:a'/>",
    "another prefix for xml": b"<a xmlns:x='http://www.w3.org/XML/1998/namespace'/>",
    "element with the prefix xml": b"<xml:a/>",
    "xml:id": b"<a xml:id='b'/>",
    "two colons": b"<a xmlns:x='urn:a'><x:b:c/></a>",
    "empty prefix": b"<:a/>",
    "empty local name": b"<a xmlns:x='urn:a'><x:/></a>",
    "name with a digit first": b"<1a/>",
    "name that is not ASCII": "<é/>".encode(),
    "relative namespace": b"<a xmlns='../a'/>",
    "empty namespace": b"<a xmlns=''/>",
    "empty namespace of a prefix": b"<a xmlns:x=''/>",
    "namespace with an ampersand": b"<a xmlns='urn:a&amp;b'/>",
    "namespace with a quote": b"<a xmlns='urn:a&quot;b'/>",
    "namespace with a broken escape": b"<a xmlns='http://a%le/b'/>",
    "namespace with an escape": b"<a xmlns='http://a/%41'/>",
    "namespace with two fragments": b"<a xmlns='http://a/b#c#d'/>",
    "namespace with a port in letters": b"<a xmlns='http://a:b/c'/>",
    "namespace with a bracket": b"<a xmlns='http://a/b[c'/>",
    "namespace with a space": b"<a xmlns='urn:a b'/>",
    "namespace that is not ASCII": "<a xmlns='urn:é'/>".encode(),
    "namespace with a line end behind it": b"<a xmlns='urn:a&#10;'/>",
    "long namespace": b"<a xmlns='urn:" + b"a" * 256 + b"'/>",
    "blank before a name": b"< a/>",
    "slash apart": b"<a / >",
}


@each("document", BAD.values(), ids=BAD.keys())
def test_a_document_that_can_be_read_in_two_ways_is_refused(document: bytes) -> None:
    read(GOOD)

    with pytest.raises(XmlRefused, match=r"\.$"):
        read(document)


def test_line_ends_and_white_space_are_read_as_the_standard_says() -> None:
    root = read(b"<a b='1\r\n2\t3&#10;4'>x\r\ny\rz&#13;</a>")

    assert root.get("b") == "1 2 3\n4"
    assert root.text == "x\ny\nz\r"


# Each of the size that is allowed, or one more.
WIDE = b"<a" + b"".join(b" a%d='1'" % number for number in range(31)) + b"/>"
LARGE = {
    "65 KiB": b"<a>" + b"x" * (65 * 1024) + b"</a>",
    "one byte too many": b"<a>" + b"x" * (MAX_BYTES - 6) + b"</a>",
    "deep": b"<a>" * (MAX_DEPTH + 1) + b"</a>" * (MAX_DEPTH + 1),
    "very deep": b"<a>" * 9_000 + b"</a>" * 9_000,
    "elements": b"<a>" + b"<b/>" * MAX_ELEMENTS + b"</a>",
    "attributes of one": b"<a" + b"".join(b" a%d='1'" % number for number in range(33)) + b"/>",
    "attributes": b"<a>" + WIDE * 130 + b"</a>",
    "50,000 attributes": b"<a" + b"".join(b" a%d='1'" % number for number in range(50_000)) + b"/>",
    "long name": b"<" + b"a" * 250_000 + b"/>",
    "namespaces": b"".join(b"<a xmlns:a%d='urn:a'>" % n for n in range(MAX_NAMESPACES + 1)) + b"</a>" * 33,
    "unclosed quote": b"<a b='" + b"x" * 60_000,
    "open tags": b"<" * 64_000,
    "ampersands": b"<a>" + b"&" * 64_000 + b"</a>",
    "blanks in a tag": b"<a" + b" " * 64_000 + b"x",
    "blanks around =": b"<a b" + b" " * 64_000 + b"x",
    "colons": b"<a" + b":a" * 30_000 + b"/>",
}
FULL = {
    "depth": b"<a>" * MAX_DEPTH + b"</a>" * MAX_DEPTH,
    "elements": b"<a>" + b"<b x='1'/>" * (MAX_ELEMENTS - 1) + b"</a>",
    "attributes": b"<a>" + WIDE * 64 + b"</a>",
    "references": b"<a>" + b"&lt;" * 16_000 + b"</a>",
    "text": b"<a>" + b"x" * 65_000 + b"</a>",
    "name": b"<" + b"a" * 65_000 + b"/>",
    "namespaces": b"<a %s>%s</a>"
    % (
        b" ".join(b"xmlns:p%d='urn:%d%s'" % (n, n, b"u" * 240) for n in range(31)),
        b"<b %s/>" % b" ".join(b"p%d:x='1'" % n for n in range(31)) * 63,
    ),
}


@each("document", LARGE.values(), ids=LARGE.keys())
def test_a_document_beyond_a_bound_is_refused(document: bytes) -> None:
    with pytest.raises(XmlRefused):
        read(document)


@each("document", FULL.values(), ids=FULL.keys())
def test_a_document_at_a_bound_is_read_and_written(document: bytes) -> None:
    assert len(document) <= MAX_BYTES
    theirs = etree.fromstring(document, etree.XMLParser(huge_tree=True))
    assert canonical(read(document)) == etree.tostring(theirs, method="c14n", exclusive=True)


def test_a_tree_does_not_print_what_is_in_it() -> None:
    assert repr(read(b"<a>secret</a>")) == "Element(a)"
