"""Requests that only the person who is ready for them can make: a code of their own, a key of their tenant's."""

import base64
import hashlib
import secrets
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pyotp

from tests.fixtures.approvers import Authenticator as ApproverKey
from tests.fixtures.approvers import approver, quorum
from tests.fixtures.callers import ADDRESS, Client, Tenant, new_tenant
from tests.fixtures.envelopes import sealed
from tests.fixtures.eventually import eventually
from tests.fixtures.forgery import claims_of
from tests.fixtures.linking import evm_proof, second_wallet
from tests.fixtures.people import Person, by_mail, fresh_address, member, says, sign_in
from tests.fixtures.signers import new_quorum, new_signer, quorum_body, signer_body
from tests.outside.authenticator import Authenticator
from tests.outside.wallet import Wallet
from tests.routes.accounts.makers import opened
from tests.routes.auth.devices import GRANT_TYPE, Device, decide, new_device
from tests.routes.auth.factors import code_at
from tests.routes.intents.makers import act, proposed
from tests.routes.intents.makers import transfer as intent_of_transfer
from tests.routes.vault.bitcoin import SCOPE, asked, payment
from tests.routes.vault.transfers import fields, transfer
from tests.table import sign_on_journeys

if TYPE_CHECKING:
    from tests.table.world import World

APP_CLIENT = {"id": "keeper", "name": "A client"}
NOBODY_LISTENS = "http://127.0.0.1:9/"
_STOCK, _FEW = "stock", 12


class Journey(msgspec.Struct):
    """A request's caller, what stands in its path, its body and its query."""

    client: httpx.Client
    path: dict[str, str] = {}
    body: Any = None
    query: str = ""


def _invitation(world: "World", address: str | None = None) -> dict[str, Any]:
    """One into the tenant."""
    body = {"email": address or fresh_address(), "role": "viewer"}
    made: dict[str, Any] = world.platform.ok("POST", f"/platform/tenants/{world.tenant.id}/invitations", body)
    return made


def _revoke_invitation(world: "World") -> Journey:
    made = _invitation(world)["invitation"]
    return Journey(world.platform, {"tenant_id": made["tenantId"], "invitation_id": made["id"]})


def _accept_invitation(world: "World") -> Journey:
    person = by_mail(world.service, world.mailbox)
    token = _invitation(world, person.address)["token"]
    return Journey(person, {"joined_tenant_id": world.tenant.id}, {"token": token})


def _link(world: "World") -> Journey:
    person = sign_in(world.service)
    return Journey(person, body={"wallet": evm_proof(world.service, person)})


def _unlink(world: "World") -> Journey:
    person = sign_in(world.service)
    return Journey(person, {"identity_id": second_wallet(world.service, person)})


def _two_wallets(world: "World") -> tuple[str, str]:
    """A member with a wallet more than one, and that wallet."""
    with closing(member(world.service, world.tenant, "viewer")) as person:
        return person.id, second_wallet(world.service, person)


def _remediate(world: "World") -> Journey:
    user, account = _two_wallets(world)
    path = {"own_tenant_id": world.tenant.id, "user_id": user, "linked_account_id": account}
    return Journey(world.owner, path)


def _remediate_several(world: "World") -> Journey:
    user, account = _two_wallets(world)
    return Journey(
        world.owner, {"own_tenant_id": world.tenant.id}, {"wallets": [{"userId": user, "accountId": account}]}
    )


def _wallet_of(world: "World") -> str:
    return world.owner.wallet.address


def _external_id(tenant: Tenant) -> dict[str, Any]:
    return {"tenantId": tenant.id, "walletExternalId": f"x-{secrets.token_hex(6)}"}


def _by_email(world: "World") -> Journey:
    address = fresh_address()
    world.platform.ok("POST", "/platform/users", {"email": address})
    return Journey(world.platform, body={"email": address})


def _by_phone(world: "World") -> Journey:
    with closing(_enrolled(world)) as person:
        phone = world.phone()
        person.ok("POST", "/auth/mfa/sms/enroll", {"phone": phone})
        person.ok("POST", "/auth/mfa/sms/verify", {"code": world.sms_gateway.code_for(phone)})
    return Journey(world.platform, body={"phone": phone})


def _by_contract(world: "World") -> Journey:
    return Journey(world.platform, body={"smartWalletId": world.contract_wallet})


def _by_external_id(world: "World") -> Journey:
    body = _external_id(world.fresh_tenant())
    world.platform.ok("POST", "/platform/users", {"email": fresh_address(), **body})
    return Journey(world.platform, body=body)


def _new_external_id(world: "World") -> Journey:
    body = _external_id(world.fresh_tenant())
    member = {"email": fresh_address(), "tenantId": body["tenantId"]}
    user = world.platform.ok("POST", "/platform/users", member)["userId"]
    return Journey(world.platform, {"user_id": user}, body)


def _user(world: "World", body: Any = None, *, over: bool = False) -> Journey:
    """Somebody whom the operator named, deactivated where that is asked."""
    user = world.platform.ok("POST", "/platform/users", {"email": fresh_address()})["userId"]
    if over:
        world.platform.ok("POST", f"/platform/users/{user}/deactivate")
    return Journey(world.platform, {"user_id": user}, body)


def _verify(world: "World") -> Journey:
    signed = Wallet().sign_in(says(world.service, world.nobody.ok("GET", "/auth/nonce")["nonce"]))
    return Journey(world.nobody, body={"message": signed.message, "signature": signed.signature})


def _email(world: "World") -> Journey:
    address = fresh_address()
    world.nobody.ok("POST", "/auth/email/send", {"email": address})
    return Journey(world.nobody, body={"email": address, "code": world.mailbox.code_for(address)})


def _refresh(world: "World") -> Journey:
    person = sign_in(world.service)
    return Journey(person, body={"refreshToken": person.session["refreshToken"]})


def _register_approver_key(world: "World") -> Journey:
    return Journey(_voter(world), body=ApproverKey().registration())


def _revoke_approver_key(world: "World") -> Journey:
    person = _voter(world)
    return Journey(person, {"key_id": person.ok("POST", "/approver-keys", ApproverKey().registration())["id"]})


def _vote_for_policies(world: "World") -> Journey:
    voter = approver(world.service, world.tenant, "admin")
    agent = world.tenant.agent()
    voter.person.ok("PUT", f"/agents/{agent.id}/policies", [quorum(1, voter)])
    item = {"id": agent.id, "txId": "2", "digest": hashlib.sha256(b"[]").hexdigest()}
    vote = voter.vote(item, said={"kind": "policies"})
    return Journey(voter.person, {"agent": agent.id}, {"policies": [], "vote": vote})


def _voter(world: "World") -> Person:
    """Somebody of a team, whose keys are their own: one may have eight."""
    return member(world.service, world.tenant, "developer", mfa=True)


def _other_session(world: "World") -> Journey:
    person = sign_in(world.service)
    with closing(sign_in(world.service, person.wallet)) as elsewhere:
        return Journey(person, {"session_id": claims_of(elsewhere.session["token"])["sid"]})


def _alone(world: "World") -> Journey:
    return Journey(sign_in(world.service))


def _switch(world: "World") -> Journey:
    person = sign_in(world.service)
    return Journey(person, body={"tenantId": person.tenant})


def _confirm_totp(world: "World") -> Journey:
    person = sign_in(world.service)
    seed = person.ok("POST", "/auth/mfa/totp/enroll", {})["secret"]
    return Journey(person, body={"code": pyotp.TOTP(seed).now()})


def _enrolled(world: "World") -> Person:
    person = sign_in(world.service)
    person.enrol_totp()
    return person


def _step_up_totp(world: "World") -> Journey:
    person = _enrolled(world)
    return Journey(person, body={"code": code_at(person.seed, 1)})


def _step_up_recovery(world: "World") -> Journey:
    person = _enrolled(world)
    return Journey(person, body={"code": person.recovery_codes.pop()})


def _with_passkey(world: "World") -> tuple[Person, Authenticator, str]:
    person, device = sign_in(world.service), Authenticator(f"http://localhost:{world.service.port}")
    credential = device.create(person.ok("POST", "/auth/passkeys/register/options", {}))
    made = person.ok("POST", "/auth/passkeys/register/verify", {"credential": credential})
    return person, device, made["id"]


def _register(world: "World") -> Journey:
    person, device = sign_in(world.service), Authenticator(f"http://localhost:{world.service.port}")
    return Journey(person, body={"credential": device.create(person.ok("POST", "/auth/passkeys/register/options", {}))})


def _step_up_passkey(world: "World") -> Journey:
    person, device, _ = _with_passkey(world)
    return Journey(person, body={"credential": device.get(person.ok("POST", "/auth/mfa/passkey/options", {}))})


def _log_in(world: "World") -> Journey:
    person, device, _ = _with_passkey(world)
    return Journey(person, body={"credential": device.get(person.ok("POST", "/auth/passkeys/login/options", {}))})


def _remove_passkey(world: "World") -> Journey:
    person, device, passkey = _with_passkey(world)
    # What was added just now is itself the recent factor, once it was shown.
    shown = device.get(person.ok("POST", "/auth/mfa/passkey/options", {}))
    person.take(person.ok("POST", "/auth/mfa/passkey/step-up", {"credential": shown}))
    return Journey(person, {"passkey_id": passkey})


def _began_sms(world: "World") -> tuple[Person, str]:
    person, phone = sign_in(world.service), world.phone()
    person.ok("POST", "/auth/mfa/sms/enroll", {"phone": phone})
    return person, phone


def _confirm_sms(world: "World") -> Journey:
    person, phone = _began_sms(world)
    return Journey(person, body={"code": world.sms_gateway.code_for(phone)})


def _with_sms(world: "World") -> tuple[Person, str]:
    person, phone = _began_sms(world)
    person.take(person.ok("POST", "/auth/mfa/sms/verify", {"code": world.sms_gateway.code_for(phone)}))
    return person, phone


def _step_up_sms(world: "World") -> Journey:
    person, phone = _with_sms(world)
    person.ok("POST", "/auth/mfa/sms/send", {})
    return Journey(person, body={"code": world.sms_gateway.code_for(phone, after=1)})


def _with_device(world: "World") -> tuple[Person, Device]:
    """Somebody new each time: a person may look at few codes."""
    person = sign_in(world.service)
    return person, new_device(world.nobody, person.tenant)


def _device_token(world: "World") -> Journey:
    person, device = _with_device(world)
    assert decide(person, device).is_success
    return Journey(person, body={"grant_type": GRANT_TYPE, "device_code": device.code["device_code"]})


def _look_at_device(world: "World") -> Journey:
    person, device = _with_device(world)
    return Journey(person, query=f"user_code={device.code['user_code']}")


def _decide(world: "World") -> Journey:
    person, device = _with_device(world)
    return Journey(person, body={"user_code": device.code["user_code"], "action": "approve"})


def _new_app_client(world: "World") -> Journey:
    path = f"/tenants/{world.tenant.id}/app-clients"
    # A tenant has few of them.
    world.owner.delete(f"{path}/{APP_CLIENT['id']}")
    return Journey(world.owner, {"tenant_id": world.tenant.id}, APP_CLIENT)


def _app_client(world: "World") -> Journey:
    journey = _new_app_client(world)
    world.owner.ok("POST", f"/tenants/{world.tenant.id}/app-clients", APP_CLIENT)
    return Journey(journey.client, {**journey.path, "client_id": APP_CLIENT["id"]})


def _app_secret(world: "World") -> Journey:
    journey = _app_client(world)
    made = world.owner.ok("POST", f"/tenants/{world.tenant.id}/app-clients/{APP_CLIENT['id']}/secrets", {})
    return Journey(journey.client, {**journey.path, "app_secret_id": made["id"]})


def _new_domain(world: "World") -> Journey:
    path = f"/tenants/{world.tenant.id}/sso-domains"
    # A tenant has few of them.
    for one in world.owner.ok("GET", path):
        world.owner.delete(f"{path}/{one['domain']}")
    return Journey(world.owner, {"tenant_id": world.tenant.id}, {"domain": f"d-{secrets.token_hex(6)}.example"})


def _domain(world: "World") -> Journey:
    journey = _new_domain(world)
    made = world.owner.ok("POST", f"/tenants/{world.tenant.id}/sso-domains", journey.body)
    world.dns_server.txt(made["record"]["name"], made["record"]["value"])
    return Journey(journey.client, {**journey.path, "domain": made["domain"]})


def _no_signing_key(world: "World") -> Journey:
    path = f"/tenants/{world.tenant.id}/request-signing-keys"
    for key in world.owner.ok("GET", path):
        world.owner.delete(f"{path}/{key['id']}")
    return Journey(world.owner, {"tenant_id": world.tenant.id})


def _signing_key(world: "World") -> Journey:
    journey = _no_signing_key(world)
    made = world.owner.ok("POST", f"/tenants/{world.tenant.id}/request-signing-keys", {})
    return Journey(journey.client, {**journey.path, "key_id": made["id"]})


def _few_api_keys(world: "World") -> Journey:
    """Of the tenant's keys its own goes on; a tenant may have few."""
    path = f"/tenants/{world.tenant.id}/api-keys"
    for key in world.owner.ok("GET", path):
        if key["status"] != "revoked" and not world.tenant.key.startswith(key["prefix"]):
            world.owner.ok("DELETE", f"{path}/{key['id']}", {"force": True})
    return Journey(world.owner, {"tenant_id": world.tenant.id}, {"name": "the next one"})


def _replaced_api_key(world: "World") -> Journey:
    journey, path = _few_api_keys(world), f"/tenants/{world.tenant.id}/api-keys"
    replaced, _ = world.owner.ok("POST", path, {}), world.owner.ok("POST", path, {})
    return Journey(world.owner, {**journey.path, "api_key_id": replaced["id"]}, {"force": False})


def _by_operator(world: "World", journey: Journey) -> Journey:
    return Journey(world.platform, journey.path, journey.body)


def _new_member(world: "World") -> Journey:
    person = sign_in(world.service)
    person.close()
    body = {"userId": person.id, "role": "viewer"}
    return Journey(world.platform, {"tenant_id": world.tenant.id}, body)


def _member(world: "World") -> Journey:
    journey = _new_member(world)
    world.platform.ok("POST", f"/platform/tenants/{world.tenant.id}/members", journey.body)
    path = {"tenant_id": world.tenant.id, "user_id": journey.body["userId"]}
    return Journey(world.platform, path, {"force": False})


def _unfreeze_agent(world: "World") -> Journey:
    agent = world.fresh_agent()
    world.tenant.ok("POST", f"/agents/{agent.id}/freeze", {})
    return Journey(world.owner, {"agent": agent.id})


def _freeze_tenant(world: "World") -> Journey:
    tenant: Tenant = new_tenant(world.service)
    return Journey(tenant, {"tenant_id": tenant.id}, {"reason": "tried"})


def _unfreeze_tenant(world: "World") -> Journey:
    with new_tenant(world.service) as tenant:
        owner = member(world.service, tenant, "owner", mfa=True)
        tenant.ok("POST", f"/tenants/{tenant.id}/freeze", {})
    return Journey(owner, {"tenant_id": tenant.id})


def _freeze_by_operator(world: "World") -> Journey:
    return msgspec.structs.replace(_freeze_tenant(world), client=world.platform)


def _unfreeze_by_operator(world: "World") -> Journey:
    tenant = world.fresh_tenant()
    world.platform.ok("POST", f"/platform/tenants/{tenant.id}/freeze", {})
    return Journey(world.platform, {"tenant_id": tenant.id})


def _new_webhook(world: "World") -> Journey:
    # A tenant has few.
    for webhook in world.owner.ok("GET", "/webhooks"):
        if webhook["description"] != _STOCK:
            world.owner.delete(f"/webhooks/{webhook['id']}")
    return Journey(world.owner, body={"url": NOBODY_LISTENS})


def _webhook(world: "World") -> Journey:
    made = world.owner.ok("POST", "/webhooks", _new_webhook(world).body)
    return Journey(world.owner, {"webhook_id": made["id"]})


def _change_webhook(world: "World") -> Journey:
    return msgspec.structs.replace(_webhook(world), body={"maxRetries": 3})


def _failed_delivery(world: "World") -> Journey:
    """One that may be tried again; several are made at once, for it takes a moment."""
    if not world.failed_deliveries:
        fields = {"url": NOBODY_LISTENS, "description": _STOCK, "maxRetries": 10, "retryBackoffMs": 86_400_000}
        path = f"/webhooks/{world.owner.ok('POST', '/webhooks', fields)['id']}/deliveries?status=failed"
        for _ in range(_FEW):
            world.agent.sign()
        failed = eventually(lambda: world.owner.ok("GET", path), lambda found: len(found) >= _FEW)
        world.failed_deliveries += [one["id"] for one in failed]
    return Journey(world.owner, {"delivery_id": world.failed_deliveries.pop()})


def _transfer(world: "World") -> Journey:
    return Journey(world.authorised, {"agent": world.authorised.id}, fields())


def _psbt(world: "World") -> Journey:
    agent = world.bitcoin_payer
    return Journey(agent, {"agent": agent.id}, asked(payment(agent, 10_000)))


def _alone_with_a_factor(world: "World") -> Person:
    """Somebody in their own tenant."""
    person = sign_in(world.service)
    person.enrol_totp()
    return person


def _user_wallet(world: "World") -> Journey:
    return Journey(_alone_with_a_factor(world), body={"walletIndex": 0})


def _user_wallets(world: "World") -> Journey:
    return Journey(_alone_with_a_factor(world))


def _with_a_wallet(world: "World") -> Person:
    person = _alone_with_a_factor(world)
    person.ok("POST", "/user/me/wallet", {})
    return person


def _user_signers(world: "World") -> Journey:
    return Journey(_with_a_wallet(world))


def _user_signer(world: "World") -> Journey:
    return Journey(_with_a_wallet(world), body={"subjectId": "my-bot"})


def _revoked_user_signer(world: "World") -> Journey:
    person = _with_a_wallet(world)
    return Journey(person, {"signer_id": person.ok("POST", "/user/me/wallet/signers", {"subjectId": "x"})["id"]})


def _begin_user_import(world: "World") -> Journey:
    return Journey(_with_a_wallet(world), body={"chain": "evm"})


def _finish_user_import(world: "World") -> Journey:
    person = _with_a_wallet(world)
    session = person.ok("POST", "/user/me/wallet/import/init", {"chain": "evm"})
    return Journey(person, body=sealed(session, secrets.token_hex(32)))


def _begin_import(world: "World") -> Journey:
    return Journey(world.owner, {"agent": world.fresh_agent().id}, {"chain": "evm"})


def _finish_import(world: "World") -> Journey:
    agent = world.fresh_agent()
    session = world.owner.ok("POST", f"/vault/{agent.id}/import/init", {"chain": "evm"})
    return Journey(world.owner, {"agent": agent.id}, sealed(session, secrets.token_hex(32)))


def _address(world: "World") -> Journey:
    return Journey(world.tenant, {"agent": world.bitcoin_payer.id}, query=f"walletScope={SCOPE}")


def _action(world: "World") -> Journey:
    agent = world.authorised
    made = transfer(agent).json()["data"]["actionId"]
    token = agent.headers["authorization"].removeprefix("Bearer ")
    headers = {"Authorization": world.owner.headers["authorization"], "X-Service-Agent-Token": token}
    return Journey(
        Client(base_url=world.service.url, headers=headers, timeout=30), {"agent": agent.id, "action_id": made}
    )


def _signer(world: "World", **body: Any) -> Journey:
    """A signer of an agent of its own: each has few."""
    agent = world.fresh_agent()
    made = new_signer(world.owner, agent)
    return Journey(world.owner, {"agent": agent.id, "signer_id": made["id"]}, body or None)


def _quorum(world: "World", **body: Any) -> Journey:
    agent = world.fresh_agent()
    made = new_quorum(world.owner, agent, [new_signer(world.owner, agent)["id"]], threshold=1)
    return Journey(world.owner, {"agent": agent.id, "quorum_id": made["id"]}, body or None)


def _new_quorum(world: "World") -> Journey:
    agent = world.fresh_agent()
    body = quorum_body([new_signer(world.owner, agent)["id"]], threshold=1)
    return Journey(world.owner, {"agent": agent.id}, body)


def _new_intent(world: "World") -> Journey:
    return Journey(world.tenant, body=intent_of_transfer(world.agent))


def _intent(world: "World", *acts: str, body: Any = None) -> Journey:
    """An intent of the tenant's program, on which its owner has acted so far."""
    made = proposed(world.tenant, intent_of_transfer(world.agent))
    for one in acts:
        assert act(world.owner, made, one).is_success
    return Journey(world.owner, {"intent_id": made["id"]}, body)


def _calls(world: "World") -> Journey:
    agent = world.caller_of_calls
    return Journey(agent, {"agent": agent.id}, {"calls": [{"to": ADDRESS, "value": "1"}], "broadcast": False})


def _account(world: "World", body: Any = None) -> Journey:
    """An account of its own; a tenant has many, but not any number."""
    for account in world.tenant.ok("GET", "/accounts?offset=50")["accounts"]:
        world.tenant.ok("DELETE", f"/accounts/{account['id']}")
    return Journey(world.tenant, {"account_id": opened(world.tenant, world.agent)["id"]}, body)


def _aggregation(world: "World", body: Any = None) -> Journey:
    journey = _account(world)
    path = f"/accounts/{journey.path['account_id']}/aggregations"
    made = world.tenant.ok("POST", path, {"displayName": "A quarter"})
    return Journey(world.tenant, {**journey.path, "aggregation_id": made["id"]}, body)


def _of_accounts(at: str) -> dict[str, Callable[["World"], Journey]]:
    one, some = f"{at}/{{accountId}}", f"{at}/{{accountId}}/aggregations"
    return {
        f"POST {at}": lambda world: Journey(world.tenant, body={"wallet_ids": [world.agent.id]}),
        f"GET {one}": _account,
        f"PATCH {one}": lambda world: _account(world, {"displayName": "Called otherwise"}),
        f"DELETE {one}": _account,
        f"GET {one}/balance": _account,
        f"GET {some}": _account,
        f"POST {some}": lambda world: _account(world, {"displayName": "A quarter"}),
        f"GET {some}/{{aggregationId}}": _aggregation,
        f"PATCH {some}/{{aggregationId}}": lambda world: _aggregation(world, {"refresh": True}),
        f"DELETE {some}/{{aggregationId}}": _aggregation,
    }


def _step(make: Callable[["World"], sign_on_journeys.Step]) -> Callable[["World"], Journey]:
    return lambda world: Journey(*make(world))


def _with_saml(world: "World") -> Journey:
    sign_on_journeys.saved_saml(world)
    return Journey(world.owner, {"tenant_id": world.tenant.id})


JOURNEYS: dict[str, Callable[["World"], Journey]] = {
    **_of_accounts("/accounts"),
    **_of_accounts("/v1/accounts"),
    "POST /intents": _new_intent,
    "GET /intents/{intentId}": _intent,
    "POST /intents/{intentId}/authorize": lambda world: _intent(world, body={"reason": "seen"}),
    "POST /intents/{intentId}/approve": lambda world: _intent(world, body={"reason": "seen"}),
    "POST /intents/{intentId}/reject": lambda world: _intent(world, body={"reason": "no"}),
    "POST /intents/{intentId}/execute": lambda world: _intent(world, "authorize"),
    "POST /intents/{intentId}/fail": lambda world: _intent(world, body={"executionResult": {"seen": True}}),
    "POST /intents/{intentId}/cancel": _intent,
    "POST /intents/{intentId}/expire": _intent,
    "POST /vault/{agentId}/actions/send-calls": _calls,
    "POST /agents/{agentId}/signers": lambda world: Journey(
        world.owner, {"agent": world.fresh_agent().id}, signer_body(issueCredential=True)
    ),
    "PATCH /agents/{agentId}/signers/{signerId}": lambda world: _signer(world, label="another"),
    "DELETE /agents/{agentId}/signers/{signerId}": _signer,
    "POST /agents/{agentId}/key-quorums": _new_quorum,
    "PATCH /agents/{agentId}/key-quorums/{quorumId}": lambda world: _quorum(world, name="another"),
    "DELETE /agents/{agentId}/key-quorums/{quorumId}": _quorum,
    "GET /auth/oauth/{provider}/authorize": _step(sign_on_journeys.begin_oauth),
    "GET /auth/oauth/{provider}/callback": _step(sign_on_journeys.finish_oauth),
    "POST /auth/oauth/{provider}/token": _step(sign_on_journeys.exchange_of_google),
    "POST /auth/oauth/exchange": _step(sign_on_journeys.exchange),
    "GET /auth/oidc/{provider}/authorize": _step(sign_on_journeys.begin_oidc),
    "GET /auth/oidc/{provider}/callback": _step(sign_on_journeys.finish_oidc),
    "GET /auth/saml/{tenantId}/login": _step(sign_on_journeys.begin_saml),
    "POST /auth/saml/{tenantId}/acs": _step(sign_on_journeys.finish_saml),
    "GET /auth/saml/{tenantId}/metadata": lambda world: Journey(world.nobody, {"sign_on_tenant": world.tenant.id}),
    "PUT /tenants/{id}/saml-sso": lambda world: Journey(
        world.owner, {"tenant_id": world.tenant.id}, sign_on_journeys.saml_config(world)
    ),
    "DELETE /tenants/{id}/saml-sso": _with_saml,
    "POST /tenants/{id}/sign-on/test": lambda world: msgspec.structs.replace(
        _with_saml(world), body={"provider": "saml"}
    ),
    "POST /auth/verify": _verify,
    "POST /auth/email/send": lambda world: Journey(world.nobody, body={"email": fresh_address()}),
    "POST /auth/email/verify": _email,
    "POST /auth/refresh": _refresh,
    "POST /auth/logout": _alone,
    "DELETE /auth/sessions/{id}": _other_session,
    "POST /auth/session/tenant": _switch,
    "POST /auth/mfa/totp/enroll": _alone,
    "POST /auth/mfa/totp/verify": _confirm_totp,
    "POST /auth/mfa/totp/step-up": _step_up_totp,
    "DELETE /auth/mfa/totp": lambda world: Journey(_enrolled(world)),
    "POST /auth/mfa/recovery-codes": lambda world: Journey(_enrolled(world)),
    "POST /auth/mfa/recovery-codes/step-up": _step_up_recovery,
    "POST /auth/mfa/passkey/options": lambda world: Journey(_with_passkey(world)[0]),
    "POST /auth/mfa/passkey/step-up": _step_up_passkey,
    "POST /auth/mfa/sms/enroll": lambda world: Journey(sign_in(world.service), body={"phone": world.phone()}),
    "POST /auth/mfa/sms/verify": _confirm_sms,
    "POST /auth/mfa/sms/send": lambda world: Journey(_with_sms(world)[0]),
    "POST /auth/mfa/sms/step-up": _step_up_sms,
    "POST /agents/{agentId}/policies/votes": _vote_for_policies,
    "POST /approver-keys": _register_approver_key,
    "DELETE /approver-keys/{keyId}": _revoke_approver_key,
    "POST /auth/passkeys/register/options": _alone,
    "POST /auth/passkeys/register/verify": _register,
    "POST /auth/passkeys/login/verify": _log_in,
    "DELETE /auth/passkeys/{id}": _remove_passkey,
    "POST /auth/device/code": lambda world: Journey(world.nobody, body={"tenantId": world.tenant.id}),
    "POST /auth/device/token": _device_token,
    "GET /auth/device/request": _look_at_device,
    "POST /auth/device/verify": _decide,
    "POST /tenants/{id}/app-clients": _new_app_client,
    "PUT /tenants/{id}/app-clients": _new_app_client,
    "DELETE /tenants/{id}/app-clients/{clientId}": _app_client,
    "GET /tenants/{id}/app-clients/{clientId}/secrets": _app_client,
    "POST /tenants/{id}/app-clients/{clientId}/secrets": _app_client,
    "DELETE /tenants/{id}/app-clients/{clientId}/secrets/{secretId}": _app_secret,
    "POST /tenants/{id}/sso-domains": _new_domain,
    "POST /tenants/{id}/sso-domains/{domain}/verify": _domain,
    "DELETE /tenants/{id}/sso-domains/{domain}": _domain,
    "POST /tenants/{id}/request-signing-keys": _no_signing_key,
    "DELETE /tenants/{id}/request-signing-keys/{keyId}": _signing_key,
    "POST /tenants/{id}/api-keys": _few_api_keys,
    "DELETE /tenants/{id}/api-keys/{keyId}": _replaced_api_key,
    "POST /platform/tenants/{id}/api-keys": lambda world: _by_operator(world, _few_api_keys(world)),
    "DELETE /platform/tenants/{id}/api-keys/{keyId}": lambda world: _by_operator(world, _replaced_api_key(world)),
    "POST /auth/identities": _link,
    "DELETE /auth/identities/{id}": _unlink,
    "GET /user/me/tenants/{tenantId}/users/wallet-policy/violations": lambda world: Journey(
        world.owner, {"own_tenant_id": world.tenant.id}
    ),
    "DELETE /user/me/tenants/{tenantId}/users/{userId}/wallet-policy/wallets/{accountId}": _remediate,
    "POST /user/me/tenants/{tenantId}/users/wallet-policy/remediations": _remediate_several,
    "POST /platform/tenants/{id}/invitations": lambda world: Journey(
        world.platform, {"tenant_id": world.tenant.id}, {"email": fresh_address(), "role": "viewer"}
    ),
    "DELETE /platform/tenants/{id}/invitations/{invitationId}": _revoke_invitation,
    "POST /user/me/tenants/{tenantId}/invitations/accept": _accept_invitation,
    "POST /platform/tenants/{id}/members": _new_member,
    "DELETE /platform/tenants/{id}/members/{userId}": _member,
    "POST /platform/users": lambda world: Journey(world.platform, body={"email": fresh_address()}),
    "GET /platform/users/lookup": lambda world: Journey(world.platform, query=f"walletAddress={_wallet_of(world)}"),
    "POST /platform/users/email/address": _by_email,
    "POST /platform/users/phone/number": _by_phone,
    "POST /platform/users/wallet/address": lambda world: Journey(
        world.platform, body={"walletAddress": _wallet_of(world), "tenantId": world.tenant.id}
    ),
    "POST /platform/users/smart-wallet/address": _by_contract,
    "POST /platform/users/wallet/external-id": _by_external_id,
    "POST /platform/users/{userId}/wallet/external-id": _new_external_id,
    "GET /platform/users": lambda world: Journey(world.platform),
    "GET /platform/users/{userId}": _user,
    "PATCH /platform/users/{userId}": lambda world: _user(world, {"name": "Ada"}),
    "POST /platform/users/{userId}/deactivate": lambda world: _user(world, {"force": False}),
    "POST /platform/users/{userId}/reactivate": lambda world: _user(world, {}, over=True),
    "DELETE /platform/users/{userId}": lambda world: _user(world, {"force": False}, over=True),
    "POST /platform/users/wallet/external-id/connect-or-create": lambda world: Journey(
        world.platform, body=_external_id(world.fresh_tenant())
    ),
    "GET /platform/apps/gas_spend": lambda world: Journey(world.platform, query=f"tenant_id={world.tenant.id}"),
    "POST /agents/{agentId}/unfreeze": _unfreeze_agent,
    "POST /vault/{agentId}/actions/transfer": _transfer,
    "GET /vault/{agentId}/actions/{actionId}": _action,
    "POST /vault/{agentId}/sign-bitcoin-psbt": _psbt,
    "POST /vault/{agentId}/import/init": _begin_import,
    "POST /user/me/wallet": _user_wallet,
    "GET /user/me/wallets": _user_wallets,
    "POST /user/me/wallet/import/init": _begin_user_import,
    "POST /user/me/wallet/import/submit": _finish_user_import,
    "GET /user/me/wallet/signers": _user_signers,
    "POST /user/me/wallet/signers": _user_signer,
    "DELETE /user/me/wallet/signers/{signerId}": _revoked_user_signer,
    "POST /vault/{agentId}/import/submit": _finish_import,
    "GET /vault/{agentId}/bitcoin/address": _address,
    "POST /tenants/{id}/freeze": _freeze_tenant,
    "POST /tenants/{id}/unfreeze": _unfreeze_tenant,
    "POST /platform/tenants/{id}/freeze": _freeze_by_operator,
    "POST /platform/tenants/{id}/unfreeze": _unfreeze_by_operator,
    "POST /webhooks": _new_webhook,
    "GET /webhooks/{id}": _webhook,
    "PUT /webhooks/{id}": _change_webhook,
    "DELETE /webhooks/{id}": _webhook,
    "GET /webhooks/{id}/deliveries": _webhook,
    "GET /webhooks/{id}/deliveries/export": _webhook,
    "POST /webhooks/{id}/test": _webhook,
    "POST /webhooks/{id}/roll-secret": lambda world: msgspec.structs.replace(
        _webhook(world), body={"overlapSeconds": 60}
    ),
    "POST /webhooks/deliveries/{id}/retry": _failed_delivery,
    "POST /webhooks/deliveries/{id}/replay": _failed_delivery,
    "GET /events": lambda world: Journey(world.tenant, query="follow=false"),
}


def app_client_of(owner: Person) -> Client:
    """A server integration of a tenant, with a secret of its own client."""
    path = f"/tenants/{owner.tenant}/app-clients"
    owner.ok("POST", path, {"id": "integration", "name": "An integration"})
    secret = owner.ok("POST", f"{path}/integration/secrets", {})["appSecret"]
    app_id = f"{owner.tenant}/integration"
    shown = base64.b64encode(f"{app_id}:{secret}".encode()).decode()
    return Client(
        base_url=owner.base_url, headers={"Authorization": f"Basic {shown}", "X-Service-App-Id": app_id}, timeout=30
    )
