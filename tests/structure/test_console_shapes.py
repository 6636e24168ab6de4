"""The console's shapes are written by hand, each with what is read alone: the contract promises every field of them."""

import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from console.dialogs.enrol import Enrolment
from console.entry.device_flow import DeviceCode
from console.entry.person import _CurrentSession, _OfTenant
from console.queue.decisions import _Decided
from console.wire.api_client import SignedIn
from console.wire.shapes_accounts import AccountBalance, AccountPage
from console.wire.shapes_agents import Account, AgentDashboard, Frozen, Simulated, Tenant
from console.wire.shapes_audit import AuditPage
from console.wire.shapes_intents import Intent, IntentPage
from console.wire.shapes_known import KnownAgent, KnownApproval
from console.wire.shapes_secrets import CredentialRoute, Explanation, Secret
from console.wire.shapes_signers import KeyQuorum, Signer
from console.wire.shapes_votes import ApproverKey, ExactOrder, VoteTaken
from console.wire.shapes_webhooks import Delivery, Endpoint
from tests.fixtures.imports import ROOT, modules_of
from words.shapes import (
    Agent,
    AgentTokens,
    Approval,
    Dashboard,
    Effect,
    PolicyRule,
    Transaction,
    TransactionPage,
)

CONTRACT = json.loads((ROOT / "openapi.json").read_text())
# What an order does, of which the contract says only that it is an object.
OPEN = {Effect}
# There because it is asked for: `include=data`.
ASKED_FOR = {".intents[].payload", ".intents[].executionResult"}
# What the console reads each answer as.
READ: list[tuple[str, str, Any]] = [
    ("get", "/accounts", AccountPage),
    ("get", "/accounts/{accountId}/balance", AccountBalance),
    ("get", "/agents", list[Agent]),
    ("get", "/agents", list[KnownAgent]),
    ("get", "/agents", list[_OfTenant]),
    ("get", "/agents/{agentId}/account", Account),
    ("get", "/agents/{agentId}/key-quorums", list[KeyQuorum]),
    ("get", "/agents/{agentId}/policies", list[PolicyRule]),
    ("get", "/agents/{agentId}/signers", list[Signer]),
    ("get", "/agents/{agentId}/tokens", AgentTokens),
    ("get", "/approvals", list[Approval]),
    ("get", "/approvals", list[KnownApproval]),
    ("get", "/approvals/{id}", Approval),
    ("get", "/approvals/{id}", ExactOrder),
    ("get", "/approver-keys", list[ApproverKey]),
    ("get", "/audit/events", AuditPage),
    ("get", "/auth/session", _CurrentSession),
    ("get", "/dashboard/{agentId}", Dashboard),
    ("get", "/dashboard/{agentId}", AgentDashboard),
    ("get", "/intents", IntentPage),
    ("get", "/intents/{intentId}", Intent),
    ("get", "/secrets", list[Secret]),
    ("get", "/secrets/routes", list[CredentialRoute]),
    ("get", "/tenants/{id}", Tenant),
    ("get", "/vault/{agentId}/transactions", TransactionPage),
    ("get", "/vault/{agentId}/transactions/{txId}", Transaction),
    ("get", "/webhooks", list[Endpoint]),
    ("get", "/webhooks/{id}/deliveries", list[Delivery]),
    ("delete", "/agents/{agentId}/key-quorums/{quorumId}", KeyQuorum),
    ("delete", "/agents/{agentId}/signers/{signerId}", Signer),
    ("delete", "/approver-keys/{keyId}", ApproverKey),
    ("patch", "/agents/{agentId}/key-quorums/{quorumId}", KeyQuorum),
    ("patch", "/agents/{agentId}/signers/{signerId}", Signer),
    ("post", "/agents/{agentId}/freeze", Frozen),
    ("post", "/agents/{agentId}/unfreeze", Frozen),
    ("post", "/approvals/{id}/approve", _Decided),
    ("post", "/approvals/{id}/approve 202", VoteTaken),
    ("post", "/approvals/{id}/deny", _Decided),
    ("post", "/approver-keys", ApproverKey),
    ("post", "/auth/device/code", DeviceCode),
    ("post", "/auth/device/token", SignedIn),
    ("post", "/auth/mfa/recovery-codes/step-up", SignedIn),
    ("post", "/auth/mfa/totp/enroll", Enrolment),
    ("post", "/auth/mfa/totp/step-up", SignedIn),
    ("post", "/auth/mfa/totp/verify", SignedIn),
    ("post", "/auth/refresh", SignedIn),
    ("post", "/intents/{intentId}/authorize", Intent),
    ("post", "/intents/{intentId}/cancel", Intent),
    ("post", "/intents/{intentId}/execute", Intent),
    ("post", "/intents/{intentId}/reject", Intent),
    ("post", "/secrets/routes/explain", Explanation),
    ("post", "/tenants/{id}/freeze", Frozen),
    ("post", "/tenants/{id}/unfreeze", Frozen),
    ("post", "/vault/{agentId}/simulate", Simulated),
    ("post", "/webhooks/deliveries/{id}/replay", Delivery),
    ("post", "/webhooks/deliveries/{id}/retry", Delivery),
]


def answer(method: str, path: str) -> Any:
    """The schema of what an operation answers when it is done, without its envelope."""
    path, _, wanted = path.partition(" ")
    done = CONTRACT["paths"][path][method]["responses"]
    status = wanted or min(status for status, body in done.items() if status[0] == "2" and "content" in body)
    return resolve(done[status]["content"]["application/json"]["schema"])["properties"]["data"]


def resolve(schema: Any) -> Any:
    while "$ref" in schema:
        schema = CONTRACT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def kinds(schema: Any) -> Iterator[Any]:
    """The schemas of one kind each that a schema stands for."""
    schema = resolve(schema)
    for one in schema.get("anyOf") or schema.get("oneOf") or ():
        yield from kinds(one)
    if "type" in schema:
        yield schema


@dataclass
class Reader:
    """Holds a shape against a schema, and keeps which fields of which shapes some answer has."""

    known: set[tuple[type, str]] = field(default_factory=set)
    met: set[type] = field(default_factory=set)

    def misread(self, shape: inspect.Type, schema: Any, place: str = "") -> Iterator[str]:
        """Each place at which an answer that keeps the contract would be malformed to the console."""
        taken = shape.types if isinstance(shape, inspect.UnionType) else (shape,)
        for kind in () if isinstance(shape, inspect.AnyType) else kinds(schema):
            fit = [one for one in taken if isinstance(one, TAKES[kind["type"]])]
            if not fit:
                yield f"{place}: may be {kind['type']}"
            for one in fit:
                yield from self._inside(one, kind, place)

    def _inside(self, shape: inspect.Type, schema: Any, place: str) -> Iterator[str]:
        if isinstance(shape, inspect.ListType | inspect.VarTupleType):
            yield from self.misread(shape.item_type, schema["items"], f"{place}[]")
        elif isinstance(shape, inspect.DictType) and not isinstance(shape.value_type, inspect.AnyType):
            yield from self.misread(shape.value_type, schema["additionalProperties"], f"{place}{{}}")
        elif isinstance(shape, inspect.StructType):
            self.met.add(shape.cls)
            for one in shape.fields:
                where, part = f"{place}.{one.encode_name}", schema.get("properties", {}).get(one.encode_name)
                sure = one.encode_name in schema.get("required", ()) or where in ASKED_FOR or shape.cls in OPEN
                if one.required and not sure:
                    yield f"{where}: may be missing"
                if part is not None:
                    self.known.add((shape.cls, one.name))
                    yield from self.misread(one.type, part, where)


TAKES: dict[str, Any] = {
    "string": inspect.StrType,
    "integer": inspect.IntType,
    "boolean": inspect.BoolType,
    "null": inspect.NoneType,
    "array": (inspect.ListType, inspect.VarTupleType),
    "object": (inspect.StructType, inspect.DictType),
}


@pytest.mark.parametrize(("method", "path", "shape"), READ, ids=lambda one: getattr(one, "__name__", str(one)))
def test_the_console_reads_what_the_contract_promises(method: str, path: str, shape: Any) -> None:
    assert [*Reader().misread(inspect.type_info(shape), answer(method, path))] == []


def test_every_field_of_every_shape_is_in_some_answer() -> None:
    reader = Reader()
    for method, path, shape in READ:
        assert [*reader.misread(inspect.type_info(shape), answer(method, path))] == []
    wire = [name for name in modules_of("console.wire") if name.rpartition(".")[2].startswith("shapes")]
    named = ["words.shapes", *wire]
    written = {
        one
        for name in named
        for one in vars(importlib.import_module(name)).values()
        if isinstance(one, type) and issubclass(one, msgspec.Struct) and one.__module__ == name
    }
    read = {(one, name) for one in reader.met - OPEN for name in one.__struct_fields__}  # type: ignore[attr-defined]

    assert written - reader.met == set()
    assert read - reader.known == set()


class Sample(msgspec.Struct):
    """A reader of two fields, as it would be."""

    id: str
    votes: int | None


def test_a_field_that_the_contract_does_not_promise_is_found() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "votes": {"type": "integer"}}}
    shape, listed = inspect.type_info(Sample), {"type": "array", "items": {"type": "null"}}
    wrong = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}

    assert [*Reader().misread(shape, schema | {"required": ["id", "votes"]})] == []
    assert [*Reader().misread(shape, schema | {"required": ["id"]})] == [".votes: may be missing"]
    assert [*Reader().misread(inspect.type_info(list[Sample]), listed)] == ["[]: may be null"]
    assert [*Reader().misread(shape, wrong)] == [".id: may be integer", ".votes: may be missing"]
