"""docs/protocol-signer.md and its list of messages against the code, and spoken byte by byte with a running signer."""

import typing
from pathlib import Path
from typing import Any

import pytest

from custody.protocol.failures import Kind
from custody.protocol.frames import MAX_FRAME, VERSION
from custody.worker import agent_queues, peers
from signer import secrets
from tests.fixtures.commands import COMMANDS
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import SOCKETS, connected, greeted

ANY_UUID = "00000000-0000-4000-8000-000000000000"

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "protocol-signer.md").read_text()
KINDS = ("agent", "tenant_key", "platform_key", "session", "app_client")
# The smallest body of each message that decodes.
SEALED = {"importSessionId": ANY_UUID, "ephemeralPublicKey": "A", "iv": "A", "ciphertext": "A", "tag": "A"}
SAMPLES: dict[str, dict[str, Any]] = {
    "CreateTenant": {"id": "t", "name": "T"},
    "DeleteTenant": {"id": "t"},
    "PutConfig": {"document": "{}", "judging": {}},
    "CreateAgents": {"agents": []},
    "DeleteAgent": {"agent": "a"},
    "ReplacePolicies": {"agent": "a", "policies": []},
    "ChangeAgent": {"agent": "a", "name": "A"},
    "CreateSigner": {
        "agent": "a",
        "signer": {"signerType": "service", "subjectType": "external", "subjectId": "w"},
    },
    "ChangeSigner": {"agent": "a", "signer": ANY_UUID, "change": {}},
    "RevokeSigner": {"agent": "a", "signer": ANY_UUID},
    "CreateQuorum": {
        "agent": "a",
        "quorum": {"name": "q", "threshold": 1, "memberSignerIds": [ANY_UUID], "permissions": []},
    },
    "ChangeQuorum": {"agent": "a", "quorum": ANY_UUID, "change": {}},
    "RevokeQuorum": {"agent": "a", "quorum": ANY_UUID},
    "MintAgentToken": {"agent": "a", "ttl_seconds": 1, "expires_in": "1s"},
    "RevokeAgentTokens": {"agent": "a"},
    "SignOrder": {
        "agent": "a",
        "tx_id": ANY_UUID,
        "question": {"kind": "evm", "request": {"to": "0x" + "11" * 20, "value": "1"}},
    },
    "FindBitcoinAddress": {"agent": "a", "wallet_scope": "bitcoin:regtest:p2wpkh:0:0:0"},
    "BeginImport": {"agent": "a", "chain": "evm"},
    "FinishImport": {
        "agent": "a",
        "sealed": SEALED,
    },
    "CreateUserWallet": {"wallet_index": 0},
    "BeginUserImport": {"chain": "evm", "wallet_index": 0},
    "FinishUserImport": {
        "sealed": SEALED,
    },
    "CreateIntent": {
        "id": ANY_UUID,
        "kind": "rpc",
        "agent": None,
        "payload": {},
        "resource_type": None,
        "resource_id": None,
        "name": None,
        "expires_at": None,
        "ttl_seconds": 60,
    },
    "SendCalls": {"agent": "a", "id": ANY_UUID, "order": {"calls": [{"to": "0x" + "11" * 20, "value": "1"}]}},
    "AuthorizeIntent": {"id": ANY_UUID},
    "CloseIntent": {"id": ANY_UUID, "act": "cancel"},
    "ExecuteIntent": {"id": ANY_UUID},
    "FinishIntent": {"id": ANY_UUID, "result": "1"},
    "ExpireIntent": {"tenant": "t", "intent": ANY_UUID},
    "ReplaceEvm": {"agent": "a", "tx_id": ANY_UUID, "replaces": ANY_UUID},
    "Simulate": {"agent": "a", "question": {"kind": "evm", "request": {"to": "0x" + "11" * 20, "value": "1"}}},
    "IssueReceipt": {"agent": "a", "tx_id": ANY_UUID},
    "Approve": {},
    "Deny": {},
    "VotePolicies": {
        "agent": "a",
        "policies": [],
        "vote": {"keyId": ANY_UUID, "authenticatorData": "AA", "clientDataJSON": "AA", "signature": "AA"},
    },
    "BreakQuorum": {"tenant": "t", "agent": "a"},
    "RegisterApproverKey": {
        "name": "n",
        "rp_id": "localhost",
        "credential_id": "AA",
        "public_key": "A" * 124,
    },
    "RevokeApproverKey": {"key_id": ANY_UUID},
    "CreateSecret": {"name": "n", "value": "v"},
    "RotateSecret": {"secret": ANY_UUID, "value": "v", "rotate": True},
    "DeleteSecret": {"secret": ANY_UUID},
    "CreateCredentialRoute": {
        "secret": ANY_UUID,
        "fields": {"hostPattern": "api.example.com", "injectAs": "header", "injectKey": "x-key"},
    },
    "ChangeCredentialRoute": {"route": ANY_UUID, "changes": {}},
    "DeleteCredentialRoute": {"route": ANY_UUID},
    "RevealForRoute": {"route": ANY_UUID},
    "LookUpOrigin": {"origin": "https://app.example.com"},
    "NewNonce": {},
    "SignInWithWallet": {"message": "m", "signature": "0x00"},
    "NewEmailCode": {"email": "a@example.com"},
    "SignInWithEmail": {"email": "a@example.com", "code": "000000"},
    "NewSignInChallenge": {},
    "SignInWithPasskey": {"credential": {}},
    "BeginSignIn": {"kind": "oauth", "provider": "google", "browser": "x" * 43},
    "OpenSignIn": {"kind": "oauth", "provider": "google", "tenant": None, "state": "x", "browser": "x"},
    "FinishOAuth": {"state": "x"},
    "FinishSaml": {"tenant": "t", "relay_state": "x", "browser": "x", "response": "x"},
    "ExchangeCode": {"code": "x", "code_verifier": "x"},
    "TestSignOn": {"provider": "saml"},
    "PutSaml": {"config": {}},
    "DeleteSaml": {},
    "RefreshSession": {"refresh_token": "rt_"},
    "NewDeviceCode": {"tenant": "nobody"},
    "PollDeviceCode": {"device_code": "dc"},
    "HaveKeys": {"tenant": "t", "claimed": []},
    "Vouch": {},
    "EndSession": {},
    "SwitchTenant": {"tenant": "t"},
    "LookAtDevice": {"user_code": "AAAA-AAAA"},
    "DecideDevice": {"user_code": "AAAA-AAAA", "approve": False},
    "EnrolTotp": {},
    "ConfirmTotp": {"code": "000000"},
    "RemoveTotp": {},
    "NewRecoveryCodes": {},
    "EnrolSms": {"phone": "+41790000000"},
    "ConfirmSms": {"code": "000000"},
    "NewSmsCode": {},
    "NewPasskeyChallenge": {"purpose": "register"},
    "RegisterPasskey": {"credential": {}},
    "RemovePasskey": {"passkey": ANY_UUID},
    "StepUp": {"method": "totp", "code": "000000"},
    "PutMember": {"tenant": "t", "user": ANY_UUID, "role": "viewer"},
    "RemoveMember": {"tenant": "t", "user": ANY_UUID},
    "PutInvitation": {"tenant": "t", "email": "a@example.com", "role": "viewer", "seconds": 300},
    "RevokeInvitation": {"tenant": "t", "invitation": ANY_UUID},
    "AcceptInvitation": {"tenant": "t"},
    "LinkIdentity": {},
    "UnlinkIdentity": {"identity": ANY_UUID},
    "RemediateWallets": {"wallets": [{"user": ANY_UUID, "account": ANY_UUID}]},
    "CreateUser": {"email": "a@example.com"},
    "AssignExternalId": {"tenant": "t", "user": ANY_UUID, "external_id": "x"},
    "ChangeUser": {"user": ANY_UUID, "name": "Ada"},
    "DeactivateUser": {"user": ANY_UUID},
    "ReactivateUser": {"user": ANY_UUID},
    "DeleteUser": {"user": ANY_UUID},
    "ConnectOrCreateUser": {"tenant": "t", "external_id": "x"},
    "PutAppClients": {"clients": [], "mode": "upsert"},
    "DeleteAppClient": {"client": "web"},
    "PutOidcProviders": {"providers": []},
    "PutProviderKeys": {"tenant": None, "provider": "google", "jwks_uri": "https://idp.example.com/keys"},
    "CreateAppSecret": {"client": "web"},
    "RevokeAppSecret": {"client": "web", "secret": ANY_UUID},
    "PutSsoDomain": {"domain": "example.com", "sso_required": False},
    "VerifySsoDomain": {"domain": "example.com", "found": []},
    "DeleteSsoDomain": {"domain": "example.com"},
    "DomainSeen": {"tenant": "t", "domain": "example.com", "found": []},
    "DiscoverSignOn": {"email": "a@example.com"},
    "CreateSigningKey": {},
    "CreateApiKey": {},
    "RevokeApiKey": {"key": ANY_UUID},
    "CreateApiKeyIn": {"tenant": "t"},
    "RevokeApiKeyIn": {"tenant": "t", "key": ANY_UUID},
    "RevokeSigningKey": {"key": ANY_UUID},
    "FreezeAgent": {"agent": "a"},
    "FreezeTenant": {},
    "UnfreezeAgent": {"agent": "a"},
    "UnfreezeTenant": {},
    "FreezeTenantIn": {"tenant": "t"},
    "UnfreezeTenantIn": {"tenant": "t"},
    "CheckRequestSignature": {
        "method": "POST",
        "path": "/agents",
        "timestamp": None,
        "expires_at": None,
        "idempotency_key": "12345678",
        "body_sha256": "0" * 64,
        "signature": "v1=" + "0" * 64,
    },
    "CreatePlatformKey": {"name": "n", "scopes": ["platform:tenant:read"]},
    "RevokePlatformKey": {"key": ANY_UUID},
    "ListPlatformKeys": {},
    "RotateKeys": {"act": "status"},
    "RotateIdentity": {"act": "step"},
    "AcceptRestore": {},
    "MendAuditLogs": {},
    "RollWebhookSecret": {"webhook": ANY_UUID},
    "CreateWebhook": {"url": "https://example.com/hook"},
    "ChangeWebhook": {"webhook": ANY_UUID},
    "DeleteWebhook": {"webhook": ANY_UUID},
    "SendWebhookTest": {"webhook": ANY_UUID},
    "RetryDelivery": {"delivery": ANY_UUID},
    "ReplayDelivery": {"delivery": ANY_UUID},
    "SignDelivery": {"tenant": "t", "endpoint": ANY_UUID, "delivery": ANY_UUID, "timestamp": 1, "body": b"{}"},
    "PublicKeys": {},
    "Status": {},
    "Expire": {"tenant": "t", "approval": ANY_UUID},
    "SealCheckpoint": {},
    "BroadcastOutcome": {"tenant": "t", "tx_id": ANY_UUID, "outcome": "sent"},
    "ChainOutcome": {"tenant": "t", "tx_id": ANY_UUID, "outcome": "sent"},
}
ORIGIN = {"request_id": "test"}


def table(heading: str, page: str = PAGE) -> dict[str, list[str]]:
    """The first table of a section: its first column gives the names."""
    section = page.split(f" {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {first.strip("`"): rest for first, *rest in cells}


def test_the_page_lists_every_kind_of_proof() -> None:
    assert set(table("3. Requests and replies")) == set(KINDS)


def test_the_page_lists_every_kind_of_failure() -> None:
    assert set(table("6. Failures")) == set(typing.get_args(Kind))


def test_the_page_states_the_limits_of_the_code() -> None:
    limits = {name: int(row[0]) for name, row in table("7. Limits").items()}
    assert limits["protocol version"] == VERSION
    assert limits["bytes in a frame"] == MAX_FRAME
    assert limits["orders of one agent that may wait, beside the one at work"] == agent_queues.MAX_WAITING
    assert limits["bytes in the value of a secret"] == secrets.MAX_VALUE_BYTES


def test_a_status_is_answered_as_the_page_says(service: Service) -> None:
    with greeted(service) as wire:
        answer = wire.ask("Status")
    assert answer["type"] == "Done"
    assert set(answer["data"]) == {"version", "counters", "waiting", "stopped_logs", "room", "commits", "history"}


def test_the_page_says_which_process_speaks_on_which_socket() -> None:
    spoken = {process: row[0].strip("`").removesuffix(".sock") for process, row in table("2. Hello").items()}
    assert spoken == SOCKETS
    sockets = {"sign": peers.SIGN_SOCKET, "reveal": peers.REVEAL_SOCKET}
    assert {process: name for name, processes in sockets.items() for process in processes} == spoken


@pytest.mark.parametrize(
    ("name", "hello"),
    [
        ("sign", {"version": VERSION + 1, "process": "api"}),
        ("sign", {"version": VERSION, "process": "proxy"}),
        ("sign", {"version": VERSION, "process": "api", "extra": 1}),
        ("sign", {}),
        *(
            ("reveal", {"version": VERSION, "process": process})
            for process in ("api", "scheduler", "operator", "signer")
        ),
        ("reveal", {"version": VERSION + 1, "process": "proxy"}),
        ("identity", {"version": VERSION, "process": "proxy"}),
        ("identity", {"version": VERSION, "process": "signer"}),
    ],
)
def test_a_hello_that_is_not_known_is_not_answered(service: Service, name: str, hello: dict[str, Any]) -> None:
    with connected(service, name) as wire:
        wire.say(hello)
        assert wire.hear() is None


def test_a_request_before_the_hello_is_not_answered(service: Service) -> None:
    with connected(service) as wire:
        wire.say(
            {"v": VERSION, "n": 7, "deadline_ms": 5000, "origin": {"request_id": "test"}, "body": {"type": "Status"}}
        )
        assert wire.hear() is None


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"body": {"type": "Status", "extra": 1}},
        {"body": {"type": "SignHash"}},
        {"n": "7"},
        {"origin": {}},
    ],
)
def test_a_request_that_does_not_decode_ends_the_connection(service: Service, change: dict[str, Any]) -> None:
    request = {"v": VERSION, "n": 7, "deadline_ms": 5000, "origin": {"request_id": "test"}, "body": {"type": "Status"}}
    with greeted(service) as wire:
        wire.say(request | change)
        assert wire.hear() is None


@pytest.mark.parametrize("length", [0, MAX_FRAME + 1, 2**32 - 1])
def test_a_frame_outside_the_limits_ends_the_connection(service: Service, length: int) -> None:
    with greeted(service) as wire:
        wire.say_bytes(b"", length=length)
        assert wire.hear() is None


# The proxy has no connection to identity.
@pytest.mark.parametrize(
    ("name", "process"),
    [
        (name, process)
        for process in SOCKETS
        for name, (_, declared) in COMMANDS.items()
        if process != "proxy" or "signer" in declared.workers
    ],
)
def test_a_process_may_send_what_is_declared_for_it_and_nothing_else(service: Service, process: str, name: str) -> None:
    declared = COMMANDS[name][1]
    with greeted(service, process) as wire:
        if process == "proxy" and "signer" not in declared.workers:
            # It is no peer of identity, and the signer does not even decode what is not its own.
            wire.say(
                {"v": VERSION, "n": 7, "deadline_ms": 5000, "origin": {"request_id": "test"}, "body": {"type": name}}
            )
            assert wire.hear() is None
            return
        answer = wire.ask(name, SAMPLES[name])
    assert (answer.get("code") != "message_not_allowed") == (process in declared.senders)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name, (_, declared) in COMMANDS.items() if declared.proofs])
def test_a_message_takes_the_proofs_that_are_declared_and_only_good_ones(
    service: Service, name: str, kind: str
) -> None:
    declared = COMMANDS[name][1]
    with greeted(service, next(iter(declared.senders))) as wire:
        without = wire.ask(name, SAMPLES[name])
        answer = wire.ask(name, SAMPLES[name], {"kind": kind, "value": "not a credential of anybody"})

    assert (without["type"], without["kind"]) == ("Failed", "BadProof")
    assert answer["kind"] == ("BadProof" if kind in declared.proofs else "Forbidden")
