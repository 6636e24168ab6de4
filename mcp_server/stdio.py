"""The form for a client that starts the server itself: one agent, by the token of a file."""

from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from mcp_server.callers import Callers
from mcp_server.outcomes import ToolError
from mcp_server.server import new_server
from mcp_server.settings import BadSetting, Settings
from mcp_server.vault import Vault


async def serve(settings: Settings, version: str) -> None:
    """Serve until the client closes standard input."""
    callers = Callers(settings)

    async def who_asks(context: Any) -> Vault:
        del context
        try:
            token = settings.read_token()
        except BadSetting as problem:
            raise ToolError(f"no_token: {problem}. Tell the user.") from None
        return await callers.vault(token)

    server = new_server(who_asks, version)
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await callers.close()


def run(settings: Settings, version: str) -> None:
    """Serve standard input and output."""
    anyio.run(serve, settings, version)
