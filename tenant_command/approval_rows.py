"""One item of the queue in the columns of a list: how much, of what, to whom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from console.wire.failures import Away, Failure, SignedOut
from tenant_command.call import Call, path
from words.orders.message_in_words import is_message, message_title
from words.orders.order import Known, Order, of_approval
from words.orders.parties import brief, spelling, token_of
from words.orders.phrases import is_unlimited, nft_number, rank
from words.orders.words import summary
from words.shapes import AgentTokens, Approval, Effect, TokenFunds
from words.texts.amounts import human, self_called, told_decimals, whole
from words.texts.chains import native_coin
from words.texts.plain import clip

_AMOUNTS: Final = frozenset({"transfer", "approval", "fee"})
_WORDS: Final = {"unread": "not decoded", "opaque": "not decoded", "call": "a call"}
_MOST_TOKENS: Final = 25
_NUMBER_CHARACTERS: Final = 40


@dataclass(frozen=True)
class Row:
    """An item by the gravest of its effects. In full addresses are not shortened."""

    item: Approval
    tokens: Mapping[str, TokenFunds]
    in_full: bool

    @property
    def amount(self) -> str:
        """The amount; in words where that is no number."""
        effect = self._effect
        if is_message(self._order):
            return message_title(self._order)
        if effect is None:
            return summary(self._order, self._known)
        more = f" and {self._more} more" if self._more > 0 else ""
        if effect.kind not in _AMOUNTS:
            return f"{_WORDS.get(effect.kind, 'unknown effect')}{more}"
        if is_unlimited(effect):
            return f"UNLIMITED{more}"
        spends = "may spend " if effect.kind == "approval" else ""
        return f"{spends}{self._number(effect)}{more}"

    @property
    def asset(self) -> str:
        """Of what: a coin by its name; a token by its address, and what it calls itself."""
        effect = self._effect
        if effect is None or effect.asset is None:
            return ""
        if (coin := native_coin(effect.asset, self.item.chain_id)) is not None:
            return coin.symbol
        token = token_of(effect.asset)
        called = self_called(self.tokens.get(effect.asset)).removeprefix("calls itself ")
        return " ".join(filter(None, (self._spelling(token) if token else effect.asset, called)))

    @property
    def recipient(self) -> str:
        """To whom it goes, or who may spend it."""
        effect = self._effect
        found = (effect.spender or effect.to if effect else None) or self.item.to_address
        return self._spelling(found) if found else ""

    @cached_property
    def _order(self) -> Order:
        return of_approval(self.item)

    @cached_property
    def _known(self) -> Known:
        return Known(tokens=dict(self.tokens))

    @cached_property
    def _effect(self) -> Effect | None:
        effects = sorted(self.item.effects, key=lambda effect: rank(effect, self._order, self._known))
        return effects[0] if effects else None

    @property
    def _more(self) -> int:
        return sum(effect.kind != "fee" for effect in self.item.effects) - 1

    def _number(self, effect: Effect) -> str:
        amount = whole(effect.amount)
        if amount is None:
            return "an amount that is not a number"
        if number := nft_number(effect):
            return f"NFT {clip(number, _NUMBER_CHARACTERS)}"
        coin = native_coin(effect.asset, self.item.chain_id)
        decimals = coin.decimals if coin else told_decimals(self.tokens.get(effect.asset or ""))
        return f"{amount:,} raw units" if decimals is None else human(amount, decimals)

    def _spelling(self, address: str) -> str:
        return spelling(address) if self.in_full else brief(address)


async def facts_of_tokens(call: Call, items: Sequence[Approval]) -> dict[str, TokenFunds]:
    """Ask what the tokens in a list say of themselves, by asset; empty where no node answers.

    One request for each EVM chain. Any agent may be asked about, for a token says the same to all.
    """
    wanted: dict[int, tuple[str, dict[str, str]]] = {}
    for item in items:
        for effect in item.effects:
            family, _, rest = (effect.asset or "").partition(":")
            chain, _, token = rest.partition(":")
            if family == "evm" and chain.isascii() and chain.isdecimal() and token_of(effect.asset) == token:
                _, named = wanted.setdefault(int(chain), (item.agent_id, {}))
                if len(named) < _MOST_TOKENS:
                    named[effect.asset or ""] = token
    found: dict[str, TokenFunds] = {}
    for chain_id, (agent, named) in wanted.items():
        addresses = ",".join(dict.fromkeys(named.values()))
        try:
            answer = await call.client.get(
                path("agents", agent, "tokens"), AgentTokens, chainId=chain_id, tokens=addresses
            )
        except (SignedOut, Away):
            raise
        except Failure:
            continue
        told = {one.address.lower(): one for one in answer.tokens}
        found |= {asset: told[token.lower()] for asset, token in named.items() if token.lower() in told}
    return found
