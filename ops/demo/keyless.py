"""The step in which an agent calls an API whose key it never holds."""

import asyncio

import httpx
import msgspec

from custody.kit import tokens
from ops.demo.callers import DemoFailed
from ops.demo.printout import Printout
from ops.demo.world import World

# The proxy hears of a deleted route at once, and within two seconds even if it does not.
_HEARD_SECONDS = 5.0
_WHY_REFUSED = (
    "The proxy trusts this API, which is made for the walk alone, only on the very first start, and not where "
    "SERVICE_PROXY_EXTRA_CA_FILE says what it trusts. Your own routes are not touched by this."
)


async def call_an_api(world: World, out: Printout) -> None:
    """Keep a secret, say where it goes, call through the proxy, take both away again."""
    value, host = tokens.new_api_key("demo"), world.upstream.host
    secret = await world.tenant.do("POST", "/secrets", {"name": f"{host} for {world.agent}", "value": value})
    out.line("secret", f"{secret['name']}: stored sealed; the API never returns it again")
    try:
        where = {"hostPattern": host, "pathPattern": "/v1/*", "method": "GET"}
        how = {"injectAs": "header", "injectKey": "Authorization", "injectFormat": "Bearer {value}"}
        route = await world.tenant.do("POST", "/secrets/routes", {"secretId": secret["id"], **where, **how})
        out.line("route", f"GET https://{host}/v1/* gets it as Authorization: Bearer {{value}}")
        try:
            await _call(world, out, value)
        finally:
            await world.tenant.do("DELETE", f"/secrets/routes/{route['id']}")
        if world.proxy.lets_through:
            out.line("route deleted", f"the same call is refused: {await _wait_for_refusal(world)}")
    finally:
        await world.tenant.do("DELETE", f"/secrets/{secret['id']}")


async def _call(world: World, out: Printout, value: str) -> None:
    out.line("the agent calls", f"{world.hello} with its own token")
    answer = await world.say_hello()
    if not world.proxy.lets_through and answer.status_code in {403, 502}:
        out.line("refused", f"{answer.status_code}: {_error(answer)}")
        out.line("", _WHY_REFUSED)
        return
    if answer.status_code != 200:
        raise DemoFailed(f"the proxied call answered {answer.status_code}: {_error(answer)}")
    if world.upstream.shown != [f"Bearer {value}"]:
        raise DemoFailed("the upstream did not receive the secret, or received more than the secret")
    if value in answer.text:
        raise DemoFailed("the agent received the secret")
    out.line("the API saw", "the secret; the agent's token stayed at the proxy")
    out.line("the agent saw", f"{answer.text}, although this API repeats the key in its response")


async def _wait_for_refusal(world: World) -> str:
    deadline = asyncio.get_running_loop().time() + _HEARD_SECONDS
    while (answer := await world.say_hello()).status_code != 403:
        if asyncio.get_running_loop().time() > deadline:
            raise DemoFailed(f"the proxied call still answered {answer.status_code} without its route")
        await asyncio.sleep(0.05)
    return _error(answer)


def _error(answer: httpx.Response) -> str:
    try:
        return str(msgspec.json.decode(answer.content)["error"]["message"])
    except (msgspec.MsgspecError, LookupError, TypeError):
        return answer.text[:200]
