"""The walk-through: a client of the HTTP API like any other, with a transcript for people.

Nothing is played: every figure comes from an answer of the API or from the chain. Each run makes an agent of its own
in the tenant `demo`, because the local chain forgets everything when it stops.
"""

import sys
from contextlib import AsyncExitStack

import httpx
import msgspec

from ops import greeting, running
from ops.demo import upstream
from ops.demo.callers import Api, Chain, DemoFailed
from ops.demo.printout import Printout
from ops.demo.steps import STEPS
from ops.demo.tenant import tenant_key
from ops.demo.world import Proxy, World
from ops.settings import Settings

_SECONDS = 30.0


async def run(settings: Settings, allowed: upstream.Upstream | None = None) -> int:
    """Walk through the deployment of this state folder; 1 when a step did not do what it should.

    `allowed` is an API that the proxy may call. Without it the last step shows that the proxy refuses one.
    """
    out = Printout(sys.stdout)
    found = running.find(settings.home)
    if found is None:
        start = f"start it with {settings.how_to_start} in another terminal"
        out.problem(f"Custody does not run in {settings.home}; {start}")
        return 1
    if found.chain_url is None:
        out.problem("the demo spends play money and needs the local chain; another chain is configured")
        return 1
    out.title(
        f"A walk through Custody, over HTTP at {found.api_url}", "Real signatures, on a local chain with play money."
    )
    step = "the tenant"
    try:
        async with AsyncExitStack() as open_here:
            client = await open_here.enter_async_context(httpx.AsyncClient(trust_env=False, timeout=_SECONDS))
            called = await open_here.enter_async_context(upstream.running()) if allowed is None else allowed
            tenant = Api(client, found.api_url, {"X-Service-Key": await tenant_key(client, found.api_url, settings)})
            proxy = Proxy(client, found.proxy_url, allowed is not None)
            console = greeting.console(settings, found.api_url)
            chain = Chain(client, found.chain_url)
            world = World(tenant, chain, proxy, called, settings=settings, console=console)
            for number, (heading, act) in enumerate(STEPS, start=1):
                step = f"step {number}"
                out.heading(number, heading)
                await act(world, out)
    except (DemoFailed, httpx.HTTPError, OSError, msgspec.MsgspecError) as problem:
        out.problem(f"{step} failed: {problem or repr(problem)}")
        out.problem("the service keeps running; repeat with `custody demo`, or run `custody doctor`")
        return 1
    return 0
