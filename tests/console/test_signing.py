"""Signed requests, for deployments that take no change without. `docs/api.md`."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from console.entry.settings import load
from console.wire.api_client import ApiClient
from console.wire.credentials import TenantKey
from console.wire.failures import Unproven
from console.wire.signing import RequestSigner, SigningKey
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import driving
from tests.fixtures.deployments import partner_of
from tests.fixtures.people import Person
from tests.fixtures.server import Service

VECTORS = Path(__file__).parents[1] / "vectors" / "request_signature.json"


@pytest.fixture(scope="module")
def strict(service: Service) -> Iterator[Service]:
    """A deployment that takes no change without a signature."""
    with partner_of(service, SERVICE_REQUIRE_AUTH_SIGNATURE="true") as running:
        yield running


def test_signatures_are_those_of_the_page() -> None:
    vectors = msgspec.json.decode(VECTORS.read_bytes())
    checked = 0
    for one in vectors["requests"]:
        if one["expiresAt"] or not one["v1"]:
            continue
        given = {"X-Service-Request-Timestamp": one["timestamp"], "Idempotency-Key": one["idempotencyKey"]}
        signer = RequestSigner(SigningKey("key-1", vectors["secret"]), one["tenant"])

        headers = signer.headers(one["method"], one["pathWithQuery"], given, one["body"].encode())

        assert headers == {"X-Service-Signature": one["v1"], "X-Service-Signing-Key-Id": "key-1"}, one["name"]
        checked += 1
    assert checked >= 3


@pytest.mark.long
async def test_a_profile_with_a_signing_key_may_change_things(
    service: Service, strict: Service, tenant: Tenant, as_owner: Person, folder: Path, tmp_path: Path
) -> None:
    made = as_owner.ok("POST", f"/tenants/{tenant.id}/request-signing-keys", {})
    key_id = as_owner.ok("GET", f"/tenants/{tenant.id}/request-signing-keys")[0]["id"]
    file = tmp_path / "signing.key"
    file.write_text(f"{key_id}:{made['signingSecret']}\n")
    file.chmod(0o600)
    folder.mkdir()
    (folder / "console.toml").write_text(f'[profiles.default]\ntenant = "{tenant.id}"\nsigning_key_file = "{file}"\n')
    read = load([], {}, folder)
    given = {"key": tenant.key, "tenant": tenant.id, "signing_key": read.signing_key}

    async with driving(strict.url, folder, **given) as console:
        await console.until(lambda: console.app.person, "the sign-in")
        body = {"id": "signed-for", "name": "A"}
        await console.app.client.send("POST", "/agents", object, body)

    assert [agent["id"] for agent in tenant.ok("GET", "/agents")] == ["signed-for"]


@pytest.mark.long
async def test_a_signature_that_is_wanted_or_wrong_signs_nobody_out(strict: Service, tenant: Tenant) -> None:
    client = ApiClient(strict.url, TenantKey(tenant.key))
    for signer in (None, RequestSigner(SigningKey("no-such-key", "wrong"), tenant.id)):
        client.signer = signer
        with pytest.raises(Unproven) as caught:
            await client.send("POST", "/agents", object, {"id": "a", "name": "A"})
        assert caught.value.code in ("signature_required", "signature_key_unknown")
    await client.close()
