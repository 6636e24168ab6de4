"""E-mail addresses, telephone numbers, and the names of native applications."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.identity.addresses import (
    BadEmailAddress,
    BadPhoneNumber,
    normalised_email,
    phone_number,
)
from custody.identity.native_ids import (
    BadBundleId,
    BadPackageName,
    bundle_id,
    package_name,
)
from tests.fixtures.each import each

EMAILS = [
    "a@b.co",
    "first.last+tag@mail.example.com",
    "o'neill@example.org",
    "x_y-z@xn--bcher-kva.example",
    "1@2.com",
    "a" * 64 + "@example.com",
    "a@" + "b" * 63 + ".museum",
    "a@example.xn--p1ai",
    "a@" + ("b" * 61 + ".") * 3 + "b" * 60 + ".co",
]
NO_EMAILS = [
    "",
    "a",
    "@",
    "a@",
    "@b.co",
    "a@b",
    "a@@b.co",
    "a@b@c.co",
    ".a@b.co",
    "a.@b.co",
    "a..b@c.co",
    "a b@c.co",
    "a@b .co",
    "a@.co",
    "a@b..co",
    "a@b.co.",
    "a@-b.co",
    "a@b-.co",
    "a@b_c.co",
    "a@b.c",
    "a@1.2.3.4",
    "a@[1.2.3.4]",
    "a@b.c0",
    '"a"@b.co',
    "a(b)@c.co",
    "<a@b.co>",
    "a@b.co\n",
    "\na@b.co",
    "a@b.co\r\nBcc: c@d.co",
    "a\x00@b.co",
    "b\u00fcro@c.co",
    "a@b\u00fccher.de",
    "a@b.c\u212a",
    "a@b,c.co",
    "a;b@c.co",
    "mailto:a@b.co",
    "a" * 65 + "@b.co",
    "a@" + "b" * 64 + ".co",
    "a@" + ("b" * 62 + ".") * 4 + "co",
    " a@b.co",
    "a@b.co ",
    "a\\@b.co",
    # Other letters in a header (RFC 2047).
    "=?utf-8?q?=76ictim?=@bank.com",
    "=?utf-8?q?x=0d=0ax?=@b.co",
    "=?utf-8?q?a=40b.co=2c?=@b.co",
    "a=b@c.co",
    "a?@b.co",
]
PHONES = ["+41790000000", "+12025550123", "+1234567", "+123456789012345"]
NO_PHONES = [
    "",
    "+",
    "41790000000",
    "0041790000000",
    "+0790000000",
    "+41 79 000 00 00",
    "+41-79-0000000",
    "+123456",
    "+1234567890123456",
    "+41790000000\n",
    "+4179000000a",
    "+\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668",
    "++41790000000",
]
BUNDLES = ["com.example", "com.example.app", "com.Example.My-App", "io.3d.app", "a.b", "a." + "b" * 153]
NO_BUNDLES = [
    "",
    "app",
    "com.",
    ".com.app",
    "com..app",
    "com.*",
    "*.app",
    "com.exa*mple",
    "com.ex_ample",
    "com.-app",
    "com.app-",
    "com.app\n",
    "com.b\u00fccher",
    "com example.app",
    "com/example.app",
    "a." + "b" * 154,
    "ABCDE12345.com.*",
]
PACKAGES = ["com.example", "com.example.my_app", "Com.Example.App1", "a.b", "a." + "b" * 253]
NO_PACKAGES = [
    "",
    "app",
    "com.",
    ".com.app",
    "com..app",
    "com.*",
    "*.app",
    "com.1app",
    "1com.app",
    "com._app",
    "com.my-app",
    "com.app\n",
    "com.b\u00fccher",
    "com.app*",
    "a." + "b" * 254,
]
KINDS = [
    (normalised_email, BadEmailAddress, EMAILS, NO_EMAILS),
    (phone_number, BadPhoneNumber, PHONES, NO_PHONES),
    (bundle_id, BadBundleId, BUNDLES, NO_BUNDLES),
    (package_name, BadPackageName, PACKAGES, NO_PACKAGES),
]


@each(("read", "text"), [(k[0], text) for k in KINDS for text in k[2]])
def test_a_well_formed_address_passes(read, text: str) -> None:
    assert read(text) == (text.lower() if read is normalised_email else text)


@each(("read", "bad", "text"), [(k[0], k[1], text) for k in KINDS for text in k[3]])
def test_a_malformed_address_is_refused(read, bad, text: str) -> None:
    with pytest.raises(bad):
        read(text)


def test_one_mailbox_has_one_spelling() -> None:
    assert normalised_email("First.Last@Example.COM") == "first.last@example.com"


@given(st.text())
def test_a_normalised_address_is_printable_ascii_with_one_at_and_stays_as_it_is(text: str) -> None:
    try:
        found = normalised_email(text + "@example.com")
    except BadEmailAddress:
        return
    assert found.isascii()
    assert found.isprintable()
    assert found.count("@") == 1
    assert normalised_email(found) == found


@pytest.mark.parametrize("read", [bundle_id, package_name])
@given(st.text("ab.-_1*", max_size=12))
def test_no_wildcard_and_no_single_label_is_a_native_id(read, text: str) -> None:
    try:
        read(text)
    except (BadBundleId, BadPackageName):
        return
    assert "*" not in text
    assert "." in text.strip(".")
