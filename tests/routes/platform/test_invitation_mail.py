"""Mail of invitations: to the address alone, with nothing of others in a header, and no token in a log."""

import re
import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.fixtures.callers import Client, Tenant, platform_client
from tests.fixtures.deployments import partner_of
from tests.fixtures.linking import email_proof, link
from tests.fixtures.people import Person, by_mail, fresh_address
from tests.fixtures.server import Service
from tests.outside.smtp_server import Mailbox
from tests.routes.platform.invited import accept, invite, path_of, states

NAMES = {
    "encoded words": "=?utf-8?q?=0d=0aBcc=3a_thief=40evil.example?=",
    "markup": '<a href="https://evil.example">Click</a>',
    "turned over": "Acme \u202egro.live",
    "quotes": '"; Bcc: thief@evil.example',
    "long": "A" * 200,
    "letters of others": "Zürich 🏦",
}


@pytest.fixture
def tenants_with_names(service: Service) -> Iterator[list[str]]:
    """Tenants with the names above."""
    with platform_client(service) as platform:
        yield [
            platform.ok("POST", "/platform/tenants", {"id": f"named-{uuid.uuid4().hex[:12]}", "name": name})["id"]
            for name in NAMES.values()
        ]


def test_a_mail_says_everything_in_text_and_in_html(
    service: Service, as_platform: Client, tenant: Tenant, mailbox: Mailbox
) -> None:
    address = fresh_address()
    body = {"email": address, "role": "billing", "sendEmail": True}
    made = as_platform.ok("POST", path_of(tenant), body)
    mail = mailbox.mail_for(address)
    page = mail.message.get_body(("html",))

    assert mail.recipients == (address,)
    assert mail.message["Subject"].startswith("Invitation to join an organisation at localhost")
    assert f"Organisation: “A tenant” ({tenant.id})" in mail.text
    assert "Your role: billing" in mail.text
    assert made["invitation"]["expiresAt"] in mail.text
    wanted = f"http://localhost:{service.port}/invitation#{made['token']}"
    assert wanted in [line.strip() for line in mail.text.splitlines()]
    assert page is not None
    assert re.findall(r'href="([^"]*)"', page.get_content()) == [wanted]


def test_no_name_of_a_tenant_reaches_a_header_or_becomes_markup(
    service: Service, as_platform: Client, tenants_with_names: list[str], mailbox: Mailbox
) -> None:
    mails = []
    for tenant in tenants_with_names:
        address = fresh_address()
        as_platform.ok("POST", path_of(tenant), {"email": address, "role": "viewer", "sendEmail": True})
        mails.append(mailbox.mail_for(address))

    assert len({mail.message["Subject"] for mail in mails}) == 1
    for mail in mails:
        headers = mail.content.split("\r\n\r\n")[0]
        assert re.search(r"^b?cc:|evil|thief", headers, re.IGNORECASE | re.MULTILINE) is None
        page = mail.message.get_body(("html",))
        assert page is not None
        assert page.get_content().count("<a ") == 1
        assert "\u202e" not in mail.text
        assert max(len(line) for line in mail.text.splitlines()) < 250


@pytest.mark.parametrize(
    "address",
    [
        "a@example.com\r\nBcc: thief@evil.example",
        "=?utf-8?q?victim=40bank.com=2c?=@evil.example.com",
        '"a b"@example.com',
        "a@example.com, b@example.com",
        "A <a@example.com>",
        "a@localhost",
        "a" * 250 + "@example.com",
        "",
    ],
)
def test_an_address_that_could_break_out_is_400(
    service: Service, as_platform: Client, tenant: Tenant, address: str
) -> None:
    answer = as_platform.post(path_of(tenant), json={"email": address, "role": "viewer", "sendEmail": True})

    assert answer.status_code == 400
    assert states(service, tenant) == []


def test_without_a_mail_server_nothing_is_made(service: Service, tenant: Tenant) -> None:
    with (
        partner_of(service, SERVICE_SMTP_URL="") as alone,
        Client(base_url=alone.url, headers={"X-Service-Platform-Key": service.platform_key}, timeout=30) as platform,
    ):
        body = {"email": fresh_address(), "role": "viewer"}
        refused = platform.post(path_of(tenant), json={**body, "sendEmail": True})
        made = platform.post(path_of(tenant), json=body)

    assert (refused.status_code, refused.json()["data"]["code"]) == (503, "email_not_configured")
    assert (made.status_code, made.json()["data"]["emailSent"]) == (201, False)
    assert states(service, tenant) == [(body["email"], "pending")]


def test_a_repetition_shows_no_token_and_mails_nothing(
    service: Service, as_platform: Client, tenant: Tenant, mailbox: Mailbox
) -> None:
    body = {"email": fresh_address(), "role": "viewer", "sendEmail": True}
    key = {"Idempotency-Key": f"invitation-{uuid.uuid4()}"}
    first = as_platform.post(path_of(tenant), json=body, headers=key)
    again = as_platform.post(path_of(tenant), json=body, headers=key)
    invite(service, tenant, body["email"], sendEmail=True)
    mailbox.mail_for(body["email"], after=1)

    assert first.status_code == 201
    assert (again.status_code, again.json()["data"]["code"]) == (409, "idempotency_secret_shown")
    assert mailbox.count(body["email"]) == 2


def test_the_owners_are_told_that_somebody_joined(
    service: Service, as_platform: Client, tenant: Tenant, as_owner: Person, mailbox: Mailbox
) -> None:
    owners = fresh_address()
    link(as_owner, email=email_proof(as_owner, mailbox, owners))
    seen = mailbox.count(owners)
    with closing(by_mail(service, mailbox)) as reader:
        assert accept(reader, tenant, invite(service, tenant, reader.address)["token"]).status_code == 200

        told = mailbox.mail_for(owners, after=seen)
    assert reader.address in told.text
    assert "Role: viewer" in told.text
    assert reader.address not in told.content.split("\r\n\r\n")[0]


def test_no_token_is_in_a_log(service: Service, tenant: Tenant, mailbox: Mailbox) -> None:
    address = fresh_address()
    with closing(by_mail(service, mailbox, address)) as reader:
        token = invite(service, tenant, address, sendEmail=True)["token"]
        accept(reader, tenant, token[:-1])
        accept(reader, tenant, token)

    logs = "".join(file.read_text(errors="replace") for file in (service.home / "log").iterdir())
    assert token.split("/inv_")[1][:20] not in logs
