"""The terms of rules about who, when and where, in words. Pure."""

from collections.abc import Mapping
from typing import Final

from console.rules.rule_terms import NAME_CHARACTERS, Terms, is_number, is_text
from words.texts.chains import CHAINS, bitcoin_network
from words.texts.lines import Line
from words.texts.plain import clip

_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_LAST_START, _LAST_END = 23, 24
_CHAIN_DIGITS: Final = 16
_HEADS: Final = {
    "whitelist": ("may pay, and allow to spend, only:", "may pay no address: its list is empty"),
    "blacklist": ("may not pay, call, or allow to spend:", "blocks no address: its list is empty"),
}


def approved_addresses(terms: Terms) -> list[Line]:
    """Describe who may receive, or who may not. A mode that is not known is not read as either."""
    listed, mode = terms.items("addresses", is_text), terms.text("mode", "whitelist")
    some, none = _HEADS.get(mode or "", ("lists, in an unknown mode:",) * 2)
    lines = [] if listed is None else [Line(some if listed else none, None if listed and mode in _HEADS else "warn")]
    if mode is not None and mode not in _HEADS:
        lines.append(Line(f"its mode: {clip(mode, NAME_CHARACTERS)}", "warn"))
    return lines + [Line(f"  {terms.names.address(address)}") for address in listed or ()]


def new_recipient(terms: Terms) -> list[Line]:
    """Describe who is paid, allowed to spend or called without a person."""
    known = terms.items("known", is_text)
    lines = [
        Line("a person must approve the first order that pays, allows to spend, or calls an address on a chain"),
        Line("and each that moves an NFT, or that cannot be read"),
    ]
    if known:
        lines.append(Line("from the beginning, no approval is needed by this rule for:"))
    return lines + [Line(f"  {terms.names.address(address)}") for address in known or ()]


def time_window(terms: Terms) -> list[Line]:
    """At which hours, on which days, from when and until when."""
    hours, days = terms.items("allowedHours", _is_span), terms.items("allowedDays", _is_day)
    zone = terms.text("timezone", "UTC")
    # Monday first, as a week is read; the hours are compared on the day that it is then.
    named = [_DAYS[day] for day in sorted(set(days or ()), key=lambda day: (day - 1) % len(_DAYS))]
    lines = []
    if not terms.unread("allowedHours"):
        lines.append(Line(f"hours: {', '.join(map(_span, hours)) if hours else 'any'}"))
    if not terms.unread("allowedDays"):
        lines.append(Line(f"days: {', '.join(named) or 'any'}"))
    if zone is not None:
        lines.append(Line(f"on the clocks of {clip(zone, NAME_CHARACTERS)}"))
    for field, said in (("notBefore", "nothing is signed before"), ("notAfter", "nothing is signed any more from")):
        if (when := terms.text(field)) is not None:
            lines.append(Line(f"{said} {clip(when, NAME_CHARACTERS)}"))
    return lines


def allowed_chains(terms: Terms) -> list[Line]:
    """On which chains."""
    chains = terms.items("chains", lambda chain: is_number(chain) or is_text(chain))
    if chains is None:
        return []
    if not chains:
        return [Line("on no chain: its list is empty", "warn")]
    return [Line("only on:"), *(Line(f"  {chain_shown(chain)}") for chain in chains)]


def chain_shown(chain: int | str) -> str:
    """A chain of a rule, by its name where it has one here, and always as the rule has it."""
    text = str(chain)
    if (network := bitcoin_network(text)) and text in (network.caip2, f"bitcoin:{network.name}"):
        return f"{network.shown} ({text})"
    number = text.removeprefix("eip155:")
    if not (number.isascii() and number.isdecimal() and len(number) <= _CHAIN_DIGITS):
        return clip(text, NAME_CHARACTERS)
    known = CHAINS.get(int(number))
    # The number of a Solana chain is ours alone: under eip155 it is another chain.
    if known is None or (number != text and known.coin.smallest != "wei"):
        return f"chain {text}"
    return f"{known.shown} ({text})"


def _is_day(value: object) -> bool:
    return isinstance(value, int) and is_number(value) and 0 <= value < len(_DAYS)


def _is_span(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"start", "end"} or not all(map(is_number, value.values())):
        return False
    return bool(
        0 <= value["start"] <= _LAST_START and 1 <= value["end"] <= _LAST_END and value["start"] != value["end"]
    )


def _span(span: Mapping[str, int]) -> str:
    start, end = span["start"], span["end"]
    if start < end:
        return _hours(start, end)
    # Each part counts on its own day: with Friday alone, the early hours are those of Friday.
    return f"{_hours(start, _LAST_END)} and {_hours(0, end)}"


def _hours(start: int, end: int) -> str:
    return f"{start:02}:00 until {end:02}:00"
