"""The parties of the demo, and what most steps do with them."""

import hashlib
from contextlib import AbstractAsyncContextManager

import httpx
import msgspec

from custody.kit.ids import new_uuid
from ops.demo.admin import signed_in
from ops.demo.callers import Answer, Api, Chain
from ops.demo.upstream import Upstream
from ops.settings import Settings


class World:
    """Tenant, chain, proxy and the API behind it; the agent enters in the first step."""

    agent: str
    tenant_id: str
    token: str
    as_agent: Api

    def __init__(
        self, tenant: Api, chain: Chain, proxy: "Proxy", upstream: Upstream, *, settings: Settings, console: str
    ) -> None:
        self.tenant, self.chain, self.proxy, self.upstream = tenant, chain, proxy, upstream
        self.settings, self.console = settings, console
        run = new_uuid()[:8]
        self.agent = f"buyer-{run}"
        self.shop, self.supplier, self.stranger, self.seller = (
            _address(f"{who} {run}") for who in ("shop", "supplier", "stranger", "seller")
        )

    async def pay(self, to: str, wei: int) -> Answer:
        """The agent asks for a payment, signed and sent to the chain."""
        return await self.as_agent.ask("POST", f"/vault/{self.agent}/sign", {"to": to, "value": str(wei)})

    def admin(self) -> AbstractAsyncContextManager[Api]:
        """A new admin of the tenant, who has just shown a second factor."""
        return signed_in(self.tenant.with_nothing(), self.tenant_id, self.settings)

    async def spent_today(self, asset: str = "evm:native") -> int:
        """Read what the ledger counts against the limit of a day."""
        dashboard = await self.as_agent.get(f"/dashboard/{self.agent}")
        days = (budget for budget in dashboard["budgets"] if budget["window"] == "day")
        return int(next(budget["spent"] for budget in days if budget["asset"] == asset))

    @property
    def hello(self) -> str:
        """The address at the proxy that leads to the upstream."""
        return f"{self.proxy.url}/proxy/{self.upstream.host}/v1/hello"

    async def say_hello(self) -> httpx.Response:
        """The agent calls the upstream through the proxy, with its own token and nothing else."""
        return await self.proxy.client.get(self.hello, headers={"Authorization": f"Bearer {self.token}"})


class Proxy(msgspec.Struct, frozen=True):
    """The place of the proxy; `lets_through` says whether it may call the upstream of this walk."""

    client: httpx.AsyncClient
    url: str
    lets_through: bool


def _address(name: str) -> str:
    """An address of this run alone, to which nobody has the key."""
    return "0x" + hashlib.sha256(name.encode()).hexdigest()[:40]
