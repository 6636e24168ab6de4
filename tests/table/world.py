"""A good request for every declared route, so that a law can be tried on all of them."""

import itertools
import time
import uuid
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import httpx
import msgspec

from api.http.endpoint import Endpoint
from tests.acts.table import BODIES, JOURNEYS
from tests.fixtures.app_clients import app_client_of
from tests.fixtures.callers import Agent, Client, Tenant, new_tenant, platform_client, rule
from tests.fixtures.forgery import claims_of
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import Service
from tests.outside.dns_server import DnsServer
from tests.outside.evm_node import EvmNode
from tests.outside.oauth_providers import OAuthProviders
from tests.outside.oidc_server import OidcServer
from tests.outside.sms_gateway import SmsGateway
from tests.outside.smtp_server import Mailbox
from tests.routes.agents.makers import keep_set
from tests.routes.auth.test_wallet import AGREES, as_contract
from tests.routes.orders import SELLER
from tests.routes.secrets.makers import keep_payment_route, keep_route, keep_secret
from tests.routes.vault.bitcoin import LISTED
from tests.routes.vault.transfers import with_signer

KINDS = ("tenant_key", "agent_token", "platform_key", "app_client", "session")
# A second factor is recent for 300 seconds.
RECENT_SECONDS = 200
# How long a request serves for tries that are refused: an owner's factor is still recent then.
KEPT_SECONDS = 60
_numbers = itertools.count(41_780_000_000)


class Call(msgspec.Struct, frozen=True):
    """One request, not sent yet."""

    method: str
    path: str
    json: Any
    form: bool = False

    def send(self, client: Client, *, headers: dict[str, str] | None = None, **changed: Any) -> httpx.Response:
        """Send it as a client; `content` or `json` replace the body, `path` the path."""
        path = changed.pop("path", self.path)
        if not changed and self.json is not None:
            changed = {"data" if self.form else "json": self.json}
        return client.request(self.method, path, headers=headers, **changed)


class SignOnWorld(NamedTuple):
    """Places where people sign on, and what the DNS says."""

    dns_server: DnsServer
    oauth: OAuthProviders
    oidc: OidcServer


class World:
    """Two tenants with an agent each, and their callers."""

    def __init__(
        self,
        service: Service,
        mailbox: Mailbox,
        sms_gateway: SmsGateway,
        sign_on: SignOnWorld,
        evm_node: EvmNode,
    ) -> None:
        self._evm_node = evm_node
        self.service, self.mailbox, self.sms_gateway = service, mailbox, sms_gateway
        self.dns_server, self.oauth, self.oidc = sign_on
        self.platform = platform_client(service)
        self.nobody = Client(base_url=service.url, timeout=30)
        self.tenant, self.other = new_tenant(service), new_tenant(service)
        self.agent = self.tenant.agent()
        self.cautious = self.tenant.agent(rule("auto-approve-threshold", threshold="0"))
        self.foreign = self.other.agent(rule("auto-approve-threshold", threshold="0"))
        self.stranger = sign_in(service)
        self._owner, self._since = member(service, self.tenant, "owner", mfa=True), time.monotonic()
        self.app_client = app_client_of(self._owner)
        self._ready: dict[str, httpx.Client] = {}
        self._kept: dict[str, tuple[Call, httpx.Client, float]] = {}
        # Made by a journey that takes a moment, for several tries.
        self.failed_deliveries: list[str] = []

    def close(self) -> None:
        own = (self.platform, self.nobody, self.tenant, self.other, self.stranger, self._owner, self.app_client)
        for client in (*own, *self._ready.values()):
            client.close()

    @property
    def owner(self) -> Person:
        """An owner of the tenant whose second factor is recent."""
        if time.monotonic() - self._since > RECENT_SECONDS:
            self._owner.close()
            self._owner, self._since = member(self.service, self.tenant, "owner", mfa=True), time.monotonic()
        return self._owner

    def throwaway(self) -> Person:
        """Somebody who has just signed in, for the first time."""
        before = self._ready.pop("throwaway", None)
        if before is not None:
            before.close()
        person = sign_in(self.service)
        self._ready["throwaway"] = person
        return person

    def phone(self) -> str:
        """A number nobody has."""
        return f"+{next(_numbers)}"

    def client(self, kind: str) -> Client:
        """The caller with a kind of credential."""
        if kind == "session":
            return self.owner
        return {
            "tenant_key": self.tenant,
            "agent_token": self.agent,
            "platform_key": self.platform,
            "app_client": self.app_client,
        }[kind]

    def caller(self, endpoint: Endpoint) -> httpx.Client:
        """A caller of this route; where the request is a person's own, the person for whom `call` made the last one."""
        known = next((self.client(kind) for kind in KINDS if kind in endpoint.who.kinds), self.nobody)
        return self._ready.get(_name(endpoint), known)

    def call(self, endpoint: Endpoint) -> Call:
        """A request that succeeds once."""
        if _name(endpoint) in JOURNEYS:
            return self._journey(endpoint)
        path = _fill(endpoint, self._path_values(endpoint))
        body = BODIES[_name(endpoint)](self) if endpoint.body is not None else None
        return Call(endpoint.method, path, body)

    def refusable(self, endpoint: Endpoint) -> Call:
        """The same for a try that is refused before it does anything, so that one request serves many of them."""
        kept = self._kept.get(_name(endpoint))
        if kept is not None:
            call, client, made = kept
            if client is self.caller(endpoint) and not client.is_closed and time.monotonic() - made < KEPT_SECONDS:
                return call
        call = self.call(endpoint)
        self._kept[_name(endpoint)] = call, self.caller(endpoint), time.monotonic()
        return call

    def _journey(self, endpoint: Endpoint) -> Call:
        journey = JOURNEYS[_name(endpoint)](self)
        before = self._ready.get(_name(endpoint))
        if before not in (None, self.nobody, self.platform, self._owner, journey.client):
            before.close()
        self._ready[_name(endpoint)] = journey.client
        query = f"?{journey.query}" if journey.query else ""
        return Call(endpoint.method, _fill(endpoint, journey.path) + query, journey.body, endpoint.form_only)

    def foreign_call(self, endpoint: Endpoint) -> Call:
        """The same, on what belongs to the other tenant."""
        theirs: dict[str, Callable[[], str]] = {
            "agent": lambda: self.foreign.id,
            "tenant_id": lambda: self.other.id,
            "own_tenant_id": lambda: self.other.id,
            "tx_id": lambda: queue_order(self.foreign)["txId"],
            "approval_id": lambda: queue_order(self.foreign)["approvalId"],
            "secret_id": lambda: keep_secret(self.other)["id"],
            "route_id": lambda: keep_route(self.other)["id"],
            "payment_route_id": lambda: keep_payment_route(self.other)["id"],
            "policy_set_id": lambda: keep_set(self.other),
            "session_id": lambda: str(claims_of(self.stranger.session["token"])["sid"]),
        }
        own = self.refusable(endpoint)
        path = endpoint.path
        for name in endpoint.path_names:
            path = path.replace(f"<{name}>", theirs[name]() if name in theirs else str(uuid.uuid4()))
        return Call(endpoint.method, path + own.path[len(own.path.partition("?")[0]) :], own.json)

    def fresh_agent(self) -> Agent:
        """An agent that may be destroyed."""
        return self.tenant.agent()

    def fresh_tenant(self) -> Tenant:
        """A tenant that may be destroyed."""
        tenant = new_tenant(self.service)
        tenant.close()
        return tenant

    @cached_property
    def with_signer(self) -> Agent:
        """The agent with a signer that authorises its transfers; alone it sends no signer along."""
        twin = Agent(base_url=self.agent.base_url, headers=self.agent.headers, timeout=30)
        twin.id = self.agent.id
        self._ready["authorised"] = twin
        twin.headers.update(with_signer(self.owner, twin).signer)
        return twin

    @cached_property
    def bitcoin_payer(self) -> Agent:
        """An agent whose signer authorises PSBTs of a network that its rules list."""
        agent = self.tenant.agent(LISTED)
        self._ready["bitcoin payer"] = agent
        agent.headers.update(with_signer(self.owner, agent, "sign_transaction").signer)
        return agent

    @cached_property
    def payer(self) -> Agent:
        """An agent whose rules name whom it may pay."""
        return self.tenant.agent(rule("approved-addresses", addresses=[SELLER]))

    @cached_property
    def caller_of_calls(self) -> Agent:
        """An agent whose signer authorises batches of calls."""
        agent = self.tenant.agent()
        self._ready["batches"] = agent
        agent.headers.update(with_signer(self.owner, agent, "send_calls").signer)
        return agent

    @cached_property
    def contract_wallet(self) -> str:
        """A contract that somebody signed in with."""
        contract = self._evm_node.deploy(AGREES)
        signed = as_contract(self.service, self.nobody, contract)
        self.nobody.ok("POST", "/auth/verify", {"message": signed.message, "signature": signed.signature})
        return contract

    @cached_property
    def route(self) -> dict[str, Any]:
        """A credential route, and with it a secret, that stay."""
        return keep_route(self.tenant)

    def _path_values(self, endpoint: Endpoint) -> dict[str, str]:
        names = endpoint.path_names
        if "approval_id" in names:
            return {"approval_id": queue_order(self.cautious)["approvalId"]}
        if endpoint.path.endswith("/replace"):
            return {"agent": self.agent.id, "tx_id": self.agent.sign().json()["data"]["txId"]}
        if "tx_id" in names and endpoint.method == "POST":
            return {"agent": self.cautious.id, "tx_id": queue_order(self.cautious)["txId"]}
        if "tx_id" in names:
            return {"agent": self.agent.id, "tx_id": self.agent.sign().json()["data"]["txId"]}
        if "agent" in names:
            spent = endpoint.method == "DELETE" or endpoint.path.endswith("freeze")
            return {"agent": (self.fresh_agent() if spent else self.agent).id}
        if "tenant_id" in names:
            return {"tenant_id": (self.fresh_tenant() if endpoint.method == "DELETE" else self.tenant).id}
        if "secret_id" in names:
            return {"secret_id": keep_secret(self.tenant)["id"]}
        if "route_id" in names:
            return {"route_id": keep_route(self.tenant)["id"]}
        if "payment_route_id" in names:
            return {"payment_route_id": keep_payment_route(self.tenant)["id"]}
        if "policy_set_id" in names:
            return {"policy_set_id": keep_set(self.tenant)}
        return {}


def _name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


def _fill(endpoint: Endpoint, values: dict[str, str]) -> str:
    path = endpoint.path
    for name, value in values.items():
        path = path.replace(f"<{name}>", value)
    return path


def queue_order(agent: Agent) -> dict[str, Any]:
    """An order that waits for a person."""
    answer = agent.sign()
    assert answer.status_code == 202, answer.text
    return answer.json()["data"]
