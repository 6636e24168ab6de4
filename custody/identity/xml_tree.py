"""The tree that strict_xml reads: elements, attributes and texts that cannot change."""

import re
from collections.abc import Mapping

import msgspec

# At the end only from the last character that is not white space: from every blank on it would take long.
_PRINTED = re.compile(r"\A[ \t\r]*\n[ \t\r\n]*|(?<![ \t\r\n])[ \t\r]*\n[ \t\r\n]*\Z")


class Attribute(msgspec.Struct, frozen=True, gc=False):
    """An attribute that is no declaration of a namespace; `name` is its name as written."""

    namespace: str
    local: str
    name: str
    value: str

    def __repr__(self) -> str:
        return f"Attribute({self.name})"


class Element(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An element as read. Equal is only the same object: what was verified is what is read."""

    name: str
    prefix: str
    local: str
    namespace: str
    attributes: tuple[Attribute, ...]
    # What this element declares, and all that is in scope here; the default namespace has the prefix "".
    declared: Mapping[str, str]
    scope: Mapping[str, str]
    children: tuple["Element | str", ...]
    # Those of the children that are elements.
    elements: tuple["Element", ...]

    def __repr__(self) -> str:
        return f"Element({self.name})"

    @property
    def text(self) -> str | None:
        """The whole content where it is only text; None where an element is among it."""
        if len(self.children) > 1 or (self.children and isinstance(self.children[0], Element)):
            return None
        return str(self.children[0]) if self.children else ""

    @property
    def plain_text(self) -> str | None:
        """The text without what an indenting printer puts around it: white space with a line end in it.

        Other white space stays, because it could be part of a name, and names are compared to the letter.
        """
        return None if self.text is None else _PRINTED.sub("", self.text)

    def get(self, local: str) -> str | None:
        """The value of an attribute without a prefix."""
        return next((one.value for one in self.attributes if one.name == local), None)


def has_text(element: Element) -> bool:
    """Say whether there is more than white space between an element's children."""
    return any(isinstance(child, str) and child.strip(" \t\r\n") for child in element.children)
