"""A recovery key as people write it down: a prefix and 14 groups of five signs, each with a check of its own.

A group is four signs of Crockford's base 32 (without I, L and O, which are read as what they look like, and U) and a
fifth that makes a weighted sum of all five, in the field of 32 elements, the group's number. So a wrong sign, two signs
exchanged and a group in another's place are noticed for certain, and in which group. Thirteen groups hold the 32 bytes
and the beginning of a digest of them, the last one its end.
"""

import hashlib
import re

from custody.kit.key_head import KEY_BYTES

PREFIX = "CUSTODY-RECOVERY-1"
SIGNS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
GROUPS = 14
_LOOKS_LIKE = str.maketrans("OIL", "011")
_DATA = 4
_GROUP = _DATA + 1
# x^5 + x^2 + 1, by which the 32 elements are a field, and the bit above them.
_FIELD, _BEYOND = 0b100101, 32
# What anybody types is longer than this only by mistake.
MOST_TYPED = 256
_APART = re.compile(r"[\s-]+", re.ASCII)


class Misspelt(ValueError):
    """The text is no recovery key; the message says which group is wrong and never repeats one."""


def write(key: bytes) -> str:
    """The text of these 32 bytes."""
    bits = int.from_bytes(key) << 24 | _digest(key)
    numbers = [bits >> 20 * (GROUPS - 1 - at) & 0xFFFFF for at in range(GROUPS)]
    return f"{PREFIX} {'-'.join(_group(at, number) for at, number in enumerate(numbers))}"


def read(text: str) -> bytes:
    """The 32 bytes that were written down; Misspelt says which group to look at."""
    if len(text) > MOST_TYPED:
        raise Misspelt(f"That is no recovery key: it is longer than {MOST_TYPED} characters.")
    typed = text.strip().upper()
    if not typed.startswith(PREFIX):
        raise Misspelt(f"That is no recovery key: one begins with {PREFIX}.")
    groups = [group for group in _APART.split(typed.removeprefix(PREFIX)) if group]
    if len(groups) == 1:
        groups = [groups[0][at : at + _GROUP] for at in range(0, len(groups[0]), _GROUP)]
    bits = 0
    for at, group in enumerate(groups[:GROUPS]):
        bits = bits << 20 | _number(at, group.translate(_LOOKS_LIKE))
    if len(groups) != GROUPS:
        raise Misspelt(f"The recovery key has {GROUPS} groups behind its first word, and {len(groups)} were given.")
    key = (bits >> 24).to_bytes(KEY_BYTES)
    if _digest(key) != bits & 0xFFFFFF:
        raise Misspelt(
            "Every group is well formed, and together they are no recovery key: more than one sign is wrong."
        )
    return key


def _digest(key: bytes) -> int:
    return int.from_bytes(hashlib.sha256(f"{PREFIX} ".encode() + key).digest()[:3])


def _group(at: int, number: int) -> str:
    data = [number >> 5 * (_DATA - 1 - place) & 31 for place in range(_DATA)]
    return "".join(SIGNS[value] for value in [*data, _sum(data) ^ at])


def _number(at: int, group: str) -> int:
    if len(group) != _GROUP:
        raise Misspelt(f"Group {at + 1} of the recovery key has {len(group)} signs instead of {_GROUP}.")
    values = [SIGNS.find(sign) for sign in group]
    if -1 in values:
        raise Misspelt(f"Group {at + 1} of the recovery key holds a sign that none has: letters but U, and digits.")
    if _sum(values[:_DATA]) ^ at != values[_DATA]:
        raise Misspelt(f"Group {at + 1} of the recovery key is wrong: compare its signs with what was written down.")
    number = 0
    for value in values[:_DATA]:
        number = number << 5 | value
    return number


def _sum(values: list[int]) -> int:
    """Weight each value by another power of the field's generator, so that an exchange changes the sum too."""
    total = 0
    for value in values:
        total = _double(total ^ value)
    return total


def _double(value: int) -> int:
    return value << 1 ^ (_FIELD if value << 1 & _BEYOND else 0)
