"""Messages in each form: exact, whole, short, and inert whatever an agent is called."""

import unicodedata
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.units import Unit, Units
from custody.protocol.identity.channels import ChannelKind
from scheduler.notices.bodies import Message, compose, send_form
from scheduler.notices.words import MAX_BYTES, item_line, name_of

TOKEN, PAYEE = "0x" + "a1" * 20, "0x" + "00" * 17 + "b200c3"
UNITS = Units({8453: Unit("ETH", 18, "wei")}, {f"evm:8453:{TOKEN}": Unit("USDC", 6)})
URL = "https://custody.example.com"
# A push is a form of its own: sealed.
KINDS = tuple(kind for kind in get_args(ChannelKind) if kind != "webpush")
HOSTILE = "x\u202ey<b>\x1b[1m<!channel> @everyone [x](http://evil.example)"


def pending(
    *effects: dict[str, Any], name: str = "buyer", rank: int = 4, more: int = 0, number: int = 1
) -> dict[str, Any]:
    data = {
        "approvalId": f"00000000-0000-4000-8000-{number:012}",
        "kind": "evm",
        "chainId": 8453,
        "effects": [*effects, {"kind": "fee", "asset": "evm:native", "amount": "7"}],
        "moreEffects": more,
        "referenceId": "APPROVED",
    }
    return {"event": "tx.pending", "agent": "a-1", "name": name, "rank": rank, "data": data}


def transfer(amount: int, asset: str = "evm:native", to: str = PAYEE) -> dict[str, Any]:
    return {"kind": "transfer", "asset": asset, "amount": str(amount), "to": to, "label": "approved by your bank"}


def row(items: list[dict[str, Any]], *, kind: str = "slack", total: int | None = None, **fields: Any) -> dict[str, Any]:
    told = {"tenant_id": "acme", "purpose": "events", "detail": "words", "said": [], "kind": kind, **fields}
    columns = {f"{name}s": [item[name] for item in items] for name in ("event", "agent", "name", "rank")}
    datas = [msgspec.json.encode(item["data"]).decode() for item in items]
    return {**told, **columns, "datas": datas, "total": len(items) if total is None else total}


def message_of(items: list[dict[str, Any]], **fields: Any) -> Message:
    return compose(row(items, **fields), URL, UNITS)


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        (transfer(100_000_000_000_000_001), f"Send 0.100000000000000001 ETH to {PAYEE}"),
        (transfer(2**256 - 1, f"evm:8453:{TOKEN}"), f"Send {(2**256 - 1) // 10**6}.639935 USDC to {PAYEE}"),
        (transfer(7, "bitcoin"), f"Send 7 satoshi to {PAYEE}"),
        (transfer(1_500_000, "usd"), f"Send 1.5 USD to {PAYEE}"),
        (transfer(10**18, "evm:8453:native"), f"Send 1 ETH to {PAYEE}"),
        (transfer(5, "evm:8453:0xbad"), f"Send 5 raw units of token evm:8453:0xbad to {PAYEE}"),
        (
            {"kind": "approval", "asset": f"evm:8453:{TOKEN}", "amount": "1", "spender": PAYEE, "unlimited": True},
            f"UNLIMITED approval of token evm:8453:{TOKEN} for {PAYEE}",
        ),
        ({"kind": "unread", "to": PAYEE, "label": "approved"}, f"CANNOT BE READ: something for {PAYEE}"),
    ],
)
def test_a_line_has_amount_and_recipient_exact_and_whole(effect: dict[str, Any], said: str) -> None:
    assert item_line(pending(effect), UNITS) == f'{said} on chain 8453 (agent "buyer")'


def test_a_line_says_what_it_leaves_out_and_what_expires() -> None:
    line = item_line(pending(*[transfer(n) for n in (1, 2, 3)], rank=2, more=4), UNITS)

    assert line == (
        f'Expires soon: Send 1 wei to {PAYEE}; Send 2 wei to {PAYEE}; AND 5 MORE on chain 8453 (agent "buyer")'
    )


def test_a_line_says_when_an_order_is_signed_by_itself() -> None:
    delayed = pending(transfer(1))
    delayed["data"]["releaseAt"] = "2026-01-31T12:00:00.000Z"

    assert item_line(delayed, UNITS) == (
        f"Send 1 wei to {PAYEE} on chain 8453; SIGNED BY ITSELF at 2026-01-31T12:00:00.000Z unless somebody denies it "
        '(agent "buyer")'
    )


def test_a_tripped_breaker_says_so_beside_the_freeze() -> None:
    tripped = {"event": "breaker.tripped", "agent": "a", "name": "b", "rank": 0, "data": {"policyId": "stop"}}

    assert item_line(tripped, UNITS) == 'A circuit breaker tripped: too many orders were refused or failed (agent "b")'


def test_a_message_has_five_lines_and_counts_the_others() -> None:
    message = message_of([pending(transfer(n), number=n) for n in range(1, 21)], total=2000)

    assert len(message.lines) == 5
    assert message.text.endswith("\nand 1,995 more")
    assert message.title == "Custody: 2,000 requests wait"


# Of the form's own words, beside the text; an alert has its first line twice.
FRAMES = {"teams": 600, "pagerduty": 1300}


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_message_loses_lines_and_never_part_of_one(kind: str) -> None:
    long = [pending(*[transfer(2**256 - 1 - n, "evm:1:0x" + "9" * 300) for n in (1, 2)], number=n) for n in range(5)]

    message = message_of(long, kind=kind)

    assert 0 < len(message.lines) < 5
    assert message.more == 5 - len(message.lines)
    assert set(message.lines) <= {item_line(item, UNITS) for item in long}
    assert len(said_in(kind, message)) <= MAX_BYTES + FRAMES.get(kind, 250)


def test_one_request_is_linked_itself_and_several_are_linked_as_a_list() -> None:
    assert message_of([pending(transfer(1), number=7)]).link == (
        f"{URL}/approve#acme/00000000-0000-4000-8000-000000000007"
    )
    assert message_of([pending(transfer(1)), pending(transfer(2))]).link == f"{URL}/approve#acme"


def test_a_count_says_how_much_and_nothing_of_what() -> None:
    message = message_of([pending(transfer(10**18), name="secret-name")], detail="count")

    for kind in KINDS:
        said = said_in(kind, message)
        assert "1 request waits" in said or kind in ("ntfy", "email")
        assert not any(word in said for word in ("secret-name", PAYEE, "ETH"))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_its_author_wrote_is_in_a_message(kind: str) -> None:
    said = said_in(kind, message_of([pending(transfer(1))], kind=kind))

    assert "APPROVED" not in said
    assert "approved by your bank" not in said


def said_in(kind: str, message: Message) -> str:
    """Everything of a request, as it is sent."""
    sent = send_form(kind, message, None, "tag")  # type: ignore[arg-type]
    return " ".join(sent.headers.values()) + sent.body.decode()


def test_a_hostile_name_is_written_out_in_every_form() -> None:
    shown = '"x<U+202E>y<b><U+001B>[1m<!channel> @everyone [x](http:..."'
    message = message_of([pending(transfer(1), name=HOSTILE)])
    line = f"Send 1 wei to {PAYEE} on chain 8453 (agent {shown})"

    slack = msgspec.json.decode(send_form("slack", message, None, "t").body)
    assert [block["type"] for block in slack["blocks"]] == ["header", "section", "context"]
    assert slack["blocks"][1]["text"] == {"type": "plain_text", "text": line, "emoji": False}
    # What is markup in it is ours alone.
    assert slack["text"] == "Custody: 1 request waits"
    assert slack["blocks"][2]["elements"][0]["text"] == f"<{message.link}|Open in Custody>"
    assert (slack["link_names"], slack["unfurl_links"], slack["unfurl_media"]) == (False, False, False)

    discord = msgspec.json.decode(send_form("discord", message, None, "t").body)
    assert discord["allowed_mentions"] == {"parse": []}
    assert r"\<\!channel\> \@everyone \[x\]\(http\:" in discord["content"]

    ntfy = send_form("ntfy", message, "s3cret", "t")
    assert (ntfy.body.decode(), ntfy.headers["Markdown"]) == (line, "no")
    assert (ntfy.headers["Authorization"], ntfy.headers["Title"]) == ("Bearer s3cret", "Custody: 1 request waits")

    apprise = msgspec.json.decode(send_form("apprise", message, None, "t").body)
    assert apprise == {
        "title": "Custody: 1 request waits",
        "body": f"{line}\n{message.link}",
        "type": "info",
        "format": "text",
    }
    assert send_form("email", message, None, "t").body.decode() == f"{line}\n\n{message.link}\n"


@given(st.text(max_size=200))
def test_a_name_shows_whatever_moves_or_hides_text(text: str) -> None:
    shown = name_of(text)

    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in shown)
    assert shown.count('"') == 2
    assert len(shown) <= 45 or "<U+" in shown


@pytest.mark.parametrize(
    "sign", ["\u3164", "\u2800", "\uffa0", "\u115f", "\u034f", "\ufe0f", "\u00a0", "\u2003", "\u05d0"]
)
def test_a_name_shows_blanks_that_are_letters_and_what_is_read_backwards(sign: str) -> None:
    """Else two agents look the same, and the right one is told of."""
    assert name_of(f"Payroll{sign}") == f'"Payroll<U+{ord(sign):04X}>"'
    assert name_of("Zahlungen für Müller, 東京") == '"Zahlungen für Müller, 東京"'


def test_a_hostile_name_has_no_effect_in_teams_and_telegram() -> None:
    message = message_of([pending(transfer(1), name="\U0001f600 @bob {{DATE(1)}} [x](u)"), pending(transfer(2))])

    [attachment] = msgspec.json.decode(send_form("teams", message, None, "t").body)["attachments"]
    card = attachment["content"]
    # A block of text would read Markdown; a run does not.
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    assert [block["inlines"][0]["text"] for block in card["body"]] == [
        "Custody: 2 requests wait\n",
        f'Send 1 wei to {PAYEE} on chain 8453 (agent "\U0001f600 @bob {{ {{DATE(1)}}}} [x](u)")\n',
        f'Send 2 wei to {PAYEE} on chain 8453 (agent "buyer")\n',
    ]
    assert card["actions"] == [{"type": "Action.OpenUrl", "title": "Open in Custody", "url": message.link}]

    telegram = msgspec.json.decode(send_form("telegram", message, None, "t").body)
    assert telegram.keys() == {"text", "entities", "link_preview_options"}
    [inert] = telegram["entities"]
    # Telegram counts in UTF-16, where the face is two.
    units = telegram["text"].encode("utf-16-le")
    told = units[2 * inert["offset"] : 2 * (inert["offset"] + inert["length"])].decode("utf-16-le")
    assert (inert["type"], told) == ("pre", message.text)
    assert telegram["text"] == f"Custody: 2 requests wait\n{told}\n{message.link}"


def test_an_alert_has_its_key_in_the_body_alone_and_its_first_line_whole_or_not() -> None:
    def alert(message: Message) -> dict[str, Any]:
        sent = send_form("pagerduty", message, "routing-key", "tag")
        assert sent.headers == {"Content-Type": "application/json", "X-Notice-Id": "tag"}
        return msgspec.json.decode(sent.body)  # type: ignore[no-any-return]

    short = alert(message_of([pending(transfer(1))]))
    long = alert(message_of([pending(transfer(1, "evm:1:0x" + "9" * 1000))]))
    frozen = alert(message_of([{"event": "agent.frozen", "agent": "a", "name": "b", "rank": 0, "data": {"by": "u"}}]))

    assert (short["routing_key"], short["event_action"], short["dedup_key"]) == ("routing-key", "trigger", "tag")
    line = f'Send 1 wei to {PAYEE} on chain 8453 (agent "buyer")'
    assert short["payload"]["summary"] == f"Custody: 1 request waits: {line}"
    assert short["payload"]["custom_details"] == {"text": line}
    assert long["payload"]["summary"] == "Custody: 1 request waits"
    assert [one["payload"]["severity"] for one in (short, frozen)] == ["warning", "critical"]


def test_a_frozen_agent_is_loud_and_a_test_says_that_it_is_one() -> None:
    frozen = {"event": "agent.frozen", "agent": "a", "name": "b", "rank": 0, "data": {"by": "user:1"}}

    assert send_form("ntfy", message_of([frozen]), None, "t").headers["Priority"] == "5"
    test = message_of([], said=['{"event":"channel.test"}'], purpose="test")
    assert (test.title, test.lines) == ("Custody: a test", ["This is a test. You are told here when something waits."])
