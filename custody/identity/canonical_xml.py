"""Exclusive canonical XML (without comments) of a tree of strict_xml: the bytes that a signature's digest is of.

Written from the tree that was read, so that what is hashed and what is read are the same objects. The output is at
most a small multiple of the input, because the addresses of namespaces are short and few.
"""

import re
from collections.abc import Mapping, Set
from operator import attrgetter
from typing import Final

from custody.identity.xml_tree import Element

_ORDER = attrgetter("namespace", "local")
NOTHING: Final[frozenset[str]] = frozenset()
_IN_TEXT = re.compile(r"[&<>\r]")
_IN_VALUE = re.compile(r"[&<\"\t\n\r]")


def canonical(apex: Element, prefixes: Set[str] = NOTHING, without: Element | None = None) -> bytes:
    """An element and all below it, but for one that is left out (the enveloped signature).

    `prefixes` are those of InclusiveNamespaces, with "" for #default: their namespaces are written where they are
    declared, used or not.
    """
    parts: list[str] = []
    _write(parts, apex, {}, apex.scope, prefixes, without)
    return "".join(parts).encode()


def _write(
    parts: list[str],
    element: Element,
    rendered: Mapping[str, str],
    declared: Mapping[str, str],
    prefixes: Set[str],
    without: Element | None,
) -> None:
    # The depth of the recursion is bounded by the reader.
    fresh: dict[str, str] = {}
    if element.namespace and rendered.get(element.prefix) != element.namespace:
        fresh[element.prefix] = element.namespace
    for one in element.attributes:
        if one.namespace and (prefix := one.name.partition(":")[0]) != "xml" and rendered.get(prefix) != one.namespace:
            fresh[prefix] = one.namespace
    if prefixes and declared:
        for prefix, address in declared.items():
            if prefix in prefixes and rendered.get(prefix) != address:
                fresh[prefix] = address
    parts.append(f"<{element.name}")
    if fresh:
        rendered = {**rendered, **fresh}
        # The default namespace, whose prefix is empty, comes first.
        parts += [
            f' xmlns:{prefix}="{fresh[prefix]}"' if prefix else f' xmlns="{fresh[""]}"' for prefix in sorted(fresh)
        ]
    for one in sorted(element.attributes, key=_ORDER) if len(element.attributes) > 1 else element.attributes:
        parts.append(f' {one.name}="{_escaped_value(one.value)}"')
    parts.append(">")
    for child in element.children:
        if isinstance(child, str):
            parts.append(_escaped_text(child) if _IN_TEXT.search(child) else child)
        elif child is not without:
            _write(parts, child, rendered, child.declared, prefixes, without)
    parts.append(f"</{element.name}>")


def _escaped_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")


def _escaped_value(value: str) -> str:
    if not _IN_VALUE.search(value):
        return value
    value = value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return value.replace("\t", "&#x9;").replace("\n", "&#xA;").replace("\r", "&#xD;")
