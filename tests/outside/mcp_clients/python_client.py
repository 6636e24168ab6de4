"""The protocol's own client in Python, driven by lines of JSON; run by the MCP server's interpreter, not by ours.

`python_client.py stdio|URL ERA [tasks]`: each line of input is `[method, ...]`, each line of output its result. By
stdio it starts the server itself, as a client does; by HTTP it shows the token of MCP_TOKEN.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from typing import Any, Literal

import httpx2
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Request, RequestParams, Result
from pydantic import ConfigDict


class TaskParams(RequestParams):
    task_id: str


class TaskResult(Result):
    model_config = ConfigDict(extra="allow")


class CreatedTask(Result):
    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"]


class Tasks(ClientExtension):
    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self._never)]

    async def _never(self, task: CreatedTask, context: ClaimContext) -> CallToolResult:
        raise ValueError("the driver asks for the task itself")


async def answer(client: Client, method: str, *given: Any) -> Any:
    if method == "list":
        return [tool.model_dump(mode="json", by_alias=True) for tool in (await client.list_tools()).tools]
    if method == "call":
        heard: list[float] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            heard.append(done)

        found = await client.session.call_tool(given[0], given[1], progress_callback=progress, allow_claimed=True)
        return found.model_dump(mode="json", by_alias=True) | {"heard": len(heard)}
    if method == "many":
        calls = (client.session.call_tool(given[1], given[2]) for _ in range(given[0]))
        return [one.model_dump(mode="json", by_alias=True) for one in await asyncio.gather(*calls)]
    if method == "give_up":
        # A client that ends a call: what it does by the protocol, after a moment.
        try:
            async with asyncio.timeout(1):
                await client.session.call_tool(given[0], given[1])
        except TimeoutError:
            return None
        raise ValueError("it was answered")
    if method == "request":
        request = Request[TaskParams, str](method=given[0], params=TaskParams(task_id=given[1]))
        return (await client.session.send_request(request, TaskResult)).model_dump(mode="json", by_alias=True)
    raise ValueError(method)


def transport(how: str) -> Any:
    if how == "stdio":
        here = {name: value for name, value in os.environ.items() if name.startswith(("SERVICE_", "PYTHON", "PATH"))}
        command = StdioServerParameters(command=sys.executable, args=["-P", "-m", "mcp_server"], env=here)
        return stdio_client(command)
    headers = {"Authorization": f"Bearer {os.environ['MCP_TOKEN']}"} if os.environ.get("MCP_TOKEN") else {}
    return streamable_http_client(how, http_client=httpx2.AsyncClient(headers=headers, timeout=330))


async def main(how: str, era: str, *more: str) -> None:
    extensions = [Tasks()] if more else []
    async with Client(transport(how), mode=era, extensions=extensions) as client:
        said = {"ready": client.session.protocol_version}
        while True:
            print(json.dumps(said), flush=True)
            line = await asyncio.to_thread(sys.stdin.readline)
            if not line:
                return
            try:
                said = {"result": await answer(client, *json.loads(line))}
            except MCPError as problem:
                said = {"error": problem.error.message}


asyncio.run(main(*sys.argv[1:]))
