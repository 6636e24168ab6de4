"""Sign-in with Ethereum: the grammar of EIP-4361 to the letter, and where and when a message is good."""

import string
import time
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.evm.address import checksum
from custody.identity.siwe import (
    SiweDomainMismatch,
    SiweMalformed,
    SiweMessage,
    SiweNotValidNow,
    check,
    domains_of,
    parse,
)
from tests.fixtures.each import each

ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DOMAINS = frozenset({"example.com", "example.com:443"})
FULL = f"""\
https://example.com wants you to sign in with your Ethereum account:
{ADDRESS}

Accept the terms: https://example.com/tos?v=1#a!

URI: https://example.com/login
Version: 1
Chain ID: 8453
Nonce: 32891756abcDEF
Issued At: 2026-01-01T11:59:00.123456789Z
Expiration Time: 2026-01-01T13:00:00+01:00
Not Before: 2026-01-01T11:00:00Z
Request ID: a-b:c@d%20
Resources:
- ipfs://bafybeiemxf5abjwjbikoz4mc3a3dla6ual3jsgpdr4cjr3oz3evfyavhwq/
- urn:uuid:5b0f4bd0-0000-4000-8000-000000000000
- https://example.com/a?b=c"""
SHORT = f"""\
example.com wants you to sign in with your Ethereum account:
{ADDRESS}


URI: https://example.com
Version: 1
Chain ID: 1
Nonce: 12345678
Issued At: 2026-01-01T12:00:00Z"""


def message(**fields) -> SiweMessage:
    return msgspec.structs.replace(parse(SHORT), **fields)


def render(message: SiweMessage) -> str:
    """The message as a wallet shows and signs it, written from the template of EIP-4361."""
    scheme = f"{message.scheme}://" if message.scheme else ""
    statement = [message.statement] if message.statement else []
    optional = {
        "Expiration Time": message.expiration_time and message.expiration_time.isoformat(),
        "Not Before": message.not_before and message.not_before.isoformat(),
        "Request ID": message.request_id,
    }
    return "\n".join(
        [
            f"{scheme}{message.domain} wants you to sign in with your Ethereum account:",
            message.address,
            "",
            *statement,
            "",
            f"URI: {message.uri}",
            f"Version: {message.version}",
            f"Chain ID: {message.chain_id}",
            f"Nonce: {message.nonce}",
            f"Issued At: {message.issued_at.isoformat()}",
            *(f"{name}: {value}" for name, value in optional.items() if value is not None),
            *(["Resources:"] if message.resources else []),
            *(f"- {resource}" for resource in message.resources),
        ]
    )


names = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=8)
hosts = st.builds(lambda name, port: f"{name}.example{port}", names, st.sampled_from(("", ":3000")))
uris = st.builds(lambda host, path: f"https://{host}/{path}?q=%2F#f", hosts, names)
moments = st.datetimes(
    datetime(1, 1, 2),  # noqa: DTZ001 - Hypothesis wants it naive
    datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.just(UTC),
)
messages = st.builds(
    SiweMessage,
    domain=hosts,
    scheme=st.sampled_from((None, "https", "http")),
    address=st.binary(min_size=20, max_size=20).map(lambda raw: checksum("0x" + raw.hex())),
    statement=st.none()
    | st.text(string.ascii_letters + string.digits + "-._~:/?#[]@!$&'()*+,;= ", min_size=1).filter(
        lambda text: not text.startswith("URI: ")
    ),
    uri=uris,
    version=st.just("1"),
    chain_id=st.integers(1, 2**53),
    nonce=st.text(string.ascii_letters + string.digits, min_size=8, max_size=64),
    issued_at=moments,
    expiration_time=st.none() | moments,
    not_before=st.none() | moments,
    request_id=st.none() | st.just("") | names,
    resources=st.lists(uris, max_size=3).map(tuple),
)


@given(messages)
def test_a_message_as_the_standard_renders_it_is_read_back(message: SiweMessage) -> None:
    assert parse(render(message)) == message


@given(messages, st.data())
def test_no_line_can_be_left_out_or_doubled(message: SiweMessage, data: st.DataObject) -> None:
    lines = render(message).split("\n")
    optional = ("Expiration Time", "Not Before", "Request ID", "Resources", "- ")
    places = [place for place, line in enumerate(lines) if not line.startswith(optional)]
    place = data.draw(st.sampled_from(places))
    # Without its statement a message is still one.
    without = place if place != 3 or not message.statement else 1
    # One more empty line makes its statement an empty one.
    again = 3 if place in (2, 3) and not message.statement else 2

    for changed in (
        lines[:without] + lines[without + 1 :],
        lines[:place] + lines[place : place + 1] * again + lines[place + 1 :],
    ):
        with pytest.raises(SiweMalformed):
            parse("\n".join(changed))


@given(messages)
def test_an_address_in_lower_case_is_the_same_address(message: SiweMessage) -> None:
    text = render(message)

    assert parse(text.replace(f"\n{message.address}\n", f"\n{message.address.lower()}\n", 1)) == message


def test_an_empty_statement_is_none_and_a_line_more_is_no_message() -> None:
    two, three, four = (f"{ADDRESS}\n{empty}URI" for empty in ("\n\n", "\n\n\n", "\n\n\n\n"))

    assert parse(SHORT.replace(two, three)) == parse(SHORT)
    assert parse(SHORT).statement is None
    with pytest.raises(SiweMalformed, match="Line 6"):
        parse(SHORT.replace(two, four))


@given(st.text(max_size=200) | st.text(FULL, max_size=400))
def test_nothing_else_escapes_from_the_parser(text: str) -> None:
    with pytest.raises(SiweMalformed):
        parse(text)


def test_every_field_of_a_full_message() -> None:
    assert parse(FULL) == SiweMessage(
        scheme="https",
        domain="example.com",
        address=ADDRESS,
        statement="Accept the terms: https://example.com/tos?v=1#a!",
        uri="https://example.com/login",
        version="1",
        chain_id=8453,
        nonce="32891756abcDEF",
        issued_at=datetime(2026, 1, 1, 11, 59, 0, 123456, tzinfo=UTC),
        expiration_time=datetime(2026, 1, 1, 12, tzinfo=UTC),
        not_before=datetime(2026, 1, 1, 11, tzinfo=UTC),
        request_id="a-b:c@d%20",
        resources=(
            "ipfs://bafybeiemxf5abjwjbikoz4mc3a3dla6ual3jsgpdr4cjr3oz3evfyavhwq/",
            "urn:uuid:5b0f4bd0-0000-4000-8000-000000000000",
            "https://example.com/a?b=c",
        ),
    )


@each(
    ("old", "new", "line"),
    [
        ("https://example.com wants", "example.com  wants", 1),
        ("https://example.com wants", "exam ple.com wants", 1),
        ("https://example.com wants", "b\u00fccher.example wants", 1),
        ("https://example.com wants", "1s://example.com wants", 1),
        ("https://example.com wants", " wants", 1),
        ("account:\n", "account:\r\n", 1),
        ("account:\n", "account: \n", 1),
        (ADDRESS, ADDRESS[:-1] + ADDRESS[-1].swapcase(), 2),
        (ADDRESS, ADDRESS.lower()[:-1] + "D", 2),
        (ADDRESS, "0x" + ADDRESS[2:].upper(), 2),
        (ADDRESS, ADDRESS[:-1] + "D", 2),
        (ADDRESS, ADDRESS[:-1], 2),
        (ADDRESS, ADDRESS[2:], 2),
        (ADDRESS + "\n\n", ADDRESS + "\n \n", 3),
        (ADDRESS + "\n\n", ADDRESS + "\n", 3),
        ("Accept", "URI: Accept", 4),
        ("Accept", "\u00c4ccept", 4),
        ("Accept", "Ac\tcept", 4),
        ("Accept", "Ac\u2028cept", 4),
        ("Accept", "<Accept>", 4),
        ("#a!\n\n", "#a!\nmore\n\n", 5),
        ("#a!\n\n", "#a!\n", 5),
        ("URI: ", "Uri: ", 6),
        ("URI: ", "URI:", 6),
        ("https://example.com/login", "/login", 6),
        ("https://example.com/login", "//example.com/login", 6),
        ("https://example.com/login", "https:///login", 6),
        ("https://example.com/login", "https://example.com/%zz", 6),
        ("https://example.com/login", "https://example.com/a b", 6),
        ("https://example.com/login", "https://exa[m]ple.com/", 6),
        ("https://example.com/login", "https://example.com\\@evil.com/", 6),
        ("https://example.com/login", "https://example.com/#a#b", 6),
        ("Version: 1", "Version: 2", 7),
        ("Version: 1", "Version: 1 ", 7),
        ("Version: 1", "Version: 11", 7),
        ("8453", "08453", 8),
        ("8453", "0", 8),
        ("8453", "-1", 8),
        ("8453", "0x1", 8),
        ("8453", "\u0661", 8),
        ("8453", "1" * 17, 8),
        ("32891756abcDEF", "1234567", 9),
        ("32891756abcDEF", "a" * 65, 9),
        ("32891756abcDEF", "1234-5678", 9),
        ("2026-01-01T11:59:00.123456789Z", "2026-01-01T11:59:00", 10),
        ("2026-01-01T11:59:00.123456789Z", "2026-01-01 11:59:00Z", 10),
        ("2026-01-01T11:59:00.123456789Z", "2026-02-30T11:59:00Z", 10),
        ("2026-01-01T11:59:00.123456789Z", "2026-01-01T24:00:00Z", 10),
        ("2026-01-01T11:59:00.123456789Z", "2026-01-01T11:59:60Z", 10),
        ("2026-01-01T11:59:00.123456789Z", "2026-01-01T11:59Z", 10),
        ("2026-01-01T11:59:00.123456789Z", "0001-01-01T00:00:00+10:00", 10),
        ("2026-01-01T11:59:00.123456789Z", "9999-12-31T23:59:59-10:00", 10),
        ("2026-01-01T11:59:00.123456789Z", "1767225600", 10),
        ("Expiration Time", "Expiration time", 11),
        ("Not Before: 2026-01-01T11:00:00Z", "Not Before: soon", 12),
        ("Not Before: 2026-01-01T11:00:00Z", "Expiration Time: 2026-01-01T11:00:00Z", 12),
        ("a-b:c@d%20", "a/b", 13),
        ("a-b:c@d%20", "a%2", 13),
        ("Resources:", "Resources: ", 14),
        ("- ipfs:", "-ipfs:", 15),
        ("- ipfs:", "* ipfs:", 15),
        ("?b=c", "?b=c\n", 18),
        ("?b=c", "?b=c\nResources:", 18),
    ],
)
def test_a_line_that_is_wrong_is_named(old: str, new: str, line: int) -> None:
    assert FULL.count(old) >= 1

    with pytest.raises(SiweMalformed, match=rf"Line {line} .*expected"):
        parse(FULL.replace(old, new, 1))


@each("count", range(9))
def test_a_message_that_ends_early_says_which_line_is_missing(count: int) -> None:
    with pytest.raises(SiweMalformed, match=rf"Line {count + 1} (is missing|of the)"):
        parse("\n".join(SHORT.split("\n")[:count]))


@each("extra", ["\n", " ", "\nhello", "\nResources:\n", "\nNonce: 12345678", "\x00", "\r"])
def test_nothing_may_follow(extra: str) -> None:
    with pytest.raises(SiweMalformed):
        parse(SHORT + extra)


def test_a_long_message_is_refused_before_it_is_read() -> None:
    with pytest.raises(SiweMalformed, match="longer than 8192"):
        parse(FULL + "\n- https://example.com/" + "a" * 8192)


@each("text", ["a" * 8000, "a://" * 2000, "a@" * 4000, "%41" * 2000, "a:" * 4000 + " "])
def test_reading_never_takes_long(text: str) -> None:
    started = time.thread_time()

    with pytest.raises(SiweMalformed):
        parse(text)
    with pytest.raises(SiweMalformed):
        parse(SHORT.replace("https://example.com\n", f"https://{text}|\n"))

    assert time.thread_time() - started < 0.5


@each(
    "fields",
    [
        {},
        {"domain": "example.com:443", "uri": "https://example.com:443/login?next=/"},
        {"domain": "EXAMPLE.com", "uri": "HTTPS://Example.com"},
        {"scheme": "https"},
        {"issued_at": NOW + timedelta(seconds=30)},
        {"issued_at": NOW - timedelta(minutes=10)},
        {"expiration_time": NOW + timedelta(milliseconds=1)},
        {"not_before": NOW + timedelta(seconds=30)},
    ],
)
def test_a_message_for_us_and_for_now_passes(fields) -> None:
    check(message(**fields), domains=DOMAINS, now=NOW)


@each(
    "fields",
    [
        {"domain": "evil.com"},
        {"domain": "example.com.evil.com"},
        {"domain": "example.com:8443"},
        {"domain": "user@example.com"},
        {"scheme": "ftp"},
        {"uri": "https://evil.com/example.com"},
        {"uri": "https://example.com@evil.com"},
        {"uri": "https://user@example.com"},
        {"uri": "https://example.com:8443"},
        {"uri": "ftp://example.com"},
        {"uri": "example:example.com"},
        {"uri": "urn:https://example.com"},
    ],
)
def test_a_message_for_another_site_is_refused(fields) -> None:
    with pytest.raises(SiweDomainMismatch) as refused:
        check(message(**fields), domains=DOMAINS, now=NOW)

    assert refused.value.code == "siwe_domain_mismatch"


@each(
    ("fields", "said"),
    [
        ({"issued_at": NOW + timedelta(seconds=31)}, "future"),
        ({"issued_at": NOW - timedelta(minutes=10, seconds=1)}, "older"),
        ({"expiration_time": NOW}, "expired"),
        ({"not_before": NOW + timedelta(seconds=31)}, "not valid yet"),
    ],
)
def test_a_message_for_another_time_is_refused(fields, said: str) -> None:
    with pytest.raises(SiweNotValidNow, match=said) as refused:
        check(message(**fields), domains=DOMAINS, now=NOW)

    assert refused.value.code == "siwe_not_valid_now"


@each(
    ("url", "domains"),
    [
        ("https://example.com", {"example.com", "example.com:443"}),
        ("https://Example.com:443/path", {"example.com", "example.com:443"}),
        ("https://example.com:8443", {"example.com:8443"}),
        ("http://example.com", {"example.com", "example.com:80"}),
        ("https://example.com:80", {"example.com:80"}),
        ("http://localhost:3200", {"localhost:3200", "127.0.0.1:3200"}),
        ("http://127.0.0.1:3200", {"localhost:3200", "127.0.0.1:3200"}),
        ("http://localhost", {"localhost", "localhost:80", "127.0.0.1", "127.0.0.1:80"}),
        ("http://[::1]:3200", {"[::1]:3200", "localhost:3200", "127.0.0.1:3200"}),
    ],
)
def test_the_domains_of_an_address(url: str, domains: set[str]) -> None:
    assert domains_of(url) == domains


@each("url", ["", "example.com", "ftp://example.com", "https://"])
def test_a_local_address_has_no_domains(url: str) -> None:
    with pytest.raises(ValueError):
        domains_of(url)
