"""People who do everything that has a secret in it, right and wrong; and what must be found nowhere afterwards."""

import base64
from contextlib import closing

import pyotp

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import Service
from tests.outside.sms_gateway import SmsGateway
from tests.outside.smtp_server import Mailbox
from tests.routes.auth.devices import decide, new_device

ADDRESS, PHONE = "canary@example.com", "+41791234567"


def people_of(service: Service, tenant: Tenant, mailbox: Mailbox, sms_gateway: SmsGateway) -> dict[str, bytes]:
    """Let people live through a deployment; their secrets by name."""
    with closing(member(service, tenant, "owner", mfa=True)) as owner:
        found = _sessions(service) | _mail(service, mailbox) | _devices(owner) | _administration(owner)
        owner.ok("POST", "/auth/mfa/sms/enroll", {"phone": PHONE})
        owner.take(owner.ok("POST", "/auth/mfa/sms/verify", {"code": sms_gateway.code_for(PHONE)}))
        used, unused = owner.recovery_codes[-1], owner.recovery_codes[0]
        owner.step_up()
        owner.post("/auth/mfa/recovery-codes/step-up", json={"code": used})
        owner.post("/auth/mfa/totp/step-up", json={"code": pyotp.TOTP(owner.seed).now()})
        return found | {
            "authenticator seed": base64.b32decode(owner.seed),
            "authenticator seed in text": owner.seed.encode(),
            "used recovery code": used.encode(),
            "unused recovery code": unused.encode(),
            "session token with MFA": owner.session["token"].encode(),
        }


def _sessions(service: Service) -> dict[str, bytes]:
    with closing(sign_in(service)) as person:
        first = person.session
        second = person.take(person.refresh().json()["data"])
        wrong = [{"refreshToken": first["refreshToken"]}, {"refreshToken": second["token"][:500]}, {"message": "x"}]
        assert {person.post("/auth/refresh", json=body).status_code for body in wrong} <= {400, 401}
        person.get("/agents", headers={"Authorization": f"Basic {second['token']}"})
        person.get(f"/nothing/{first['token']}")
        key = {"personal tenant key": first["tenant"]["apiKey"].encode()}
        both = {"first": first, "second": second}
        return (
            key
            | {f"{name} token": one["token"].encode() for name, one in both.items()}
            | {f"{name} refresh token": one["refreshToken"].encode() for name, one in both.items()}
        )


def _mail(service: Service, mailbox: Mailbox) -> dict[str, bytes]:
    with closing(Client(base_url=service.url, timeout=30)) as nobody:
        for after in (0, 1):
            nobody.ok("POST", "/auth/email/send", {"email": ADDRESS})
            body = {"email": ADDRESS, "code": mailbox.code_for(ADDRESS, after=after)}
            if after == 0:
                assert nobody.post("/auth/email/verify", json=body | {"tenantId": "no-such-tenant"}).status_code == 403
        session = nobody.ok("POST", "/auth/email/verify", body)
        assert nobody.post("/auth/email/verify", json=body).status_code == 401
        return {"token by mail": session["token"].encode(), "refresh token by mail": session["refreshToken"].encode()}


def _devices(owner: Person) -> dict[str, bytes]:
    device = new_device(owner, owner.tenant)
    assert decide(owner, device).is_success
    session = device.poll().json()
    return {
        "device code": device.code["device_code"].encode(),
        "token of a device": session["access_token"].encode(),
        "refresh token of a device": session["refresh_token"].encode(),
    }


def _administration(owner: Person) -> dict[str, bytes]:
    path = f"/tenants/{owner.tenant}"
    owner.ok("POST", f"{path}/app-clients", {"id": "server", "name": "A server"})
    app_secret = owner.ok("POST", f"{path}/app-clients/server/secrets", {})["appSecret"]
    signing = owner.ok("POST", f"{path}/request-signing-keys", {})["signingSecret"]
    shown = base64.b64encode(f"{owner.tenant}/server:{app_secret}".encode()).decode()
    headers = {"Authorization": f"Basic {shown}", "X-Service-App-Id": f"{owner.tenant}/server"}
    assert owner.get("/agents", headers=headers).status_code == 200
    assert owner.get("/agents", headers=headers | {"X-Service-App-Id": "x"}).status_code == 401
    api_key = owner.ok("POST", f"{path}/api-keys", {"name": "the next one"})["apiKey"]
    with_key = {"X-Service-Key": api_key, "Authorization": ""}
    assert owner.get("/me", headers=with_key).json()["data"]["kind"] == "tenant_key"
    return {
        "app secret": app_secret.encode(),
        "request-signing secret": signing.encode(),
        "API key of a tenant": api_key.encode(),
    }
