"""The walk-through: a client of the HTTP API like any other, with a transcript for people. Design 10.

Nothing is played: every figure comes from an answer of the API or from the chain. Each run makes an agent of its own
in the tenant `demo`, because the local chain forgets everything when it stops.
"""

import sys
from contextlib import AsyncExitStack

import httpx
import msgspec

from custody.cli import greeting, running
from custody.cli.demo import upstream
from custody.cli.demo.callers import Api, Chain, DemoFailed
from custody.cli.demo.paper import Paper
from custody.cli.demo.scene import Proxy, Scene
from custody.cli.demo.steps import STEPS
from custody.cli.demo.tenant import tenant_key
from custody.cli.settings import Settings

_SECONDS = 30.0


async def run(settings: Settings, allowed: upstream.Upstream | None = None) -> int:
    """Walk through the deployment of this state folder; 1 when a step did not do what it should.

    `allowed` is an API that the proxy may call. Without it the last step shows that the proxy refuses one.
    """
    paper = Paper(sys.stdout)
    found = running.find(settings.home)
    if found is None:
        paper.problem(f"nothing runs in {settings.home}; start it with `make run` in another terminal")
        return 1
    if found.chain_url is None:
        paper.problem("the walk-through spends play money and needs the local chain; yours is configured elsewhere")
        return 1
    paper.title(f"A walk through Custody, over HTTP at {found.api_url}", "Real signatures on a chain of play money.")
    step = "the tenant"
    try:
        async with AsyncExitStack() as open_here:
            client = await open_here.enter_async_context(httpx.AsyncClient(trust_env=False, timeout=_SECONDS))
            called = await open_here.enter_async_context(upstream.running()) if allowed is None else allowed
            tenant = Api(client, found.api_url, {"X-Service-Key": await tenant_key(client, found.api_url, settings)})
            proxy = Proxy(client, found.proxy_url, allowed is not None)
            console = greeting.console(settings, found.api_url)
            scene = Scene(tenant, Chain(client, found.chain_url), proxy, called, console=console)
            for number, (heading, act) in enumerate(STEPS, start=1):
                step = f"step {number}"
                paper.heading(number, heading)
                await act(scene, paper)
    except (DemoFailed, httpx.HTTPError, OSError, msgspec.MsgspecError) as problem:
        paper.problem(f"{step} failed: {problem or repr(problem)}")
        paper.problem("the service goes on; repeat with `custody demo`, or ask `custody doctor`")
        return 1
    return 0
