"""A generated client against every operation of the contract: no fault of ours, nothing the contract does not say.

Seeded, so a failure can be repeated; the contract is the generated one, so it cannot lag behind.
"""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.http import openapi
from api.http.endpoint import Endpoint
from api.routes import endpoints
from tests.fixtures.callers import Client
from tests.fixtures.thorough import THOROUGH
from tests.table.world import KINDS, World

pytestmark = pytest.mark.long

TABLE = endpoints()
CONTRACT = schemathesis.openapi.from_dict(openapi.document(TABLE, "http://localhost"))
CHECKS = (status_code_conformance, content_type_conformance, response_schema_conformance)
CREDENTIALS = ("authorization", "x-service-key", "x-service-platform-key", "x-service-app-id")
FEW = settings(
    max_examples=8 * THOROUGH, derandomize=True, deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


TRIES = [
    pytest.param(endpoint, mode, id=f"{mode.value} {name(endpoint)}")
    for endpoint in TABLE
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    # Nothing in a request without any part could be invalid.
    if mode == GenerationMode.POSITIVE or endpoint.body or endpoint.query or endpoint.path_names
    # A stream goes on for as long as somebody listens; tests/routes/test_events.py.
    if endpoint.media != "text/event-stream"
]


def own_ids(world: World, endpoint: Endpoint) -> dict[str, str]:
    """What exists, so that more than 404 is met; what a request would destroy is left to chance."""
    known = {
        "agent": ("agentId", world.agent.id), "tenant_id": ("id", world.tenant.id),
        "secret_id": ("id", world.route["secretId"]), "route_id": ("id", world.route["id"]),
    }  # fmt: skip
    # Frozen, or without its app clients, the tenant would be of no use to the next law.
    spoils = endpoint.method == "DELETE" or endpoint.path.endswith(("freeze", "app-clients"))
    return {} if spoils else dict(known[part] for part in endpoint.path_names if part in known)


def callers(world: World, endpoint: Endpoint) -> list[Client]:
    if endpoint.path.startswith("/auth/"):
        # Somebody whose session may end.
        return [world.throwaway()]
    return [world.client(kind) for kind in KINDS if kind in endpoint.who.kinds] or [world.nobody]


@pytest.mark.parametrize(("endpoint", "mode"), TRIES)
def test_a_generated_client_meets_only_what_the_contract_says(
    world: World, endpoint: Endpoint, mode: GenerationMode
) -> None:
    valid = mode == GenerationMode.POSITIVE

    @FEW
    @given(case=CONTRACT[endpoint.contract_path][endpoint.method].as_strategy(generation_mode=mode))
    def run(case: Case) -> None:
        if valid:
            case.path_parameters.update(own_ids(world, endpoint))
        for client in callers(world, endpoint):
            headers = {name: value for name, value in client.headers.items() if name in CREDENTIALS}
            answer = case.call(base_url=str(client.base_url), headers=headers)
            assert answer.status_code not in (500, 503), answer.text
            case.validate_response(answer, checks=CHECKS)

    run()
