"""A generated client against every operation of the contract: no internal error, nothing outside the contract.

Seeded, so a failure can be repeated; the contract is the generated one, so it cannot lag behind.
"""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from api.http import openapi
from api.http.contract import headers
from api.http.contract.codes import codes_of
from api.http.endpoint import Endpoint
from api.routes import endpoints
from tests.fixtures.callers import Client
from tests.fixtures.thorough import THOROUGH
from tests.table.mounts import each_once
from tests.table.world import KINDS, World

pytestmark = pytest.mark.long


def without_security(contract: dict[str, Any]) -> dict[str, Any]:
    """The same contract; otherwise the tool adds a credential of its own, and two are refused."""
    for operations in contract["paths"].values():
        for operation in operations.values():
            operation["security"] = []
    return contract


TABLE = endpoints()
CONTRACT = schemathesis.openapi.from_dict(without_security(openapi.document(TABLE, "http://localhost")))
# Parameters that are not declared are ignored on purpose.
CONTRACT.config.generation.update(allow_extra_parameters=False)
# What is too long is refused for its size first; 502 says that a blockchain node failed.
CONTRACT.config.checks.negative_data_rejection.expected_statuses += ["413", "431"]
CONTRACT.config.checks.not_a_server_error.expected_statuses += ["502"]
load_all_checks()
# What the tool checks by itself and is not asked here, and why.
OFF = {
    "ignored_auth": "It takes an empty `Authorization` beside a key for a wrong credential, and here it is none; "
    "tests/table/test_credentials.py tries every route with every wrong one.",
}
# Where a request that fits the schema may still be refused, because it means something that no schema can say.
MEANT: dict[str, str] = {
    **dict.fromkeys(("signInWithEmail",), "an app client is named with its tenant"),
    **dict.fromkeys(("signInWithWallet",), "the message is one of EIP-4361 and signed"),
    **dict.fromkeys(
        ("stepUpWithPasskey", "touchItem", "registerPasskey", "signInWithPasskey"),
        "the credential is an answer of an authenticator",
    ),
    **dict.fromkeys(("createDeviceCode", "pollDeviceToken"), "RFC 6749 answers 400 to an unknown tenant or code"),
    **dict.fromkeys(("signEvmTransaction", "signUserTransaction", "replaceTransaction"), "the wallet has no funds"),
    **dict.fromkeys(("replaceNamedTokens",), "a token is one of a chain, and has one name"),
    **dict.fromkeys(("getBalance", "getAccount", "listTokenBalances"), "the chain is one of the deployment's"),
    **dict.fromkeys(("createIntent", "sendCalls"), "the payload is one of its type, and says what can be done"),
    **dict.fromkeys(
        (
            f"{name}{mount}"
            for name in (
                "createDigitalAssetAccount",
                "changeDigitalAssetAccount",
                "createAggregation",
                "changeAggregation",
            )
            for mount in ("", "V1")
        ),
        "wallets and signers exist, and both spellings of a field agree",
    ),
    **dict.fromkeys(
        ("getDigitalAssetAccountBalance", "getDigitalAssetAccountBalanceV1"),
        "the chain is one of the deployment's, and a token is an address",
    ),
    **dict.fromkeys(
        ("exchangeOauthCode", "exchangeCode", "decideDevice", "findUserByExternalId", "assignExternalId"),
        "one of the names of a field is sent (`x-service-needs`)",
    ),
    **dict.fromkeys(("createPushSubscription",), "the endpoint is one of https, the keys are of P-256"),
    **dict.fromkeys(
        ("createNotificationChannel", "changeNotificationChannel"),
        "a target is one of its kind, with a token alone where it takes one, and hours have a zone and an end",
    ),
    "changePlatformUser": "metadata has 16 KiB, 8 levels and no reserved keys",
    "putOidcProviders": "addresses are public, an issuer's own document agrees, a variable is the tenant's",
    "putSamlSso": "certificates are ones, the address is public, and mappings agree",
    **dict.fromkeys(
        ("beginOauth", "beginOidc", "beginSaml", "getHostedSignIn", "createSignInCode"),
        "a challenge is of the one method, a redirect URL is on a list, and a tenant is named once",
    ),
    **dict.fromkeys(("finishOidc", "finishSaml"), "a state is one with which this browser left"),
    "linkIdentity": "exactly one proof is sent, and it is one",
    "acceptInvitation": "without a token the address decides, where the tenant lets it",
    "lookUpUser": "exactly one thing says who is meant",
    "findUserByWallet": "an address in base58 has 32 bytes",
    "getGasSpend": "the timestamps make a range of 30 days",
    **dict.fromkeys(
        ("createUser", "connectOrCreateUser"), "metadata has 16 KiB, 8 levels and no reserved keys, and ids a tenant"
    ),
    "failIntent": "both spellings of a field agree",
    "createAgentToken": "a lifetime is at most 30 days",
    "listApprovals": "an asset has its own spelling",
    "createSecret": "an expiry is yet to come",
    **dict.fromkeys(
        ("createSigner", "changeSigner", "createKeyQuorum", "changeKeyQuorum"),
        "permissions are known words, members are signers, metadata has 4 KiB",
    ),
    **dict.fromkeys(("listTransactions", "listAuditEvents"), "a date is one of the calendar, which has no year 0"),
    "searchTransactions": "data comes with JSON alone, and long pages with CSV",
    **dict.fromkeys(("replaceSecretValue", "rotateSecret"), "a route puts the value into a header"),
    "exportAuditEvents": "`since` is the size of a checkpoint",
    **dict.fromkeys(("signMessage", "signUserMessage"), "one of two forms is sent, and is no transaction"),
    **dict.fromkeys(("signTypedData", "signUserTypedData"), "the types of a document name each other"),
    "signSolanaTransaction": "the transaction is a serialized one",
    **dict.fromkeys(("transferFunds", "quoteTransfer"), "a broadcast needs a reference, and a token is an address"),
    "registerApproverKey": "the key is one of P-256",
    "simulateOrder": "the order is a whole one",
    "payDemand": "one of the offers can be paid from here",
    "signBitcoinPsbt": "the PSBT is one",
    **dict.fromkeys(("finishKeyImport", "finishUserWalletImport"), "the envelope opens"),
    "createUserWalletSigner": "permissions are known words, metadata has 4 KiB",
    "getBitcoinAddress": "a scope names a network and a type",
    **dict.fromkeys(("createCredentialRoute", "changeCredentialRoute"), "host and path are patterns"),
    **dict.fromkeys(
        ("createPaymentRoute", "changePaymentRoute"), "host and path are patterns, assets and addresses are ones"
    ),
    "explainCredentialRoute": "the URL is one",
    **dict.fromkeys(("setTenantWebhook", "setTenantPolicies"), "the route is retired"),
    **dict.fromkeys(("createWebhook", "changeWebhook"), "the address is a public one"),
    **dict.fromkeys(
        (
            "replacePolicies",
            "voteForPolicies",
            "backtestPolicies",
            "createAgents",
            "createPolicySet",
            "replacePolicySet",
        ),
        "the fields of a rule agree",
    ),
    **dict.fromkeys(("replaceTenantConfig", "createAppClients", "replaceAppClients"), "origins and rules are checked"),
}
# Where one that does not fit is taken.
SIGNED = [header for header in headers.SIGNED.values() if header != "Idempotency-Key"]
LOOSE: dict[str, str] = {
    "createAgents": "each agent of a batch is refused by itself, with 200",
    **dict.fromkeys(("createDeviceCode", "pollDeviceToken"), "a form's field without a value is none (RFC 6749, 3.1)"),
    # The tool writes too many `metadata.` filters without their prefix; what nobody declared is ignored.
    **dict.fromkeys(("listAuditEvents", "exportAuditEvents"), "too many filters arrive as none"),
}
ASKED = tuple(check for check in CHECKS.get_all() if check.__name__ not in OFF)
CREDENTIALS = ("authorization", "x-service-key", "x-service-platform-key", "x-service-app-id")
FEW = settings(
    max_examples=4 * THOROUGH,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def checks_for(endpoint: Endpoint) -> list[Any]:
    """Choose what is checked of the answers of an operation."""
    operation = openapi.operation_id(endpoint)
    off = {
        "positive_data_acceptance": operation in MEANT,
        "negative_data_rejection": operation in LOOSE,
    }
    return [check for check in ASKED if not off.get(check.__name__)]


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


TRIES = [
    pytest.param(endpoint, mode, id=f"{mode.value} {name(endpoint)}")
    for endpoint in each_once()
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    # Nothing in a request without any part could be invalid.
    if mode == GenerationMode.POSITIVE or endpoint.body or endpoint.query or endpoint.path_names
    # Its one parameter takes any text that an address can hold.
    if mode == GenerationMode.POSITIVE or endpoint.path != "/device"
    # A stream goes on for as long as somebody listens; tests/routes/test_events.py.
    if endpoint.media != "text/event-stream"
]


def own_ids(world: World, endpoint: Endpoint) -> dict[str, str]:
    """Name what exists, so that more than 404 is met; what a request would destroy is left to chance."""
    known = {
        "agent": ("agentId", world.agent.id),
        "tenant_id": ("id", world.tenant.id),
        "secret_id": ("id", world.route["secretId"]),
        "route_id": ("id", world.route["id"]),
    }
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
    codes = codes_of(endpoint)
    valid, checks = mode == GenerationMode.POSITIVE, checks_for(endpoint)

    @FEW
    @given(case=CONTRACT[endpoint.contract_path][endpoint.method].as_strategy(generation_mode=mode))
    def run(case: Case) -> None:
        if valid:
            case.path_parameters.update(own_ids(world, endpoint))
            # A signature and a cursor are never guessed.
            for unguessed in SIGNED:
                case.headers.pop(unguessed, None)
            case.query.pop("cursor", None)
        for client in callers(world, endpoint):
            credential = {name: value for name, value in client.headers.items() if name in CREDENTIALS}
            answer = case.call(base_url=str(client.base_url), headers=credential)
            assert answer.status_code not in (500, 503), answer.text
            case.validate_response(answer, checks=checks)
            if answer.status_code >= 400:
                code = answer.json()["data"].get("code")
                assert code in codes.get(answer.status_code, ()), f"{answer.status_code} {code} is not in the contract"

    run()
