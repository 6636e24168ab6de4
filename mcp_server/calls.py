"""The tool that calls an API: through the proxy, which has the key; the answer is a stranger's words."""

import uuid
from collections.abc import Mapping
from typing import Any

from mcp_server.outcomes import CLASSES, Next, ToolError, error, unknown
from mcp_server.payments import key_of
from mcp_server.vault import Answer, Called, NoAnswer, Vault

_ONCE_DECIDED = (
    "A person must decide about the payment. Tell the user; call again with the same payment_name afterwards."
)
_UNNAMED = (
    "A person must decide about the payment, and without a payment_name this call cannot be taken up again. Tell the "
    "user; give a payment_name when you call again."
)
# Characters of an answer that a model is shown.
MAX_SHOWN = 20_000


async def call_api(vault: Vault, given: Mapping[str, Any]) -> dict[str, Any]:
    """Call an API of `list_apis`."""
    name = given.get("payment_name")
    # Every call has a key, so that a purchase is made once; without a name each call is another purchase.
    key = key_of(vault.agent, "callApi", name) if name else uuid.uuid4().hex  # noqa: TID251 - the kit is not for clients
    try:
        answer = await vault.call(given["host"], given["path"], given.get("method", "GET"), given.get("body"), key)
    except NoAnswer as problem:
        raise _no_answer(problem, name) from None
    if answer.code:
        return _tell_refusal(answer, name)
    return {
        "status": answer.status,
        "content_type": answer.content_type,
        **_body(answer),
        **({"paid": answer.paid} if answer.paid else {}),
    }


def _tell_refusal(answer: Called, name: str | None) -> dict[str, Any]:
    said = Answer(answer.status, None, answer.code, answer.sentence, answer.retry_after)
    if answer.code == "approval_required":
        cure = _ONCE_DECIDED if name else _UNNAMED
        return {"status": 402, "refused": "approval_required", "what_to_do": cure, "paid": answer.paid or ""}
    if CLASSES.get(answer.code) is Next.AGAIN and not name:
        raise _no_answer(NoAnswer(answer.code), name)
    raise error(said)


def _no_answer(problem: NoAnswer, name: str | None) -> ToolError:
    if name or not problem.sent:
        return unknown(problem)
    return ToolError(
        f"no_answer: There was no answer ({problem}). Nobody knows whether the API did what you asked. Call again "
        "only if that may be done twice; where list_apis says that it pays, give a payment_name."
    )


def _body(answer: Called) -> dict[str, Any]:
    try:
        text = answer.body.decode()
    except UnicodeDecodeError as problem:
        if not (answer.cut and problem.start > len(answer.body) - 4):
            return {"body": "", "note": f"The answer is no text: {len(answer.body)} bytes."}
        text = answer.body[: problem.start].decode()
    if answer.cut or len(text) > MAX_SHOWN:
        return {"body": text[:MAX_SHOWN], "note": f"Cut after {MAX_SHOWN} characters."}
    return {"body": text}
