"""A generated client against every operation of the contract: no fault of ours, nothing the contract does not say.

Seeded, so a failure can be repeated; the contract is the generated one, so it cannot lag behind.
"""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.http import openapi
from api.http.endpoint import Endpoint
from api.routes import endpoints
from tests.table.world import World

TABLE = endpoints()
CONTRACT = schemathesis.openapi.from_dict(openapi.document(TABLE, "http://localhost"))
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
FEW = settings(
    max_examples=12, derandomize=True, deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


def cases(endpoint: Endpoint, mode: GenerationMode) -> st.SearchStrategy[Case]:
    return CONTRACT[endpoint.contract_path][endpoint.method].as_strategy(generation_mode=mode)


def tried(world: World, endpoint: Endpoint, case: Case, **given: Any) -> None:
    """Send a case as each who may call, and hold the answers against the contract."""
    for client in {world.caller(endpoint), world.client("agent_token") if "agent_token" in endpoint.who.kinds else world.caller(endpoint)}:
        headers = {key: value for key, value in client.headers.items() if key in ("authorization", "x-service-key", "x-service-platform-key")}
        case.call_and_validate(base_url=str(client.base_url), headers=headers, checks=CHECKS, **given)


@pytest.mark.parametrize("endpoint", TABLE, ids=name)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
def test_a_generated_client_meets_only_what_the_contract_says(world: World, endpoint: Endpoint, mode: GenerationMode) -> None:
    @FEW
    @given(case=cases(endpoint, mode))
    def run(case: Case) -> None:
        tried(world, endpoint, case)

    run()
