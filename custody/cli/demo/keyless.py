"""The step in which an agent calls an API whose key it never holds. Spec 2/4.6."""

import asyncio

import httpx
import msgspec

from custody.cli.demo.callers import DemoFailed
from custody.cli.demo.paper import Paper
from custody.cli.demo.scene import Scene
from custody.kit import tokens

# The proxy hears of a deleted route at once, and within two seconds even if it does not.
_HEARD_SECONDS = 5.0


async def call_an_api(scene: Scene, paper: Paper) -> None:
    """Keep a secret, say where it goes, call through the proxy, take both away again."""
    value, host = tokens.new_api_key("demo"), scene.upstream.host
    secret = await scene.tenant.do("POST", "/secrets", {"name": f"{host} for {scene.agent}", "value": value})
    paper.line("secret", f"{secret['name']}: kept sealed, no answer of the API shows it again")
    try:
        where = {"hostPattern": host, "pathPattern": "/v1/*", "method": "GET"}
        how = {"injectAs": "header", "injectKey": "Authorization", "injectFormat": "Bearer {value}"}
        route = await scene.tenant.do("POST", "/secrets/routes", {"secretId": secret["id"], **where, **how})
        paper.line("route", f"GET https://{host}/v1/* gets it as Authorization: Bearer {{value}}")
        try:
            await _call(scene, paper, value)
        finally:
            await scene.tenant.do("DELETE", f"/secrets/routes/{route['id']}")
        if scene.proxy.lets_through:
            paper.line("route deleted", f"the same call is refused: {await _refused(scene)}")
    finally:
        await scene.tenant.do("DELETE", f"/secrets/{secret['id']}")


async def _call(scene: Scene, paper: Paper, value: str) -> None:
    paper.line("the agent calls", f"{scene.hello} with its own token")
    answer = await scene.say_hello()
    if not scene.proxy.lets_through and answer.status_code in {403, 502}:
        paper.line("refused", f"{answer.status_code}: {_error(answer)}")
        paper.line(
            "", "The proxy calls nothing on this machine. Only on the very first start it may call this one API."
        )
        return
    if answer.status_code != 200:
        raise DemoFailed(f"the proxied call answered {answer.status_code}: {_error(answer)}")
    if scene.upstream.shown != [f"Bearer {value}"]:
        raise DemoFailed("the upstream was not shown the secret, or not the secret alone")
    if value in answer.text:
        raise DemoFailed("the agent was shown the secret")
    paper.line("the API saw", "the secret; the agent's token went no further than the proxy")
    paper.line("the agent saw", f"{answer.text}, though this API says the key back to whoever calls")


async def _refused(scene: Scene) -> str:
    deadline = asyncio.get_running_loop().time() + _HEARD_SECONDS
    while (answer := await scene.say_hello()).status_code != 403:
        if asyncio.get_running_loop().time() > deadline:
            raise DemoFailed(f"the proxied call still answered {answer.status_code} without its route")
        await asyncio.sleep(0.05)
    return _error(answer)


def _error(answer: httpx.Response) -> str:
    try:
        return str(msgspec.json.decode(answer.content)["error"])
    except (msgspec.MsgspecError, LookupError, TypeError):
        return answer.text[:200]
