"""The terms of rules about amounts and numbers, in words. Pure."""

from typing import Final

from console.rules.rule_places import chain_shown
from console.rules.rule_terms import NAME_CHARACTERS, Names, Terms, is_number, show
from words.texts.amounts import bad_amount, coins, human, self_called, tokens, whole
from words.texts.chains import BTC, DOLLARS, EVM, SOL, coin_chain, native_coin
from words.texts.lines import Line
from words.texts.plain import clip

_URL_CHARACTERS: Final = 200
# What a rule counts that names no asset.
_NATIVES: Final = ""
# Of each coin beside those of EVM chains, its family's name and more of its smallest unit than there is: a thousand
# million SOL, of which about six hundred million have been made, and the 21 million BTC that there will ever be.
_OTHERS: Final = (("Solana", SOL, 10**18), ("Bitcoin", BTC, 21 * 10**14))
_WINDOWS: Final = (
    ("maxPerTransaction", "in one transaction"),
    ("maxPerTx", "in one transaction"),
    ("maxPerDay", "in any 24 hours"),
    ("maxPerWeek", "in any 7 days"),
    ("maxTotal", "in its whole life"),
)


def spending_limit(terms: Terms) -> list[Line]:
    """Describe how much of one asset may move."""
    asset = terms.text("asset", _NATIVES)
    lines = [Line(f"counts {_unit(asset, terms.names)}"), *_scope(terms)]
    said: set[tuple[str, str]] = set()
    for name, window in _WINDOWS:
        # The dashboard shows one limit under both of its names.
        if (amount := terms.amount(name)) is not None and (amount, window) not in said:
            said.add((amount, window))
            lines += [Line(f"at most {text} {window}") for text in amounts_of(amount, asset, terms.names)]
            lines += _without_effect(amount, asset, f"limits nothing {window}")
    if (rent := terms.amount("maxRentPerDay")) is not None:
        lines.append(Line(f"at most {coins(rent, SOL)} of rent for new token accounts in any 24 hours"))
        lines.append(Line("up to that, no approval is needed for the rent", "quiet"))
    if (percents := terms.items("alertPercents", is_number)) is not None:
        told = " and ".join(f"{one}%" for one in percents)
        lines.append(
            Line(f"notifies the tenant's webhooks at {told}" if told else "sends no webhook as it fills", "quiet")
        )
    return lines


def _scope(terms: Terms) -> list[Line]:
    """Of a rule of a policy set: whose spending it counts."""
    match terms.text("scope", "agent"):
        case "agent" | None:
            return []
        case "set":
            return [Line("counts what all agents of the set spend together")]
        case other:
            return [Line(f"counts what is spent in an unknown scope: {show(other)}", "warn")]


def auto_approve_threshold(terms: Terms) -> list[Line]:
    """Above which amount a person is asked."""
    asset, amount = terms.text("asset", _NATIVES), terms.amount("threshold")
    lines = [Line(f"counts {_unit(asset, terms.names)}")]
    if amount is not None:
        lines += [Line(f"above {text} a person must approve") for text in amounts_of(amount, asset, terms.names)]
        lines += _without_effect(amount, asset, "asks nobody")
        lines.append(Line("up to that, no approval is needed by this rule", "quiet"))
    return lines


def delay(terms: Terms) -> list[Line]:
    """Describe the time after which an order is signed by itself, and above which amount."""
    minutes, above, asset = terms.number("minutes"), terms.amount("above"), terms.text("asset", _NATIVES)
    lines = [] if minutes is None else [Line(f"an order is signed by itself after {minutes:,} minutes")]
    lines.append(Line("until then a person may deny or approve it; freezing stops it"))
    lines.append(Line("what has no bound waits for a person"))
    if above is not None:
        lines.append(Line(f"counts {_unit(asset, terms.names)}"))
        lines += [Line(f"up to {text} it need not wait") for text in amounts_of(above, asset, terms.names)]
    return lines


def circuit_breaker(terms: Terms) -> list[Line]:
    """Describe how many refusals and failures freeze the agent."""
    minutes, refused, failed = (terms.number(name) for name in ("minutes", "refused", "failed"))
    window = "" if minutes is None else f" within {minutes:,} minutes"
    lines = [] if refused is None else [Line(f"{refused:,} orders that rules refuse{window} freeze the agent")]
    return lines if failed is None else [*lines, Line(f"{failed:,} orders that fail{window} freeze the agent")]


def external_check(terms: Terms) -> list[Line]:
    """Describe who is asked about each order, and what becomes of one that nobody answers for."""
    url, otherwise, seconds = terms.text("url"), terms.text("onFailure", "ask"), terms.number("timeoutSeconds")
    keys = terms.items("publicKeys", lambda key: isinstance(key, str)) or []
    lines = [] if url is None else [Line(f"asks {clip(url, _URL_CHARACTERS)} about each order, for {seconds or 3} s")]
    lines += [Line(f"an answer counts if this key signed it: {clip(key, NAME_CHARACTERS)}") for key in keys]
    match otherwise:
        case "ask":
            return [*lines, Line("without an answer a person must approve")]
        case "refuse":
            return [*lines, Line("without an answer it refuses")]
        case other:
            return [*lines, Line(f"without an answer it does what this console does not know: {show(other)}", "warn")]


def rate_limit(terms: Terms) -> list[Line]:
    """Describe how many orders there may be."""
    found = [(terms.number("maxTxPerHour"), "hour"), (terms.number("maxTxPerDay"), "day")]
    lines = [Line(f"at most {_orders(most)} in any {window}") for most, window in found if most is not None]
    return [*lines, Line("counts signed and queued orders", "quiet")]


def amounts_of(text: str, asset: str | None, names: Names) -> list[str]:
    """An amount of an asset; where a rule names none, one for each family, for its number means two amounts."""
    match asset:
        case "":
            others = [f"{coins(text, coin)} on {name}" for name, coin, all_of_it in _OTHERS if _some(text) < all_of_it]
            return [f"{coins(text, EVM)} on EVM chains", *others]
        case "evm:native":
            return [coins(text, EVM)]
        case "solana:native":
            return [coins(text, SOL)]
        case "bitcoin":
            return [coins(text, BTC)]
        case "usd":
            return [coins(text, DOLLARS)]
        case _ if (chain := coin_chain(asset)) is not None:
            return [coins(text, native_coin("evm:native", chain) or EVM)]
        case _:
            return [tokens(text, names.tokens.get(asset or "")) if whole(text) is not None else bad_amount(text)]


def _without_effect(text: str, asset: str | None, what: str) -> list[Line]:
    """Of a number that was meant in wei the same number of lamports or satoshis says nothing."""
    if asset != _NATIVES:
        return []
    return [
        Line(f"on {name} it {what}: {human(_some(text), coin.decimals)} {coin.symbol} is more than there is", "quiet")
        for name, coin, all_of_it in _OTHERS
        if _some(text) >= all_of_it
    ]


def _some(text: str) -> int:
    return whole(text) or 0


def _unit(asset: str | None, names: Names) -> str:
    match asset:
        case None:
            return "something this console cannot interpret"
        case "":
            return "native coins: all EVM chains together, Solana and Bitcoin separately"
        case "evm:native":
            return "native coins of all EVM chains (ETH and others) together"
        case "solana:native":
            return "SOL"
        case "bitcoin":
            return "BTC, with the network's fee"
        case "usd":
            return "what everything that moves is worth, by the operator's prices"
        case _ if (number := coin_chain(asset)) is not None:
            coin = native_coin("evm:native", number) or EVM
            return f"{coin.symbol} on {chain_shown(str(number))}"
    family, _, rest = asset.partition(":")
    chain, _, address = rest.partition(":")
    called = self_called(names.tokens.get(asset))
    told = f", which {called}" if called else ""
    if family == "evm" and chain.isascii() and chain.isdecimal() and address:
        return f"the token {clip(address, NAME_CHARACTERS)} on {chain_shown(chain)}{told}"
    if family == "solana" and rest:
        return f"the token {clip(rest, NAME_CHARACTERS)} on Solana{told}"
    return clip(asset, NAME_CHARACTERS)


def _orders(number: int) -> str:
    return "1 order" if number == 1 else f"{number:,} orders"
