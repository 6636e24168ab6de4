"""Sign-in by a tenant's SAML provider, from the login route to the session. What an answer may say: tests/rules."""

import asyncio
from base64 import b64encode
from contextlib import closing
from copy import deepcopy
from typing import Any

import asyncpg
import pytest
from lxml import etree

from tests.fixtures.callers import Client, new_tenant
from tests.fixtures.eventually import soon
from tests.fixtures.people import Person, fresh_address, member, sign_in_by_mail
from tests.fixtures.postgres import Database
from tests.fixtures.saml_sign_on import SSO_URL, SamlTenant
from tests.fixtures.server import Service
from tests.fixtures.sign_on import HTML, redirect_params, refusal, verified_domain
from tests.outside.authenticator import Authenticator
from tests.outside.dns_server import DnsServer
from tests.outside.saml_answers import PERSISTENT, SAML, TRANSIENT, key, sign_tree, the
from tests.outside.smtp_server import Mailbox
from tests.routes.tenants.makers import holding, somebody_waits


@pytest.fixture
def saml(service: Service, as_owner: Person, dns_server: DnsServer) -> SamlTenant:
    """A tenant that has proven a domain and lets its people in by SAML."""
    tenant = SamlTenant(service, as_owner, verified_domain(as_owner, dns_server))
    assert tenant.put().status_code == 200
    return tenant


def signed_in(saml: SamlTenant, **changed: Any) -> Person:
    """Somebody whom the provider signed in."""
    with saml.flow() as flow:
        answer = flow.exchange(redirect_params(flow.arrive(**changed))["code"])
    assert answer.status_code == 200, answer.text
    somebody = Person(base_url=saml.service.url, timeout=30)
    somebody.take(answer.json()["data"])
    return somebody


# ---------------------------------------------------------------- the way there


def test_the_browser_takes_an_unsigned_request_to_the_provider(saml: SamlTenant) -> None:
    with saml.flow() as flow:
        address = flow.provider_url()

    assert address.startswith(f"{SSO_URL}?SAMLRequest=")
    assert "Signature" not in address


def test_the_metadata_names_the_two_addresses_and_wants_signed_assertions(saml: SamlTenant) -> None:
    with Client(base_url=saml.service.url) as provider:
        answer = provider.get(f"/auth/saml/{saml.tenant}/metadata")
    document = etree.fromstring(answer.content)

    assert answer.headers["content-type"].startswith("text/xml")
    assert document.get("entityID") == str(answer.url).replace("127.0.0.1", "localhost")
    assert document[0].get("WantAssertionsSigned") == "true"
    assert b"Logout" not in answer.content
    assert b"KeyDescriptor" not in answer.content


def test_the_addresses_to_copy_are_shown_before_anything_is_saved(service: Service, as_owner: Person) -> None:
    shown = as_owner.ok("GET", f"/tenants/{as_owner.tenant}/saml-sso")

    public = f"http://localhost:{service.port}/auth/saml/{as_owner.tenant}"
    assert (shown["enabled"], shown["idpEntityId"], shown["idpCertPems"], shown["updatedAt"]) == (False, None, [], None)
    assert shown["serviceProvider"] == {
        "spEntityId": f"{public}/metadata",
        "acsUrl": f"{public}/acs",
        "metadataUrl": f"{public}/metadata",
    }


def test_a_configuration_is_shown_as_it_was_sent(saml: SamlTenant) -> None:
    sent = saml.config(emailAttribute="mail", groupRoleMappings=[{"group": "ops", "role": "developer"}])
    answer = saml.owner.ok("PUT", f"/tenants/{saml.tenant}/saml-sso", sent)
    shown = saml.owner.ok("GET", f"/tenants/{saml.tenant}/saml-sso")

    assert sent.items() <= answer.items()
    assert sent.items() <= shown.items()
    assert shown["serviceProvider"]["acsUrl"].endswith(f"/auth/saml/{saml.tenant}/acs")


def test_a_certificate_may_be_sent_as_base64_alone(saml: SamlTenant) -> None:
    bare = b64encode(saml.key.der).decode()

    answer = saml.put(idpCertPems=[bare])

    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["certificates"] == saml.put().json()["data"]["certificates"]
    assert saml.put(idpCertPems=[bare]).json()["data"]["idpCertPems"][0].startswith("-----BEGIN CERTIFICATE-----\n")
    with saml.flow() as flow:
        assert "code" in redirect_params(flow.arrive())
    for wrong in (bare[:-8], f"{bare}\n{bare}", b64encode(key("rsa1024").der).decode()):
        refused = saml.put(idpCertPems=[wrong])
        assert (refused.status_code, refused.json()["data"]["code"]) == (400, "idp_certificate_invalid")


def indent(tree: Any) -> Any:
    """An answer with each text on a line of its own, as an indenting printer leaves it."""
    for one in tree.iter("{*}Issuer", "{*}Audience", "{*}NameID", "{*}AttributeValue"):
        one.text = f"\n          {one.text}\n        "
    return tree


def test_an_answer_of_an_indenting_printer_signs_the_same_person_in(saml: SamlTenant) -> None:
    address = saml.address()
    people = []
    for change in (lambda tree: tree, indent):
        with saml.flow() as flow:
            flow.leave()
            tree = change(flow.answer(name_id=address, attributes={"email": [address, address]}).tree())
            code = redirect_params(flow.bring(sign_tree(tree, saml.key)))["code"]
            people.append(flow.exchange(code).json()["data"]["user"]["id"])

    assert people[0] == people[1]


@pytest.mark.parametrize("right", [True, False])
def test_one_of_several_confirmations_suffices_and_an_assertion_works_once_by_all(
    saml: SamlTenant, right: bool
) -> None:
    with saml.flow() as flow:
        flow.leave()
        tree = flow.answer().tree()
        first = the(tree, "SubjectConfirmation")
        other = deepcopy(first)
        the(other, "SubjectConfirmationData").set("Recipient", "https://elsewhere.example.com/acs")
        if not right:
            the(first, "SubjectConfirmationData").set("InResponseTo", "_another")
        first.addprevious(other)
        answer = flow.bring(sign_tree(tree, saml.key))

    assert ("code" in redirect_params(answer)) is right
    if not right:
        assert refusal(answer) == "saml_request_mismatch"


def test_a_provider_that_is_off_or_absent_sends_nobody_anywhere(saml: SamlTenant) -> None:
    saml.put(enabled=False)
    with saml.flow() as flow:
        off = flow.begin()
    saml.owner.ok("DELETE", f"/tenants/{saml.tenant}/saml-sso")
    with saml.flow() as flow:
        absent = flow.begin()

    assert [(one.status_code, one.json()["data"]["code"]) for one in (off, absent)] == [(404, "provider_absent")] * 2


# ---------------------------------------------------------------- who comes in


def test_a_newcomer_becomes_a_viewer_in_a_session_that_stays_in_the_tenant(saml: SamlTenant) -> None:
    with closing(signed_in(saml)) as somebody:
        session = somebody.session
        elsewhere = somebody.post("/auth/session/tenant", json={"tenantId": f"personal-{somebody.id}"})

    assert session["provider"] == "saml"
    assert session["tenant"] == {"id": saml.tenant, "name": session["tenant"]["name"], "role": "viewer"}
    assert session["mfa"]["verifiedAt"] is None
    # The provider's word, which is shown and signs nobody in.
    assert session["user"]["email"].startswith("ann-")
    assert session["user"]["emailVerified"] is False
    assert (elsewhere.status_code, elsewhere.json()["data"]["code"]) == (403, "session_bound")


def test_a_newcomers_passkey_is_no_way_past_the_provider(service: Service, saml: SamlTenant) -> None:
    with closing(signed_in(saml)) as somebody, Client(base_url=service.url, timeout=30) as browser:
        device = Authenticator(f"http://localhost:{service.port}")
        made = device.create(somebody.ok("POST", "/auth/passkeys/register/options", {}))
        somebody.ok("POST", "/auth/passkeys/register/verify", {"credential": made})
        shown = device.get(somebody.ok("POST", "/auth/mfa/passkey/options", {}))
        stepped = somebody.post("/auth/mfa/passkey/step-up", json={"credential": shown})
        answers = [
            browser.post(
                "/auth/passkeys/login/verify",
                json={"credential": device.get(browser.ok("POST", "/auth/passkeys/login/options", {})), **where},
            )
            for where in ({}, {"tenantId": saml.tenant})
        ]

    assert stepped.status_code == 200
    assert [(one.status_code, one.json()["data"]["code"]) for one in answers] == [(403, "sso_required")] * 2
    assert all(one.json()["data"]["methods"][0]["type"] == "saml" for one in answers)


def test_without_newcomers_an_unknown_account_is_refused(saml: SamlTenant) -> None:
    saml.put(allowJitProvisioning=False)

    with saml.flow() as flow:
        assert refusal(flow.arrive()) == "account_unknown"


def test_the_same_name_is_the_same_person(saml: SamlTenant) -> None:
    address = saml.address()
    people = []

    for _ in range(2):
        with closing(signed_in(saml, name_id=address)) as somebody:
            people.append(somebody.id)

    assert people[0] == people[1]


def test_a_member_is_found_by_their_proven_address_once_and_told(
    saml: SamlTenant, mailbox: Mailbox, as_platform: Client
) -> None:
    address = saml.address()
    with closing(sign_in_by_mail(saml.service, mailbox, address)) as known:
        member = {"userId": known.id, "role": "developer"}
        as_platform.ok("POST", f"/platform/tenants/{saml.tenant}/members", member)
        before = mailbox.count(address)

        with closing(
            signed_in(saml, name_id="a1b2", name_id_format=PERSISTENT, attributes={"email": [address]})
        ) as came:
            assert came.id == known.id
            assert came.role == "developer"

    assert "A new way to sign in" in str(mailbox.mail_for(address, after=before).message["Subject"])


def test_an_address_of_somebody_who_is_no_member_opens_nothing_of_theirs(saml: SamlTenant, mailbox: Mailbox) -> None:
    address = saml.address()

    with (
        closing(sign_in_by_mail(saml.service, mailbox, address)) as known,
        closing(signed_in(saml, name_id=address)) as came,
    ):
        assert came.id != known.id


def test_a_removed_member_stays_out_until_somebody_brings_them_back(saml: SamlTenant, as_platform: Client) -> None:
    address = saml.address()
    with closing(signed_in(saml, name_id=address)) as somebody:
        as_platform.ok("DELETE", f"/platform/tenants/{saml.tenant}/members/{somebody.id}")

    with saml.flow() as flow:
        removed = refusal(flow.arrive(name_id=address))
    as_platform.ok("POST", f"/platform/tenants/{saml.tenant}/members", {"userId": somebody.id, "role": "viewer"})
    with closing(signed_in(saml, name_id=address)) as again:
        assert again.id == somebody.id

    assert removed == "membership_removed"


@pytest.mark.parametrize("act", ["removes", "demotes"])
async def test_an_act_of_the_operator_while_the_member_signs_on_is_not_undone(
    saml: SamlTenant, as_platform: Client, database: Database, owner: asyncpg.Connection, act: str
) -> None:
    saml.put(groupRoleMappings=[{"group": "ops", "role": "developer"}, {"group": "boss", "role": "admin"}])
    address, members = saml.address(), f"/platform/tenants/{saml.tenant}/members"
    with closing(signed_in(saml, name_id=address, attributes={"groups": ["ops"]})) as somebody:
        assert somebody.role == "developer"
    sent: tuple[Any, ...] = ("DELETE", f"{members}/{somebody.id}")
    if act == "demotes":
        sent = ("POST", members, {"userId": somebody.id, "role": "viewer"})

    with saml.flow() as flow:
        code = redirect_params(flow.arrive(name_id=address, attributes={"groups": ["boss"]}))["code"]
        # The operator's act has written the membership by then, and waits with the accounts.
        async with holding(database, "SELECT FROM identities WHERE user_id = $1 FOR UPDATE", somebody.id):
            operating = asyncio.create_task(asyncio.to_thread(as_platform.ok, *sent))
            await somebody_waits(owner, "FROM identities")
            exchanging = asyncio.create_task(asyncio.to_thread(flow.exchange, code))
            await somebody_waits(owner, "memberships")
        await operating
        answer = await exchanging
    roles = {one["userId"]: one["role"] for one in as_platform.ok("GET", members)}
    told = answer.json()["data"]

    if act == "demotes":
        assert (answer.status_code, told["tenant"]["role"], roles[somebody.id]) == (200, "viewer", "viewer")
    else:
        assert (answer.status_code, told["code"], roles.get(somebody.id)) == (403, "membership_removed", None)


def test_groups_give_the_most_powerful_role_at_each_sign_in(saml: SamlTenant) -> None:
    mappings = [{"group": "staff", "role": "developer"}, {"group": "boss", "role": "admin"}]
    saml.put(groupRoleMappings=mappings)
    address, roles = saml.address(), []

    for groups in (["staff"], ["staff", "boss"], ["Boss"], []):
        with closing(signed_in(saml, name_id=address, attributes={"groups": groups or ["none"]})) as somebody:
            roles.append(somebody.role)

    assert roles == ["developer", "admin", "viewer", "viewer"]


def test_groups_change_no_role_that_the_operator_gave(saml: SamlTenant, as_platform: Client) -> None:
    saml.put(groupRoleMappings=[{"group": "boss", "role": "admin"}])
    address = saml.address()
    with closing(signed_in(saml, name_id=address)) as somebody:
        as_platform.ok("POST", f"/platform/tenants/{saml.tenant}/members", {"userId": somebody.id, "role": "billing"})

    with closing(signed_in(saml, name_id=address, attributes={"groups": ["boss"]})) as again:
        assert again.role == "billing"


def test_a_transient_name_is_nobody_so_the_address_stands_for_it(saml: SamlTenant) -> None:
    attributes = {"email": [saml.address()]}
    people = []

    for name in ("_one", "_two"):
        with closing(signed_in(saml, name_id=name, name_id_format=TRANSIENT, attributes=attributes)) as somebody:
            people.append(somebody.id)

    assert people[0] == people[1]


async def test_newcomers_at_once_are_no_more_than_the_quota_of_members(
    service: Service, as_platform: Client, dns_server: DnsServer, database: Database, owner: asyncpg.Connection
) -> None:
    with new_tenant(service, "few-members") as few, closing(member(service, few, "owner", mfa=True)) as boss:
        saml = SamlTenant(service, boss, verified_domain(boss, dns_server))
        assert saml.put().status_code == 200
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND usename = 'custody_identity' AND wait_event_type = 'Lock'"
        )

        with saml.flow() as one, saml.flow() as other:
            codes = [(flow, redirect_params(flow.arrive())["code"]) for flow in (one, other)]
            # Room for one of them.
            as_platform.ok("DELETE", f"/platform/tenants/{few.id}/members/{boss.id}", {"force": True})
            # What is written after the membership waits, so neither is through before the other comes to the count.
            async with holding(database, "LOCK TABLE sso_memberships IN SHARE MODE"):
                exchanging = [asyncio.create_task(asyncio.to_thread(flow.exchange, code)) for flow, code in codes]
                await soon(lambda: owner.fetchval(waiting), 2)
            answers = await asyncio.gather(*exchanging)
        members = as_platform.ok("GET", f"/platform/tenants/{few.id}/members")
    as_platform.ok("DELETE", f"/platform/tenants/{few.id}")

    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert [answer.json()["data"]["code"] for answer in answers if answer.is_error] == ["quota_exceeded"]
    assert len(members) == 1


# ---------------------------------------------------------------- who does not


def test_a_name_in_an_endless_format_is_refused(saml: SamlTenant) -> None:
    with saml.flow() as flow:
        named = refusal(flow.arrive(name_id="a1b2", name_id_format="urn:" + "x" * 253))
    with saml.flow() as flow:
        attributes = {"email": [saml.address()]}
        longest = redirect_params(flow.arrive(name_id="a1b2", name_id_format="urn:" + "x" * 252, attributes=attributes))

    assert (named, "code" in longest) == ("saml_name_id", True)


@pytest.mark.parametrize("domain", ["pending", "below", "unknown", "alike"])
def test_an_address_outside_the_proven_domains_is_refused(saml: SamlTenant, domain: str) -> None:
    """S35."""
    owner = saml.owner
    if domain == "pending":
        owner.ok(
            "POST", f"/tenants/{owner.tenant}/sso-domains", {"domain": "pending.example.org", "ssoRequired": False}
        )
    host = {
        "pending": "pending.example.org",
        "below": f"mail.{saml.domain}",
        "unknown": "unknown.example.org",
        "alike": saml.domain.replace("example", "examp1e"),
    }[domain]

    with saml.flow() as flow:
        assert refusal(flow.arrive(name_id=f"ann@{host}")) == "email_domain_unverified"


def test_an_answer_works_once(saml: SamlTenant) -> None:
    """S27."""
    with saml.flow() as flow:
        flow.leave()
        content = flow.answer().sign(saml.key)
        first, second = flow.bring(content), flow.bring(content)
        # Under a fresh RelayState it is no answer to the new request.
        flow.leave()
        third = flow.bring(content)

    assert "code" in redirect_params(first)
    assert (second.status_code, second.json()["data"]["code"]) == (400, "sign_in_state_invalid")
    assert refusal(third) == "saml_request_mismatch"


@pytest.mark.parametrize(
    ("relay_state", "code"),
    [
        (None, "saml_unsolicited"),
        ("", "saml_unsolicited"),
        ("https://app.example.com/deep/link", "saml_unsolicited"),
        ("x" * 43, "sign_in_state_invalid"),
        ("x" * 81, "saml_unsolicited"),
    ],
)
def test_an_answer_to_no_request_is_refused_with_a_page(saml: SamlTenant, relay_state: str | None, code: str) -> None:
    """S28, S29: who starts at the identity provider is told to start here."""
    with saml.flow() as flow:
        flow.leave()
        flow.headers["Accept"] = HTML["Accept"]
        refused = flow.bring(flow.answer().sign(saml.key), RelayState=relay_state)

    assert refused.status_code == 400
    assert code in refused.text
    assert refused.headers["content-type"].startswith("text/html")


def test_an_answer_from_another_browser_uses_the_request_up(saml: SamlTenant) -> None:
    with saml.flow() as victim, saml.flow() as attacker:
        victim.begin()
        attacker.leave()
        content = attacker.answer().sign(saml.key)
        victim.relay_state = attacker.relay_state
        theirs, own = victim.bring(content), attacker.bring(content)

    assert {one.json()["data"]["code"] for one in (theirs, own)} == {"sign_in_state_invalid"}


def test_an_answer_for_another_tenant_is_refused(saml: SamlTenant, service: Service, person: Person) -> None:
    """S28, S30: the path's tenant must be the request's."""
    with saml.flow() as flow:
        flow.leave()
        form = {"SAMLResponse": "AAAA", "RelayState": flow.relay_state}
        refused = flow.post(f"/auth/saml/{person.tenant}/acs", data=form)

    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "sign_in_state_invalid")


@pytest.mark.parametrize("change", [{"enabled": False}, {"emailAttribute": "mail"}, None])
def test_a_configuration_that_changed_meanwhile_is_not_judged_by(
    saml: SamlTenant, change: dict[str, Any] | None
) -> None:
    """S42."""
    with saml.flow() as flow:
        flow.leave()
        if change is None:
            saml.owner.ok("DELETE", f"/tenants/{saml.tenant}/saml-sso")
        else:
            assert saml.put(**change).status_code == 200
        refused = refusal(flow.bring(flow.answer().sign(saml.key)))

    assert refused == "provider_changed"


def test_an_answer_that_another_key_signed_is_refused(saml: SamlTenant) -> None:
    """S23."""
    with saml.flow() as flow:
        assert refusal(flow.arrive(by=key("rsa", "of somebody else"))) == "saml_signature_invalid"


@pytest.mark.parametrize(
    ("form", "status", "code"),
    [
        ("SAMLResponse=AA%3D%3D&SAMLResponse=AA%3D%3D", 400, "duplicate_key"),
        ("RelayState=" + "x" * 43, 400, "bad_body"),
        ("SAMLResponse=" + "A" * 129 * 1024, 413, "body_too_large"),
    ],
)
def test_a_form_that_is_none_is_refused(saml: SamlTenant, form: str, status: int, code: str) -> None:
    """S40."""
    with saml.flow() as flow:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        refused = flow.post(f"/auth/saml/{saml.tenant}/acs", content=form, headers=headers)

    assert (refused.status_code, refused.json()["data"]["code"]) == (status, code)


def test_json_is_no_form(saml: SamlTenant) -> None:
    """S40."""
    with saml.flow() as flow:
        refused = flow.post(f"/auth/saml/{saml.tenant}/acs", json={"SAMLResponse": "AA=="})

    assert (refused.status_code, refused.json()["data"]["code"]) == (415, "wrong_content_type")


@pytest.mark.parametrize("response", ["not base64!", "AA-_", "PHg+", ""])
def test_a_text_that_is_no_answer_at_all_is_refused(saml: SamlTenant, response: str) -> None:
    with saml.flow() as flow:
        flow.leave()
        refused = flow.bring(response)

    if response:
        assert refusal(refused).startswith("saml_")
    else:
        assert refused.status_code == 400


def test_a_refusal_is_told_to_administrators_in_full_and_to_the_client_in_a_word(saml: SamlTenant) -> None:
    with saml.flow() as flow:
        answered = redirect_params(flow.arrive(name_id="ann@unknown.example.org"))
    rows = saml.owner.ok("GET", "/audit/events?action=sso.refused")["data"]

    assert "unknown.example.org" not in str(answered)
    assert rows[0]["metadata"]["code"] == "email_domain_unverified"
    assert rows[0]["metadata"]["found"] == "ann@unknown.example.org"


# ---------------------------------------------------------------- what a session of sign-on may do


def test_a_bound_session_ends_in_twelve_hours_at_the_latest(saml: SamlTenant, owner: asyncpg.Connection) -> None:
    with closing(signed_in(saml, session=None)) as somebody:
        assert somebody.refresh().status_code == 200


def test_a_bound_session_plants_no_factor_on_somebody_who_is_more(
    saml: SamlTenant, mailbox: Mailbox, as_platform: Client
) -> None:
    """O32: who runs the tenant's provider must not act for a person elsewhere."""
    address = saml.address()
    with closing(sign_in_by_mail(saml.service, mailbox, address)) as known:
        member = {"userId": known.id, "role": "admin"}
        as_platform.ok("POST", f"/platform/tenants/{saml.tenant}/members", member)
    with closing(signed_in(saml, name_id=address)) as bound:
        tries = {
            f"{method} {path}": bound.request(method, path, json=body)
            for method, path, body in (
                ("POST", "/auth/mfa/totp/enroll", {}),
                ("POST", "/auth/session/tenant", {"tenantId": f"personal-{known.id}"}),
                ("GET", "/auth/sessions", None),
                ("GET", "/auth/identities", None),
                ("POST", "/auth/identities", {"email": {"email": address, "code": "123456"}}),
                ("DELETE", f"/auth/identities/{known.id}", None),
                ("POST", f"/user/me/tenants/{saml.tenant}/invitations/accept", {"token": "any"}),
            )
        }
        memberships = bound.ok("GET", "/auth/session")["memberships"]

    assert {path: (one.status_code, one.json()["data"]["code"]) for path, one in tries.items()} == dict.fromkeys(
        tries, (403, "session_bound")
    )
    assert [one["tenantId"] for one in memberships] == [saml.tenant]


def test_a_newcomer_enrols_a_factor(saml: SamlTenant) -> None:
    with closing(signed_in(saml)) as somebody:
        assert somebody.enrol_totp()["mfa"]["methods"] == ["recovery", "totp"]


# ---------------------------------------------------------------- administering


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"idpSsoUrl": "http://idp.example.com/"}, "invalid_saml"),
        ({"idpSsoUrl": "https://10.0.0.1/"}, "invalid_saml"),
        ({"idpSsoUrl": "https://user:password@idp.example.com/"}, "invalid_saml"),
        ({"idpSsoUrl": "https://[::ffff:169.254.169.254]/"}, "invalid_saml"),
        ({"idpCertPems": []}, "idp_certificate_invalid"),
        ({"idpCertPems": ["nonsense"]}, "idp_certificate_invalid"),
        ({"idpCertPems": [key("rsa1024").certificate]}, "idp_certificate_invalid"),
        ({"idpCertPems": [key().certificate] * 6}, "bad_body"),
        ({"groupRoleMappings": [{"group": "boss", "role": "owner"}]}, "group_mapping_refused"),
        ({"groupRoleMappings": [{"group": "", "role": "admin"}]}, "bad_body"),
        ({"idpEntityId": ""}, "bad_body"),
        ({"surprise": 1}, "bad_body"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_before_it_is_stored(
    saml: SamlTenant, changed: dict[str, Any], code: str
) -> None:
    """S21, S24, S37, O21."""
    before = saml.owner.ok("GET", f"/tenants/{saml.tenant}/saml-sso")
    refused = saml.put(**changed)

    assert (refused.status_code, refused.json()["data"]["code"]) == (400, code)
    assert saml.owner.ok("GET", f"/tenants/{saml.tenant}/saml-sso") == before


async def test_a_row_that_somebody_else_wrote_signs_nobody_in(saml: SamlTenant, owner: asyncpg.Connection) -> None:
    """O37: the certificates are under a MAC."""
    theirs = key("rsa", "of somebody else").certificate.replace("\n", "\\n")
    with saml.flow() as flow:
        flow.leave()
        await owner.execute(
            "UPDATE saml_configs SET document = replace(document, $2, $3) WHERE tenant_id = $1",
            saml.tenant,
            saml.key.certificate.replace("\n", "\\n"),
            theirs,
        )
        refused = flow.bring(flow.answer().sign(key("rsa", "of somebody else")))

    assert refused.status_code == 503
    assert refused.json()["data"]["code"] == "sealed_value_tampered"


def test_a_try_shows_every_check_and_signs_nobody_in(saml: SamlTenant) -> None:
    saml.put(enabled=False)
    begun = saml.owner.ok("POST", f"/tenants/{saml.tenant}/sign-on/test", {"provider": "saml"})

    with saml.flow() as flow:
        flow.path, flow.query = begun["url"], {}
        page = flow.arrive()
        again = flow.get(begun["url"])
    last = saml.owner.ok("GET", f"/tenants/{saml.tenant}/saml-sso")["lastTest"]

    assert page.status_code == 200
    assert "Nobody was signed in" in page.text
    assert "as viewer" in page.text
    assert all(check["passed"] for check in last["checks"])
    assert last["ok"] is True
    assert again.status_code == 400


def test_a_try_that_fails_names_the_check(saml: SamlTenant) -> None:
    begun = saml.owner.ok("POST", f"/tenants/{saml.tenant}/sign-on/test", {"provider": "saml"})

    with saml.flow() as flow:
        flow.path, flow.query = begun["url"], {}
        page = flow.arrive(sp_entity_id="https://elsewhere.example.com/")
    last = saml.owner.ok("GET", f"/tenants/{saml.tenant}/saml-sso")["lastTest"]
    states = {check["name"]: check["passed"] for check in last["checks"]}

    assert "would fail" in page.text
    assert "https://elsewhere.example.com/" in page.text
    assert (states["signature"], states["audience"], states["account"]) == (True, False, None)
    assert last["ok"] is False
    assert SAML not in page.text
    assert fresh_address() not in page.text
