"""The terms of `contract-allowlist` in words: contracts, their calls, and what each call may do. Pure."""

from typing import Any, Final

from console.rules.rule_limits import amounts_of
from console.rules.rule_places import chain_shown
from console.rules.rule_terms import Names, Terms, is_text, show
from words.texts.lines import Line
from words.texts.plain import clip

# Calls that nearly every token has; others are shown by their selector alone.
_CALLS: Final = {"0xa9059cbb": "transfer", "0x23b872dd": "transferFrom", "0x095ea7b3": "approve"}
_PARTIES: Final = (
    ("recipientAllowlist", "only to:", "to no address: its list is empty"),
    ("recipientBlocklist", "never to:", "its list of blocked recipients is empty"),
    ("spenderAllowlist", "only with these as spender:", "with nobody as spender: its list is empty"),
    ("spenderBlocklist", "never with these as spender:", "its list of blocked spenders is empty"),
)
_SELECTOR_CHARACTERS: Final = 64
_DECLARATION_CHARACTERS: Final = 4_096
_VALUE_CHARACTERS: Final = 1_024
_ADDRESS_CHARACTERS: Final = 42
_COMPARED: Final = {
    "eq": "is",
    "ne": "is not",
    "lt": "is less than",
    "lte": "is at most",
    "gt": "is more than",
    "gte": "is at least",
    "in": "is one of:",
    "notIn": "is none of:",
}


def contract_allowlist(terms: Terms) -> list[Line]:
    """Each contract with its calls; whatever is not listed is refused."""
    contracts = terms.items("contracts", lambda entry: isinstance(entry, dict))
    if contracts is None:
        return []
    if not contracts:
        return [Line("no contract may be called: its list is empty", "warn")]
    lines = [Line("may call only:")]
    for entry in contracts:
        lines += [Line(f"  {line.text}", line.tone) for line in _contract(Terms(entry, terms.names))]
    return lines


def _contract(entry: Terms) -> list[Line]:
    address, chain = entry.text("address"), entry.number("chainId")
    where = "on every EVM chain" if chain is None else f"on {chain_shown(chain)}"
    lines = [Line(f"{entry.names.address(address) if address is not None else 'a contract without address'} {where}")]
    constraints = {_normal(name): value for name, value in entry.table("constraints").items()}
    if (unread := entry.text("unread")) is not None:
        lines.append(_unread(unread))
    lines += _typed_data(entry)
    for selector in entry.items("selectors", is_text) or ():
        lines += _call(_normal(selector), constraints.pop(_normal(selector), {}), entry)
    # A constraint of a call that is not listed, or one that is no object, is shown as it is.
    left = [Line(f"  {clip(name, _SELECTOR_CHARACTERS)}: {show(value)}", "warn") for name, value in constraints.items()]
    return [*lines, *left, *(Line(f"  {line.text}", line.tone) for line in entry.rest())]


def _unread(word: str) -> Line:
    if word == "allow":
        return Line("  ! bytes that nobody can decode pass WITHOUT APPROVAL: it may do anything with them", "bad")
    if word == "ask":
        return Line("  bytes that nobody can decode need approval")
    return Line(f"  bytes that nobody can decode: {show(word)}, unknown to this console", "warn")


def _call(selector: str, constraint: Any, entry: Terms) -> list[Line]:
    name = _CALLS.get(selector)
    shown_selector = clip(selector, _SELECTOR_CHARACTERS) + (f" ({name})" if name else "")
    if not isinstance(constraint, dict):
        return [Line(f"  call {shown_selector}, under: {show(constraint)}", "warn")]
    if not constraint:
        return [Line(f"  call {shown_selector}, whatever it does")]
    terms, lines = Terms(constraint, entry.names), [Line(f"  call {shown_selector}")]
    for field, head, empty in _PARTIES:
        if (listed := terms.items(field, is_text)) is not None:
            lines.append(Line(f"    {head if listed else empty}", None if listed else "warn"))
            lines += [Line(f"      {terms.names.address(address)}") for address in listed]
    if (amount := terms.amount("maxAmount")) is not None:
        lines.append(Line(f"    at most {amounts_of(amount, None, terms.names)[0]} of its token each time"))
    if (value := terms.amount("maxNativeValueWei")) is not None:
        lines.append(Line(f"    with at most {amounts_of(value, 'evm:native', terms.names)[0]} each time"))
    if (abi := terms.text("abi")) is not None:
        lines.append(Line(f"    only if it can be read as {clip(abi, _DECLARATION_CHARACTERS)}, and"))
    lines += [Line(f"      {line.text}", line.tone) for line in _where(terms)]
    return [*lines, *(Line(f"    {line.text}", line.tone) for line in terms.rest())]


def _typed_data(entry: Terms) -> list[Line]:
    """The kinds of typed data, of which there may be none."""
    kinds = entry.items("typedData", lambda kind: isinstance(kind, dict))
    if kinds is None:
        return []
    if not kinds:
        return [Line("  no typed data is signed for it: its list is empty", "warn")]
    lines = [Line("  typed data is signed for it only of:")]
    for kind in kinds:
        terms = Terms(kind, entry.names)
        lines.append(Line(f"    {clip(terms.text('type') or 'no type', _DECLARATION_CHARACTERS)}"))
        lines += [Line(f"      {line.text}", line.tone) for line in (*_where(terms), *terms.rest())]
    return lines


def _where(terms: Terms) -> list[Line]:
    """One line for each condition; one that is not understood is shown as it is stored."""
    lines = []
    for condition in terms.items("where", lambda one: isinstance(one, dict)) or ():
        arg, op, value, values = (condition.get(name) for name in ("arg", "op", "value", "values"))
        texts = values if value is None else [value]
        known = condition.keys() <= {"arg", "op", "value", "values"} and (value is None) != (values is None)
        if not (known and is_text(arg) and op in _COMPARED and isinstance(texts, list) and all(map(is_text, texts))):
            lines.append(Line(f"a condition that is unknown to this console: {show(condition)}", "warn"))
            continue
        head = f"{clip(arg, _VALUE_CHARACTERS)} {_COMPARED[op]}"
        shown = [_value(one, terms.names) for one in texts]
        lines += (
            [Line(f"{head} {shown[0]}")] if value is not None else [Line(head), *(Line(f"  {one}") for one in shown)]
        )
    return lines


def _value(text: str, names: Names) -> str:
    """A value: numbers, hex and addresses as they are, any other text between quotes."""
    if len(text) == _ADDRESS_CHARACTERS and text.startswith("0x"):
        return names.address(text)
    is_plain = text.isascii() and text.removeprefix("-").isalnum() and len(text) <= _VALUE_CHARACTERS
    return text if is_plain else show(text)


def _normal(selector: str) -> str:
    return "0x" + selector.lower().removeprefix("0x")
