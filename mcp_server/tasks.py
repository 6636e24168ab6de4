"""The extension `io.modelcontextprotocol/tasks`: an order that waits for a person is a task by its transaction's id.

Nothing is kept here: each look reads the transaction, so any replica answers, and a restart forgets nothing.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_server import arguments
from mcp_server.outcomes import ToolError
from mcp_server.vault import Answer, NoAnswer, Vault
from mcp_server.waiting import decision_of
from mcp_server.wallet import payment, transaction

EXTENSION: Final = "io.modelcontextprotocol/tasks"
# A person takes minutes; an approval waits a day at most by default, and what it came to is kept far longer.
_POLL_MS: Final = 3000

WhoAsks = Callable[[ServerRequestContext[Any, Any]], Awaitable[Vault]]
Shown = Callable[[dict[str, Any]], dict[str, Any]]


class TaskParams(RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


def declares(context: ServerRequestContext[Any, Any]) -> bool:
    """True if this client takes a task instead of a result."""
    capabilities = context.session.client_capabilities
    return (
        context.protocol_version in MODERN_PROTOCOL_VERSIONS
        and capabilities is not None
        and EXTENSION in (capabilities.extensions or {})
    )


async def as_task(vault: Vault, outcome: dict[str, Any]) -> dict[str, Any]:
    """The task for an outcome `waiting`, as the answer to the tool's call."""
    found = await transaction(vault, outcome["transaction_id"])
    return {"resultType": "task", **_task(found, "working", outcome["what_to_do"])}


def add_to(server: Server[Any], who_asks: WhoAsks, shown: Shown) -> None:
    """Serve the extension. `shown` makes a tool's result of what the tool found."""

    async def get(context: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        found = await _look(await who_asks(context), params.task_id)
        decision = decision_of(found)
        if decision == "none_yet":
            return _task(found, "working", "A person must decide.")
        if found.get("statusDetail") == "withdrawn":
            return _task(found, "cancelled", "It was withdrawn.")
        return _task(found, "completed", decision) | {"result": shown({"decision": decision, **payment(found)})}

    async def cancel(context: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        vault = await who_asks(context)
        found = await _look(vault, params.task_id)
        if decision_of(found) == "none_yet":
            # Of a withdrawal and an approval at once one happens; the next look says which.
            path = f"/vault/{{agent}}/transactions/{params.task_id}/withdraw"
            try:
                await vault.post(path, {}, f"withdraw-{params.task_id}")
            except NoAnswer:
                message = "Nobody knows whether it was withdrawn; ask again."
                raise MCPError(code=INTERNAL_ERROR, message=message) from None
        return {}

    server.extensions[EXTENSION] = {}
    server.add_request_handler("tasks/get", TaskParams, get)
    server.add_request_handler("tasks/cancel", TaskParams, cancel)


async def _look(vault: Vault, task_id: str) -> Answer:
    try:
        arguments.check({"transaction_id": arguments.TRANSACTION}, {"transaction_id": task_id})
        return await transaction(vault, task_id)
    except ToolError as problem:
        raise MCPError(code=INVALID_PARAMS, message=str(problem)) from None


def _task(found: Answer, status: str, message: str) -> dict[str, Any]:
    changed = found.get("confirmedAt") or found.get("broadcastAt") or found.get("signedAt") or found.get("createdAt")
    return {
        "taskId": found.get("id"),
        "status": status,
        "statusMessage": message,
        "createdAt": found.get("createdAt"),
        "lastUpdatedAt": changed,
        "ttlMs": None,
        "pollIntervalMs": _POLL_MS,
    }
