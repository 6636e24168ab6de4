"""While identity is away nobody signs in, and agents go on signing."""

from collections.abc import Iterator

import pytest

from ops import places
from tests.fixtures.callers import Client, new_tenant
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.server import Service


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment that may lose a process."""
    with deploy(database_apart(postgres_home, f"{worker_id}_away")) as service:
        yield service


def test_signing_goes_on_and_signing_in_says_why_not(apart: Service) -> None:
    with new_tenant(apart) as tenant, Client(base_url=apart.url) as nobody:
        agent = tenant.agent()
        apart.kill("identity")
        try:
            signed, nonce, ready = agent.sign(value=1), nobody.get("/auth/nonce"), nobody.get("/ready")
        finally:
            apart.start("identity")

        assert signed.status_code == 200
        assert (nonce.status_code, nonce.json()["data"]["code"]) == (503, "identity_unavailable")
        assert ready.status_code == 503
        checks = ready.json()["data"]["checks"]
        assert (checks["signer"]["ok"], checks["identity"]["ok"]) == (True, False)
        assert nobody.get("/auth/nonce").status_code == 200
