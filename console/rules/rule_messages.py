"""The terms of a rule about messages, in words. Pure."""

from console.rules.rule_terms import NAME_CHARACTERS, Terms, is_text
from words.texts.lines import Line
from words.texts.plain import clip

_PATTERN_CHARACTERS = 1_024
_WALLETS = {"siweDomains": "its EVM wallet", "siwsDomains": "its Solana wallet"}


def message_allowlist(terms: Terms) -> list[Line]:
    """Describe where a wallet may sign in, and which texts it may sign, without a person."""
    lines: list[Line] = []
    for name, wallet in _WALLETS.items():
        sites = _items(terms, name)
        if sites:
            lines.append(Line(f"{wallet} may sign in, as often as it likes, to:"))
            lines += [Line(f"  {clip(site, NAME_CHARACTERS)}") for site in sites]
    patterns = _items(terms, "patterns")
    if patterns:
        lines.append(Line("either wallet may sign texts like these, where * is anything on its line:"))
        lines += [Line(f"  | {clip(pattern, _PATTERN_CHARACTERS)}") for pattern in patterns]
    if any(terms.unread(name) for name in (*_WALLETS, "patterns")):
        # What is stored there may list any message.
        return lines
    said = "every other message needs approval" if lines else "every message needs approval"
    return [*lines, Line(said)]


def _items(terms: Terms, name: str) -> list[str]:
    return terms.items(name, is_text) or []
