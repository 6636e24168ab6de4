"""A message in the form of each kind of channel: nothing that others wrote is markup, a mention or a link. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from custody.chains.units import Units
from custody.protocol.identity.channels import ChannelKind
from scheduler.notices import words

_MARKUP: Final = re.compile(r"([\\*_~`|>#\-+\[\]()<!:@.])")
_encode = msgspec.json.Encoder().encode
_JSON: Final = {"Content-Type": "application/json"}
# Of ntfy: shown over other notifications, or not.
_LOUD, _PLAIN = "5", "3"
_GRAVE: Final = 3
# Characters of what PagerDuty shows of an alert; it cuts what is longer.
_SUMMARY: Final = 1_024


class Message(NamedTuple):
    """The content of a message, before it has a form. `link` is ours, and the only one."""

    title: str
    lines: Sequence[str]
    more: int
    link: str
    is_grave: bool

    @property
    def text(self) -> str:
        """The text alone, without the link."""
        more = [f"and {self.more:,} more"] if self.more else []
        return "\n".join([*self.lines, *more])


class Sent(NamedTuple):
    """A request: headers and body."""

    headers: dict[str, str]
    body: bytes


def discord_inert(text: str) -> str:
    """Text in which Discord sees no markup, mention, channel or link."""
    return _MARKUP.sub(r"\\\1", text)


def compose(row: Mapping[str, Any], public_url: str, units: Units) -> Message:
    """The message of a claimed notice: what is gravest first, five lines, and how many more there are."""
    items = _items(row)
    total = row["total"]
    said = [words.said_line(msgspec.json.decode(one)) for one in row["said"]]
    link = words.link(public_url, row["tenant_id"], items, total)
    title = words.title(items, total) if total else ("Custody: a test" if row["purpose"] == "test" else "Custody")
    grave = any(item["rank"] < _GRAVE for item in items)
    if row["detail"] == "count":
        return Message(title, said[: words.MAX_LINES], max(0, len(said) - words.MAX_LINES), link, grave)
    found = said + [words.item_line(item, units) for item in items]
    inert = discord_inert if row["kind"] == "discord" else str
    lines = _fit(found, inert, words.MAX_BYTES - len(title) - len(link))
    return Message(title, lines, len(said) + total - len(lines), link, grave)


def _items(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    columns = ("events", "agents", "names", "ranks", "datas")
    found = zip(*(row[column] or () for column in columns), strict=True)
    return [
        {"event": event, "agent": agent, "name": name, "rank": rank, "data": msgspec.json.decode(data)}
        for event, agent, name, rank, data in found
    ]


def send_form(kind: ChannelKind, message: Message, token: str | None, tag: str) -> Sent:
    """The request that carries a message; the same tag each time that it is tried."""
    if kind == "pagerduty":
        return Sent({**_JSON, "X-Notice-Id": tag}, _alert(message, token, tag))
    told: dict[str, str] = {"Authorization": f"Bearer {token}"} if token is not None else {}
    headers, body = _FORMS[kind](message)
    return Sent({**headers, **told, "X-Notice-Id": tag}, body)


def _fit(found: Sequence[str], inert: Callable[[str], str], room: int) -> list[str]:
    lines: list[str] = []
    # A line is whole or not there: an amount or an address that was cut would be another one.
    room -= len("and 1,000,000 more\n\n\n")
    for line in found[: words.MAX_LINES]:
        room -= len(inert(line).encode()) + 1
        if room < 0:
            break
        lines.append(line)
    return lines


def _slack(message: Message) -> Sent:
    link = message.link.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "%7C")
    text = {"type": "plain_text", "text": message.text or message.title, "emoji": False}
    body = {
        "text": message.title,
        "mrkdwn": False,
        "link_names": False,
        "unfurl_links": False,
        "unfurl_media": False,
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": message.title, "emoji": False}},
            {"type": "section", "text": text},
            {
                "type": "context",
                "elements": [{"type": "mrkdwn", "text": f"<{link}|Open in Custody>", "verbatim": True}],
            },
        ],
    }
    return Sent(dict(_JSON), _encode(body))


def _discord(message: Message) -> Sent:
    text = discord_inert(message.text)
    # The angle brackets keep Discord from fetching the page.
    content = f"**{discord_inert(message.title)}**\n{text}\n<{message.link}>"
    return Sent(dict(_JSON), _encode({"content": content, "allowed_mentions": {"parse": []}, "flags": 4}))


def _teams(message: Message) -> Sent:
    # Runs of rich text have no Markdown, but for functions of dates between double braces.
    runs = [{"type": "TextRun", "text": f"{message.title}\n", "weight": "Bolder"}]
    runs += [{"type": "TextRun", "text": f"{line}\n"} for line in message.text.replace("{{", "{ {").splitlines()]
    card = {
        "type": "AdaptiveCard",
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "version": "1.4",
        "body": [{"type": "RichTextBlock", "inlines": [run]} for run in runs],
        "actions": [{"type": "Action.OpenUrl", "title": "Open in Custody", "url": message.link}],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return Sent(dict(_JSON), _encode({"type": "message", "attachments": [attachment]}))


def _telegram(message: Message) -> Sent:
    # Without a mode of parsing, Telegram still makes links, mentions and commands of what looks like one; not in here.
    inert = {"type": "pre", "offset": _utf16(message.title) + 1, "length": _utf16(message.text)}
    body = {
        "text": "\n".join(filter(None, (message.title, message.text, message.link))),
        "entities": [inert] if message.text else [],
        "link_preview_options": {"is_disabled": True},
    }
    return Sent(dict(_JSON), _encode(body))


def _alert(message: Message, token: str | None, tag: str) -> bytes:
    """An alert of PagerDuty; the same tag is the same alert."""
    # What is read out to somebody at night: the first line is whole, or not there.
    summary = f"{message.title}: {message.lines[0]}" if message.lines else message.title
    body = {
        "routing_key": token,
        "event_action": "trigger",
        "dedup_key": tag,
        "client": "Custody",
        "client_url": message.link,
        "links": [{"href": message.link, "text": "Open in Custody"}],
        "payload": {
            "summary": summary if len(summary) <= _SUMMARY else message.title,
            "source": "custody",
            "severity": "critical" if message.is_grave else "warning",
            "custom_details": {"text": message.text},
        },
    }
    return _encode(body)


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _ntfy(message: Message) -> Sent:
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "Title": message.title,
        "Priority": _LOUD if message.is_grave else _PLAIN,
        "Click": message.link,
        "Markdown": "no",
    }
    return Sent(headers, (message.text or message.title).encode())


def _apprise(message: Message) -> Sent:
    body = {
        "title": message.title,
        "body": f"{message.text}\n{message.link}".strip(),
        "type": "warning" if message.is_grave else "info",
        "format": "text",
    }
    return Sent(dict(_JSON), _encode(body))


def mail_text(message: Message) -> str:
    """The text of a mail, which has no other part."""
    text = f"{message.text}\n\n" if message.text else ""
    return f"{text}{message.link}\n"


def _mail(message: Message) -> Sent:
    return Sent({}, mail_text(message).encode())


def push_payload(message: Message) -> bytes:
    """The content of a push: text, and at most the one item that the page opens; the address is the page's own."""
    tenant, _, approval = message.link.partition("#")[2].partition("/")
    named = {"approval": unquote(approval)} if approval else {}
    return _encode({"title": message.title, "text": message.text, "tenant": unquote(tenant), **named})


_FORMS: Final[dict[ChannelKind, Callable[[Message], Sent]]] = {
    "slack": _slack,
    "discord": _discord,
    "teams": _teams,
    "telegram": _telegram,
    "ntfy": _ntfy,
    "apprise": _apprise,
    "email": _mail,
}
