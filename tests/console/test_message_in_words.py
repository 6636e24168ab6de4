"""A message is shown letter for letter, nothing of it passes for the console's words, and its danger stands first."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.rules.typed_order import BadField, question
from console.wire.answers import Answer, data_of
from console.wire.failures import Failure
from custody.chains.message_effects import read_order, subject_of
from custody.chains.message_orders import EvmMessageOrder, SolanaMessageOrder
from custody.chains.message_sign_in import sign_in_of
from tests.console.orders import lines_of, order
from tests.console.test_plain import ANY, NASTY
from words.orders.dangers import dangers, warns
from words.orders.details import details
from words.orders.order import Known, Order
from words.orders.words import essentials, summary
from words.shapes import Effect
from words.texts.plain import plain

ADDRESS = "0x" + "11" * 20
SOLANA = "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin"
STATEMENT = "I accept the terms: https://app.example.com/terms"
URIS = ["for", "chain", "issued", "it names no end"]
ASKS = 'Agent "Payer" (payer) asks for this.'
GOOD_FOR = "Signs a message: anyone who holds the signature may use it for whatever it is good for."
READ_ALL = "! What this message is good for only its reader knows: read all of it."
NOT_PLAIN = "! Not plain text: nobody can read all of what is signed."
LOOKS_LIKE = "! It looks like a sign-in and is none to the letter: a careless site may take it."


def sign_in(*more: str, site: str = "app.example.com", statement: str = STATEMENT, uri: str = "") -> str:
    """A sign-in message of the EVM wallet."""
    fields = ["Version: 1", "Chain ID: 1", "Nonce: 32891756abcDEF", "Issued At: 2026-03-01T12:00:00Z", *more]
    said = f"{statement}\n" if statement else ""
    head = f"{site} wants you to sign in with your Ethereum account:\n{ADDRESS}\n\n{said}\n"
    return head + "\n".join([f"URI: {uri or f'https://{site}/login'}", *fields])


def solana_sign_in(*fields: str, statement: str = "") -> str:
    """A sign-in message of the Solana wallet, with as many fields as one likes."""
    parts = [f"app.example.com wants you to sign in with your Solana account:\n{SOLANA}", statement, "\n".join(fields)]
    return "\n\n".join(part for part in parts if part)


def message_order(message: str | bytes, family: str = "evm") -> tuple[Order, Known]:
    """The order to sign a message, as the service tells it."""
    raw = message if isinstance(message, bytes) else None
    if raw is None:
        sent: dict[str, Any] = {"message": message}
    else:
        sent = {"raw": "0x" + raw.hex() if family == "evm" else base64.b64encode(raw).decode()}
    asks = EvmMessageOrder(**sent) if family == "evm" else SolanaMessageOrder(**sent)
    read = read_order(asks)
    chain = read.sign_in.chain if read.sign_in else None
    found = subject_of(asks, read, ADDRESS if family == "evm" else SOLANA, None, chain).effects[0]
    effect = Effect(found.kind, label=plain(found.label or ""), unknown=found.unknown, size=found.size)
    number = int(chain[7:]) if chain and chain.startswith("eip155:") else None
    shown = order(effect, kind=f"{family}_message", chain_id=number, caip2=chain)
    return shown, Known(data={name: plain(text) for name, text in sent.items()})


def text_in(lines: list[str]) -> str:
    """Return the text behind the bars."""
    return "".join(line.removeprefix("  | ") for line in lines if line.startswith("  | "))


def test_a_sign_in_says_where_to_for_what_and_how_long() -> None:
    text = sign_in("Expiration Time: 2026-03-01T13:00:00Z", "Not Before: 2026-03-01T12:05:00Z", "Request ID: r-7")

    assert lines_of(*message_order(text)) == [
        'Signs in as this wallet to "app.example.com".',
        f'  statement: "{STATEMENT}"',
        '  for: "https://app.example.com/login"',
        '  chain: "1"',
        '  issued: "2026-03-01T12:00:00Z"',
        '  good from: "2026-03-01T12:05:00Z"',
        '  good until: "2026-03-01T13:00:00Z"',
        '  request: "r-7"',
        "It says:",
        "  | app.example.com wants you to sign in with your Ethereum account:\\n",
        f"  | {ADDRESS}\\n",
        "  | \\n",
        f"  | {STATEMENT}\\n",
        "  | \\n",
        "  | URI: https://app.example.com/login\\n",
        "  | Version: 1\\n",
        "  | Chain ID: 1\\n",
        "  | Nonce: 32891756abcDEF\\n",
        "  | Issued At: 2026-03-01T12:00:00Z\\n",
        "  | Expiration Time: 2026-03-01T13:00:00Z\\n",
        "  | Not Before: 2026-03-01T12:05:00Z\\n",
        "  | Request ID: r-7",
        "It is for Ethereum, by its own word.",
        ASKS,
    ]


@pytest.mark.parametrize(
    ("text", "family", "fields"),
    [
        (sign_in(statement=""), "evm", URIS),
        (sign_in("Resources:", "- https://a.example"), "evm", ["statement", *URIS]),
        (solana_sign_in(), "solana", ["it names no end"]),
        (solana_sign_in(statement="Version two is better: sign."), "solana", ["statement", "it names no end"]),
        (solana_sign_in("Version: 1", "Chain ID: devnet"), "solana", ["chain", "it names no end"]),
        (solana_sign_in("Nonce: oBbLoEldZs"), "solana", ["it names no end"]),
        (solana_sign_in("Resources:", "- https://a.example"), "solana", ["it names no end"]),
        (solana_sign_in("Expiration Time: 2026-03-01T13:00:00Z"), "solana", ["good until"]),
    ],
    ids=["no statement", "resources", "nothing", "statement alone", "chain", "nonce", "resources alone", "end"],
)  # fmt: skip
def test_a_sign_in_has_no_field_that_its_message_has_not(text: str, family: str, fields: list[str]) -> None:
    assert sign_in_of(text) is not None

    lines = lines_of(*message_order(text, family))

    told = lines[1 : lines.index("It says:")]
    assert [line.strip().partition(":")[0] for line in told] == fields


@given(ANY | NASTY | st.text("ab \n\\", max_size=200))
def test_every_letter_of_a_message_stands_behind_a_bar_and_no_other_line_is_its_author_s(text: str) -> None:
    data = plain(text)
    shown, known = order(Effect("unread", label="message"), kind="evm_message"), Known(data={"message": data})

    for lines in (lines_of(shown, known)[2:], [line.text for line in details(shown, known)]):
        assert text_in(lines) == data
        assert all(line.isprintable() for line in lines)
    assert lines_of(shown, known)[:2] == [GOOD_FOR, "It says:"]
    assert [line for line in lines_of(shown, known)[2:] if not line.startswith("  | ")] == [
        "The agent says that it is for Ethereum; such a signature is good on every chain.",
        ASKS,
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay \u202e001\u2066", ["  | pay <U+202E>001<U+2066>"]),
        ("\x1b[2J\x1b]52;c;ZXZpbA==\x07", ["  | \\x1b[2J\\x1b]52;c;ZXZpbA==\\x07"]),
        ("[red]x[/] [@click=app.quit]q[/]", ["  | [red]x[/] [@click=app.quit]q[/]"]),
        (f"\n{ASKS}\r\nIt is for Ethereum.", ["  | \\n", f"  | {ASKS}\\r\\n", "  | It is for Ethereum."]),
        ("a\u2028b\x85c\u200bd", ["  | a<U+2028>b\\x85c<U+200B>d"]),
        ("W" * 2_000, [f"  | {'W' * 2_000}"]),
    ],
    ids=["bidi", "escapes", "markup", "our own words", "separators", "long line"],
)
def test_hostile_text_is_harmless_and_stays_in_its_lines(text: str, shown: list[str]) -> None:
    lines = lines_of(*message_order(text))

    assert lines[2:-2] == shown


def test_a_long_message_says_how_much_of_it_is_not_shown() -> None:
    broken, unbroken = message_order("harmless\n" * 60 + "evil"), message_order("W" * 72 * 41)

    assert lines_of(*broken)[2:-2] == ["  | harmless\\n"] * 40 + [
        "Not all of the message is shown here: 21 lines more."
    ]
    assert lines_of(*unbroken)[2:-2] == [f"  | {'W' * 72 * 40}", "Not all of the message is shown here: 1 line more."]
    assert warns(essentials(*broken))
    assert text_in([line.text for line in details(*broken)]) == "harmless\\n" * 60 + "evil"


@pytest.mark.parametrize("body", ['{"message": "\\ud800"}', '{"message": "\\udfff x"}'])
def test_half_of_a_surrogate_pair_never_arrives(body: str) -> None:
    with pytest.raises(BadField):
        question("message", {"body": body})
    with pytest.raises(Failure):
        data_of(Answer("http://x", 200, {}, b'{"ok": true, "data": %s}' % body.encode(), False, False))


@pytest.mark.parametrize("family", ["evm", "solana"])
def test_bytes_that_are_text_are_shown_as_text_and_others_as_bytes(family: str) -> None:
    text, other = message_order("grüße\n".encode(), family), message_order(b"\xff\x00" * 40, family)

    assert lines_of(*text)[1:4] == ["It says:", "  | grüße\\n", "It is for no one chain."]
    assert lines_of(*other)[1:3] == ["Bytes that are no text, 80 of them:", f"  {'ff00' * 40}"]
    assert [line.text for line in details(*other)][-2:] == lines_of(*other)[1:3]


def test_base64_that_begins_as_hex_does_is_read_as_the_service_reads_it() -> None:
    content = base64.b64decode("0xyzABCD")

    assert lines_of(*message_order(content, "solana"))[1:3] == [
        "Bytes that are no text, 6 of them:",
        f"  {content.hex()}",
    ]


@pytest.mark.parametrize("data", [None, {}, "hello", {"raw": 7}, {"raw": "0x0"}, {"raw": "é"}, {"message": None}])
def test_a_message_that_is_not_known_is_said_to_be_so(data: object) -> None:
    shown, known = order(Effect("unread", label="message"), kind="evm_message"), Known(data=data)

    assert lines_of(shown, known)[:2] == [GOOD_FOR, "The message is not known here."]
    assert warns(essentials(shown, known))
    assert warns(dangers(shown, known))


@pytest.mark.parametrize(
    ("message", "title", "first"),
    [
        ("hello", "Signs a message", [READ_ALL]),
        (b"hello", "Signs a message", [READ_ALL]),
        ("a\0b", "Signs bytes that are no plain text", [NOT_PLAIN]),
        ("pay \u202e001", "Signs bytes that are no plain text", [NOT_PLAIN]),
        (b"\xff\xfe\xfd", "Signs bytes that are no plain text", [NOT_PLAIN]),
        (sign_in() + "\nand more", "Signs a message", [LOOKS_LIKE]),
        (sign_in().upper() + "\r", "Signs bytes that are no plain text", [LOOKS_LIKE, NOT_PLAIN]),
        (sign_in(), 'Signs in to "app.example.com"', ['! Signing in as this wallet to "app.example.com".']),
        (
            sign_in(site="xn--pple-43d.com"),
            'Signs in to "xn--pple-43d.com"',
            [
                '! Signing in as this wallet to "xn--pple-43d.com".',
                "! The site's name is punycode (xn--): a browser may show it like another name.",
            ],
        ),
        (
            sign_in("Resources:", "- urn:recap:eyJhdHQiOnt9fQ", uri="https://evil.example/x"),
            'Signs in to "app.example.com"',
            [
                '! Signing in as this wallet to "app.example.com".',
                '! Its URI is of another site: "evil.example".',
                "! It gives others a capability (urn:recap).",
            ],
        ),
    ],
    ids=["text", "text as bytes", "control", "bidi", "bytes", "nearly", "nearly, hidden", "sign-in", "xn--", "recap"],
)  # fmt: skip
def test_the_danger_is_said_before_a_signature_and_a_list_has_it_in_one_line(
    message: str | bytes, title: str, first: list[str]
) -> None:
    shown, known = message_order(message)

    assert summary(shown, known) == title
    assert [line.text for line in dangers(shown, known)] == first
    assert {line.tone for line in dangers(shown, known)} == {"bad"}


def test_the_site_in_a_list_is_clipped_and_keeps_its_quotation_marks() -> None:
    shown, known = message_order(sign_in(site="a" * 200 + ".example"))

    assert summary(shown, known) == f'Signs in to "{"a" * 40}… (208 characters)"'
    assert len(lines_of(shown, known)[0]) < 300


def test_a_message_that_is_not_known_yet_is_not_said_to_be_no_text() -> None:
    shown, _ = message_order("hello")

    assert [line.text for line in dangers(shown, Known())] == [READ_ALL]


def test_a_message_for_no_chain_says_that_it_is_for_no_one_chain() -> None:
    assert lines_of(*message_order("hello"))[-2:] == ["It is for no one chain.", ASKS]
    assert lines_of(*message_order(solana_sign_in("Chain ID: devnet"), "solana"))[-2:] == [
        "It is for solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1, by its own word.",
        ASKS,
    ]
