"""The line of each item in a message: exact and whole, and nothing that its author wrote but the agent's name. Pure.

Amounts are in units of the chains' table and of the tokens that the operator names; any other token's are raw units,
for what a token calls itself is anybody's to choose.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from custody.chains.units import USD, Unit, Units

MAX_LINES: Final = 5
MAX_BYTES: Final = 1_800
MAX_NAME: Final = 40
# Effects of one order that its line tells; of the others it says how many.
_EFFECTS: Final = 2
# Control, format, private and unassigned characters, separators of lines: what is not seen, or moves what is.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Blanks and joiners that count as letters or marks, and what is read from right to left; as the page to approve has it.
_UNSEEN_TOO: Final = re.compile(
    "[\u034f\u0590-\u08ff\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufb1d-\ufdff\ufe00-\ufe0f\ufe70-\ufeff\uffa0"
    "\U00010800-\U00010fff\U0001e800-\U0001efff\U000e0100-\U000e01ef]"
)
_SMALLEST: Final = {"evm:native": "wei", "solana:native": "lamports", "bitcoin": "satoshi"}
_DOLLARS: Final = Unit("USD", 6)
# The rank of what is at three quarters of its life (`notice_claimed.sql`).
_EXPIRING: Final = 2


def name_of(text: str) -> str:
    """Quote a name that somebody chose: 40 characters, and what cannot be seen written out."""
    shown = text[:MAX_NAME] + ("..." if len(text) > MAX_NAME else "")
    plain = "".join(f"<U+{ord(c):04X}>" if _is_unseen(c) else c for c in shown)
    return '"' + plain.replace('"', "'") + '"'


def _is_unseen(c: str) -> bool:
    # Of blanks the one that everybody types is seen: two names that differ by another one look the same.
    other_blank = c != " " and unicodedata.category(c) == "Zs"
    return other_blank or unicodedata.category(c) in _UNSEEN or _UNSEEN_TOO.match(c) is not None


def item_line(item: Mapping[str, Any], units: Units) -> str:
    """Say on one line what waits or happened; the agent's name last."""
    data, event = item["data"], item["event"]
    match event:
        case "tx.pending":
            said = _order(data, units)
        case "intent.created":
            said = f"An intent ({_word(data['intentType'])}) waits"
        case "agent.frozen":
            said = f"FROZEN by {_word(data['by'])}: nothing of this agent is signed"
        case "agent.unfrozen":
            said = f"Unfrozen by {_word(data['by'])}"
        case "tenant.frozen":
            said = f"FROZEN by {_word(data['by'])}: nothing of any agent is signed"
        case "tenant.unfrozen":
            said = f"A freeze of all agents was ended by {_word(data['by'])}"
        case "breaker.tripped":
            said = "A circuit breaker tripped: too many orders were refused or failed"
        case "spend.threshold":
            said = _share(data, units)
        case "policies.changed":
            whose = "a policy set" if data.get("policySetId") is not None else "an agent"
            said = f"The rules of {whose} were made looser by {_word(data['by'])}"
        case _:
            said = f"{_word(event)} happened"
    urgent = "Expires soon: " if item["rank"] == _EXPIRING else ""
    agent = item.get("name") or item.get("agent")
    return f"{urgent}{said}" + (f" (agent {name_of(agent)})" if agent else "")


def said_line(said: Mapping[str, Any]) -> str:
    """Say what no event tells: that a channel was changed, or that this is a test."""
    if said["event"] == "channel.test":
        return "This is a test. You are told here when something waits."
    # Of what the service did by itself, no kind is told.
    kind = f"{_word(said['kind'])} " if "kind" in said else ""
    return f"A {kind}channel for these messages was {_word(said['what'])} (by {_word(said['by'])})"


def link(public_url: str, tenant: str, items: Sequence[Mapping[str, Any]], total: int) -> str:
    """The page to decide on; what is behind `#` reaches no server, so nobody who looks at the link learns of it."""
    base = f"{public_url.rstrip('/')}/approve#{quote(tenant, safe='')}"
    if total == 1 and items and items[0]["event"] == "tx.pending":
        return f"{base}/{quote(str(items[0]['data']['approvalId']), safe='')}"
    return base


def title(items: Sequence[Mapping[str, Any]], total: int) -> str:
    """Say how much there is in a few words that nobody chose."""
    waiting = sum(1 for item in items if item["event"] in ("tx.pending", "intent.created"))
    if total == 0:
        return "Custody"
    if waiting == len(items):
        return "Custody: 1 request waits" if total == 1 else f"Custody: {total:,} requests wait"
    return "Custody: 1 message" if total == 1 else f"Custody: {total:,} messages"


def _order(data: Mapping[str, Any], units: Units) -> str:
    chain = data.get("chainId")
    # A fee is no reason to look: every order has one.
    effects = [effect for effect in data["effects"] if effect["kind"] != "fee"]
    told = [_effect(effect, chain, units) for effect in effects[:_EFFECTS]]
    left = len(effects) - len(told) + int(data.get("moreEffects", 0))
    if not told:
        told = [f"An order ({_word(data['kind'])}) that moves nothing by itself"]
    more = f"; AND {left:,} MORE" if left else ""
    place = f" on chain {chain}" if isinstance(chain, int) else ""
    release = data.get("releaseAt")
    # Silence is consent here, so the line says what becomes of it.
    itself = f"; SIGNED BY ITSELF at {_word(release)} unless somebody denies it" if release is not None else ""
    return f"{'; '.join(told)}{more}{place}{itself}"


def _effect(effect: Mapping[str, Any], chain: int | None, units: Units) -> str:
    amount, asset = effect.get("amount"), effect.get("asset")
    whom = _word(str(effect.get("spender") or effect.get("to") or "nobody named"))
    match effect["kind"]:
        case "transfer":
            return f"Send {_amount(amount, asset, chain, units)} to {whom}"
        case "approval" if effect.get("unlimited"):
            return f"UNLIMITED approval of {_asset(asset)} for {whom}"
        case "approval":
            return f"Approval of {_amount(amount, asset, chain, units)} for {whom}"
        case "call":
            return f"Call {whom}"
        case "unread" | "opaque":
            return f"CANNOT BE READ: something for {whom}"
        case other:
            return f"{_word(other)} for {whom}"


def _amount(amount: Any, asset: Any, chain: int | None, units: Units) -> str:
    try:
        whole = int(amount)
    except (TypeError, ValueError):
        return "an amount that is not a number"
    unit = _unit_of(str(asset), chain, units)
    if unit is not None:
        return unit.tell(whole)
    smallest = _SMALLEST.get(str(asset))
    return f"{whole} {smallest}" if smallest is not None else f"{whole} raw units of {_asset(asset)}"


def _unit_of(asset: str, chain: int | None, units: Units) -> Unit | None:
    if asset == USD:
        return _DOLLARS
    _family, *named = asset.split(":")
    if named[-1:] == ["native"]:
        # A limit may be on the coin of one chain, `evm:137:native`; an order says its chain.
        told = int(named[0]) if named[0].isdigit() else chain
        return units.coins.get(told) if told is not None else None
    return units.tokens.get(asset)


def _asset(asset: Any) -> str:
    return f"token {_word(str(asset))}" if asset is not None else "something not named"


def _share(data: Mapping[str, Any], units: Units) -> str:
    chain = None
    spent = _amount(data["spent"], data["asset"], chain, units)
    limit = _amount(data["limit"], data["asset"], chain, units)
    return f"{int(data['percent'])} % of a limit is used: {spent} of {limit} in a {_word(data['window'])}"


def _word(text: str) -> str:
    """An address, id or word of the service, of which nothing but printable ASCII is shown."""
    return "".join(c if " " < c <= "~" or c == " " else f"<U+{ord(c):04X}>" for c in str(text))
