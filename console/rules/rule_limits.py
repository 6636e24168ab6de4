"""The terms of rules about amounts and numbers, in words. Pure."""

from typing import Final

from console.rules.rule_places import chain_shown
from console.rules.rule_terms import NAME_CHARACTERS, Names, Terms, is_number
from console.texts.amounts import coins, human, malformed, self_called, tokens, whole
from console.texts.chains import BTC, EVM, SOL
from console.texts.plain import clipped
from console.texts.said import Said

# What a rule counts that names no asset.
_NATIVES: Final = ""
# A thousand million SOL; about six hundred million have been made.
_MORE_LAMPORTS_THAN_THERE_ARE: Final = 10**18
_WINDOWS: Final = (
    ("maxPerTransaction", "in one transaction"), ("maxPerTx", "in one transaction"),
    ("maxPerDay", "in any 24 hours"), ("maxPerWeek", "in any 7 days"),
)  # fmt: skip


def spending_limit(terms: Terms) -> list[Said]:
    """How much of one asset may move."""
    asset = terms.text("asset", _NATIVES)
    lines = [Said(f"counts {_counted(asset, terms.names)}")]
    for name, window in _WINDOWS:
        if (amount := terms.amount(name)) is not None:
            lines += [Said(f"at most {text} {window}") for text in amounts_of(amount, asset, terms.names)]
            lines += _without_effect(amount, asset, f"limits nothing {window}")
    if (percents := terms.items("alertPercents", is_number)) is not None:
        told = " and ".join(f"{one}%" for one in percents)
        lines.append(
            Said(f"tells the tenant's webhooks at {told}" if told else "tells no webhook as it fills", "quiet")
        )
    return lines


def auto_approve_threshold(terms: Terms) -> list[Said]:
    """Above which amount a person is asked."""
    asset, amount = terms.text("asset", _NATIVES), terms.amount("threshold")
    lines = [Said(f"counts {_counted(asset, terms.names)}")]
    if amount is not None:
        lines += [Said(f"above {text} a person must approve") for text in amounts_of(amount, asset, terms.names)]
        lines += _without_effect(amount, asset, "asks nobody")
        lines.append(Said("up to that this rule asks nobody", "quiet"))
    return lines


def rate_limit(terms: Terms) -> list[Said]:
    """How many orders there may be."""
    found = [(terms.number("maxTxPerHour"), "hour"), (terms.number("maxTxPerDay"), "day")]
    lines = [Said(f"at most {_orders(most)} in any {window}") for most, window in found if most is not None]
    return [*lines, Said("counts what was signed and what was laid before a person", "quiet")]


def amounts_of(text: str, asset: str | None, names: Names) -> list[str]:
    """An amount of an asset; where a rule names none, one for each family, for its number means two amounts."""
    match asset:
        case "":
            # No wallet here holds bitcoins.
            return [f"{coins(text, EVM)} on EVM chains"] + ([] if _beyond(text) else [f"{coins(text, SOL)} on Solana"])
        case "evm:native":
            return [coins(text, EVM)]
        case "solana:native":
            return [coins(text, SOL)]
        case "bitcoin":
            return [coins(text, BTC)]
        case _:
            return [tokens(text, names.tokens.get(asset or "")) if whole(text) is not None else malformed(text)]


def _without_effect(text: str, asset: str | None, what: str) -> list[Said]:
    """Of a number that was meant in wei the same number of lamports says nothing."""
    if asset != _NATIVES or not _beyond(text):
        return []
    return [Said(f"on Solana it {what}: {human(whole(text) or 0, SOL.decimals)} SOL is more than there is", "quiet")]


def _beyond(text: str) -> bool:
    return (whole(text) or 0) >= _MORE_LAMPORTS_THAN_THERE_ARE


def _counted(asset: str | None, names: Names) -> str:
    match asset:
        case None:
            return "something that is not understood here"
        case "":
            return "the chains' own coins: of all EVM chains together, of Solana apart"
        case "evm:native":
            return "the own coins of all EVM chains (ETH and the like) together"
        case "solana:native":
            return "SOL"
        case "bitcoin":
            return "BTC, with the network's fee"
    family, _, rest = asset.partition(":")
    chain, _, address = rest.partition(":")
    called = self_called(names.tokens.get(asset))
    told = f", which {called}" if called else ""
    if family == "evm" and chain.isascii() and chain.isdecimal() and address:
        return f"the token {clipped(address, NAME_CHARACTERS)} on {chain_shown(chain)}{told}"
    if family == "solana" and rest:
        return f"the token {clipped(rest, NAME_CHARACTERS)} on Solana{told}"
    return clipped(asset, NAME_CHARACTERS)


def _orders(number: int) -> str:
    return "1 order" if number == 1 else f"{number:,} orders"
