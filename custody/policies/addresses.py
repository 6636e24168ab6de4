"""The chain family of an address in a rule, and its one spelling.

An address nobody can place is refused when the rule is set: it would match nothing, and a whitelist with a typing
mistake is noticed then instead of at the first payment.
"""

from collections.abc import Iterable
from typing import Final

from custody.chains import families
from custody.policies.types import InvalidPolicy

_TOLD: Final = 128


def same(address: str, family: str) -> str:
    """The spelling in which addresses of a family are compared."""
    return families.of_name(family).spell(address)


def parse_addresses(texts: Iterable[str]) -> dict[str, frozenset[str]]:
    """The addresses per family in their one spelling, or InvalidPolicy naming the bad one."""
    found: dict[str, set[str]] = {family.name: set() for family in families.all_families()}
    for text in texts:
        family = families.of_address(text)
        if family is None:
            raise InvalidPolicy(f"{text[:_TOLD]!r} is not an EVM, Solana or Bitcoin address")
        found[family.name].add(family.parse_address(text))
    return {family: frozenset(addresses) for family, addresses in found.items()}
