"""Words that no sentence for a caller has in it: Python, its types, patterns, or the decoder's own words."""

import re

FOREIGN = re.compile(
    r"`(?:str|int|float|bool|null|array|object|key)\b|\bNone\b|\bregex\b|\\[Zx]|\[\^|\(\?|\bExpected\b|\bgot\b|"
    r"Object contains|Object missing|Invalid (?:enum )?value|of length|\bdict\b|Struct\b|\b[A-Z]\w*Error\b|<class"
)
# What is said where a type has no words of its own.
WORDLESS = ("a value that the contract allows here", "the form that the contract shows")


def in_plain_words(sentence: str) -> bool:
    """Say whether a caller can read it who knows neither Python nor this code."""
    return not FOREIGN.search(sentence) and not any(words in sentence for words in WORDLESS)
