"""XML as identity providers sign it, and nothing else: bytes to a tree that cannot change. Normative: docs/saml.md.

It reads elements, attributes, text, the five named references and numeric ones. Comments, CDATA, processing
instructions and DOCTYPE are refused, so no node can hide or split a text. So is all that canonicalisers disagree
about: relative or empty namespaces, `xml:id`, names that are not ASCII. Every loop is bounded by the length of the
input and every pattern is possessive, so the time grows with the length and never with its square.
"""

import re
from collections.abc import Mapping
from typing import Final

from custody.identity.xml_tree import Attribute, Element
from identity.saml.xml_text import MAX_ELEMENTS, XmlRefused, after_declaration, attribute_value, decode, resolve

MAX_ATTRIBUTES: Final = 2_000
MAX_ATTRIBUTES_EACH: Final = 32
MAX_DEPTH: Final = 32
# Of one address, and of all that an element may use: the canonical form repeats an address wherever it is used again.
MAX_NAMESPACE: Final = 256
MAX_NAMESPACES: Final = 32
_XML: Final = "http://www.w3.org/XML/1998/namespace"
_XMLNS: Final = "http://www.w3.org/2000/xmlns/"

_NAME = r"[A-Za-z_][A-Za-z0-9_.\-]*+"
_BLANK = re.compile(r"[ \t\n]*+")
_VALUE = r"[ \t\n]*+=[ \t\n]*+(?:\"[^\"<]*+\"|'[^'<]*+')"
# A whole tag at once; then its attributes, each of which begins where the one before it ends.
_OPENING = re.compile(rf"(?:({_NAME}):)?({_NAME})((?:[ \t\n]++{_NAME}(?::{_NAME})?+{_VALUE})*)[ \t\n]*+(/?)>")
_ATTRIBUTE = re.compile(rf"[ \t\n]++(?:({_NAME}):)?({_NAME})[ \t\n]*+=[ \t\n]*+(?:\"([^\"<]*+)\"|'([^'<]*+)')")
_CLOSING_END = re.compile(r"[ \t\n]*+>")
# Absolute, and so plain that every reader finds it valid and no writer escapes it: no %, brackets, users, second #.
_PLAIN = r"[A-Za-z0-9\-._~:/!$*+,;=()]*+"
_NAMESPACE = re.compile(
    r"[A-Za-z][A-Za-z0-9+.\-]*+:(?://[A-Za-z0-9.\-]++(?::[0-9]{1,5}+)?+(?=[/?#]|\Z)|(?!/)(?=[A-Za-z0-9]))"
    rf"{_PLAIN}(?:\?{_PLAIN})?+(?:#{_PLAIN})?+\Z"
)

# The fields of an element but for its children, and the children so far: all, and the elements of them.
type _Head = tuple[str, str, str, str, tuple[Attribute, ...], Mapping[str, str], Mapping[str, str]]
type _Open = tuple[_Head, list[Element | str], list[Element]]


def read(content: bytes, scope: Mapping[str, str] | None = None) -> Element:
    """The root of a document of at most 64 KiB, or XmlRefused; `scope` is what is declared around it."""
    text = decode(content)
    begin = _BLANK.match(text, after_declaration(text))
    return _Reader(text, begin.end() if begin else 0, scope or {}).document()


class _Reader:
    """A text, a place in it, and how much of what is bounded was met."""

    def __init__(self, text: str, at: int, scope: Mapping[str, str]) -> None:
        self._text, self._at, self._scope = text, at, scope
        self._elements = self._attributes = 0
        self._stack: list[_Open] = []

    def document(self) -> Element:
        text, stack = self._text, self._stack
        root = None
        while root is None:
            mark = text.find("<", self._at)
            if mark < 0:
                raise XmlRefused("The XML ends before its last element is closed.")
            if mark > self._at:
                self._take_text(text[self._at : mark])
            self._at = mark + 1
            done = self._close() if text.startswith("/", self._at) else self._open()
            if done is None:
                continue
            if stack:
                _, children, elements = stack[-1]
                children.append(done)
                elements.append(done)
            else:
                root = done
        if (rest := _BLANK.match(text, self._at)) is None or rest.end() != len(text):
            raise XmlRefused("Something follows after the end of the XML's first element.")
        return root

    def _take_text(self, raw: str) -> None:
        if not self._stack:
            raise XmlRefused("The XML begins with text outside of its element.")
        if "]]>" in raw:
            raise XmlRefused("A text contains ]]>.")
        self._stack[-1][1].append(resolve(raw) if "&" in raw else raw)

    def _open(self) -> Element | None:
        """The element that begins here where it is closed at once."""
        match = _OPENING.match(self._text, self._at)
        if match is None:
            raise _no_element(self._text, self._at)
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise XmlRefused(f"The XML has more than {MAX_ELEMENTS:,} elements.")
        if len(self._stack) == MAX_DEPTH:
            raise XmlRefused(f"The XML is nested deeper than {MAX_DEPTH} elements.")
        self._at = match.end()
        prefix, local, written, closed = match.groups()
        scope: Mapping[str, str] = self._stack[-1][0][6] if self._stack else self._scope
        attributes, declared = self._attributes_of(written, scope) if written else ((), {})
        if declared:
            scope = {**scope, **declared}
            if len(scope) > MAX_NAMESPACES:
                raise XmlRefused(f"More than {MAX_NAMESPACES} namespaces are in scope at one element.")
        if prefix:
            head = (f"{prefix}:{local}", prefix, local, _namespace(prefix, scope), attributes, declared, scope)
        else:
            head = (local, "", local, scope.get("", ""), attributes, declared, scope)
        if closed:
            return Element(*head, (), ())
        self._stack.append((head, [], []))
        return None

    def _close(self) -> Element:
        if not self._stack:
            raise XmlRefused("The XML begins with the end of an element.")
        head, children, elements = self._stack.pop()
        begin = self._at + 1
        end = _CLOSING_END.match(self._text, begin + len(head[0]))
        if end is None or not self._text.startswith(head[0], begin):
            raise XmlRefused(f"<{head[0][:64]}> is not closed where it must be.")
        self._at = end.end()
        return Element(*head, tuple(children), tuple(elements))

    def _attributes_of(self, written: str, outer: Mapping[str, str]) -> tuple[tuple[Attribute, ...], Mapping[str, str]]:
        """The attributes of a tag, and the namespaces that it declares."""
        found = _ATTRIBUTE.findall(written)
        self._attributes += len(found)
        if len(found) > MAX_ATTRIBUTES_EACH:
            raise XmlRefused(f"An element has more than {MAX_ATTRIBUTES_EACH} attributes.")
        if self._attributes > MAX_ATTRIBUTES:
            raise XmlRefused(f"The XML has more than {MAX_ATTRIBUTES:,} attributes.")
        declared: dict[str, str] = {}
        if "xmlns" in written:
            for prefix, local, double, single in found:
                if prefix == "xmlns":
                    _declare(declared, local, attribute_value(double or single))
                elif not prefix and local == "xmlns":
                    _declare(declared, "", attribute_value(double or single))
        scope = {**outer, **declared} if declared else outer
        made = tuple(
            Attribute(
                _XML if prefix == "xml" else _namespace(prefix, scope),
                local,
                f"{prefix}:{local}",
                attribute_value(double or single),
            )
            if prefix
            else Attribute("", local, local, attribute_value(double or single))
            for prefix, local, double, single in found
            if prefix != "xmlns" and (prefix or local != "xmlns")
        )
        if len(made) > 1 and len({(one.namespace, one.local) for one in made}) != len(made):
            raise XmlRefused("An element has one attribute twice.")
        if "xml:id" in written and any(one.name == "xml:id" for one in made):
            raise XmlRefused("An element has an attribute xml:id, which readers understand in different ways.")
        return made, declared


def _namespace(prefix: str, scope: Mapping[str, str]) -> str:
    """The namespace of an attribute's or element's prefix."""
    if (namespace := scope.get(prefix)) is None:
        raise XmlRefused(f"The prefix {prefix[:64]} is bound to no namespace.")
    return namespace


def _declare(declared: dict[str, str], prefix: str, namespace: str) -> None:
    if prefix in declared:
        raise XmlRefused("An element declares one namespace prefix twice.")
    if prefix in ("xml", "xmlns") or namespace in (_XML, _XMLNS):
        raise XmlRefused("The prefixes xml and xmlns, and their namespaces, must not be declared.")
    if len(namespace) > MAX_NAMESPACE:
        raise XmlRefused(f"A namespace is longer than {MAX_NAMESPACE} characters.")
    if not _NAMESPACE.match(namespace):
        raise XmlRefused(
            "A namespace is not an absolute address of letters, digits and - . _ ~ : / ! $ * + , ; = ( ) ? #."
        )
    declared[prefix] = namespace


def _no_element(text: str, at: int) -> XmlRefused:
    for begin, name in (("!--", "a comment"), ("![CDATA[", "a CDATA section"), ("?", "a processing instruction")):
        if text.startswith(begin, at):
            return XmlRefused(f"The XML contains {name}, behind which a text can hide.")
    if text.startswith("!", at):
        return XmlRefused("The XML contains a DOCTYPE or another declaration.")
    return XmlRefused("A tag is malformed, or has a name that is not of ASCII letters, digits and _ - . alone.")
