"""The client in a web page on an origin of its own: it pays, waits and is refused; a page elsewhere reads nothing."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.outside.browser import browser_page
from tests.outside.evm_node import EvmNode
from tests.routes.test_cors import put
from tests.sdk.conftest import token_of
from tests.sdk.typescript.built import folder_of

pytestmark = pytest.mark.long

PROGRAM = """async ([url, token, to]) => {
  const { Vault, VaultError } = await import("/index.js");
  const vault = new Vault({ url, token, patienceMs: 0 });
  const come = async (call) => {
    try {
      return await call();
    } catch (error) {
      if (error instanceof VaultError) return [error.constructor.name, error.code];
      throw error;
    }
  };
  const pay = (name, amount) => come(async () => (await vault.pay(name, to, amount)).txId);
  const me = await come(async () => (await vault.me()).agentId);
  const first = await pay("invoice-1", 1n);
  return {
    me, first, again: await pay("invoice-1", 1n), other: await pay("invoice-1", 2n),
    waiting: await pay("invoice-2", 50n), refused: await pay("invoice-3", 500n),
    shown: [String(vault), JSON.stringify(vault), Object.keys(vault)].join(" "),
  };
}"""


class Files(SimpleHTTPRequestHandler):
    """The modules of the client as they are built, and a page with nothing on it."""

    def do_GET(self) -> None:
        if self.path != "/":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>A page</title>")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def site() -> Iterator[str]:
    """The origin of a page that has the client."""
    files = partial(Files, directory=str(folder_of("newest") / "dist"))
    with ThreadingHTTPServer(("127.0.0.1", 0), files) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"http://localhost:{server.server_address[1]}"
        server.shutdown()


def drive(page: Page, service: Service, agent: Agent) -> dict[str, Any]:
    """Let the page's own script use the client."""
    page.goto("/")
    said: dict[str, Any] = page.evaluate(PROGRAM, [service.url, token_of(agent), ADDRESS])
    assert token_of(agent) not in said["shown"]
    return said


def test_an_agent_in_a_page_that_is_listed_pays_waits_and_is_refused_and_another_page_does_nothing(
    service: Service, tenant: Tenant, as_owner: Person, evm_node: EvmNode
) -> None:
    limits = rule("spending-limit", maxPerTransaction="100"), rule("auto-approve-threshold", threshold="10")
    agent, neighbour = tenant.agent(*limits), tenant.agent(*limits)
    evm_node.fund(agent.evm_address)
    with site() as origin, site() as elsewhere:
        put(as_owner, "page", origin)
        with browser_page(origin) as visit:
            said = drive(visit.page, service, agent)
        with browser_page(elsewhere) as strange:
            nothing = drive(strange.page, service, neighbour)

    assert said["me"] == agent.id
    assert said["first"] == said["again"]
    assert agent.ok("GET", f"/vault/{agent.id}/transactions/{said['first']}")["value"] == "1"
    assert said["other"] == ["NameTaken", "idempotency_mismatch"]
    assert (said["waiting"][1], said["refused"][1]) == ("approval_required", "policy_refused")
    # The browser keeps each answer from a page that no app client lists, and asks before it sends a payment.
    assert nothing["me"] == ["VaultError", "no_answer"]
    assert nothing["first"][1] == nothing["refused"][1] == "no_answer"
    assert neighbour.ok("GET", f"/vault/{neighbour.id}/transactions")["transactions"] == []
    assert [fault for fault in (*visit.faults, *strange.faults) if token_of(agent) in fault] == []
