"""The credential route that a request would fall to, and the reason, by the rules that the proxy itself uses."""

import asyncio

from api.areas.secrets import store
from api.areas.secrets.store import Candidates
from api.areas.secrets.types import Considered, ExplainBody, Explanation, Verdict
from custody.credentials.match import RouteTable
from custody.credentials.target import MalformedTarget, Target, parse_url
from custody.credentials.types import CredentialRoute
from custody.kit.callers import TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports


async def explain(ports: Ports, caller: TenantCaller, body: ExplainBody) -> Explanation:
    """Judge a request without sending it; nothing is written, no secret is opened."""
    target = _target(body.url)
    found = await store.candidates(ports.pool, AgentRef(caller.tenant, body.agent_id))
    # The patterns of all its routes are compiled for this one question.
    return await asyncio.to_thread(_explain, found, target, body)


def _target(url: str) -> Target:
    try:
        return parse_url(url, addresses=True)
    except MalformedTarget as problem:
        raise _of_url(problem) from None


def _explain(found: Candidates, target: Target, body: ExplainBody) -> Explanation:
    table, method = RouteTable(found.routes), body.method.upper()
    try:
        matched = table.find(target, method, body.agent_id)
    except MalformedTarget as problem:
        raise _of_url(problem) from None
    considered = [Considered(route.id, reason) for route, reason in table.explain(target, method, body.agent_id)]
    return Explanation(found.to_public(matched) if matched else None, _verdict(found, matched), considered)


def _of_url(problem: MalformedTarget) -> MalformedTarget:
    return MalformedTarget(f"url: {problem.message}", fields=["url"])


def _verdict(found: Candidates, matched: CredentialRoute | None) -> Verdict:
    """The first reason for which the proxy would answer 403, or `matched`."""
    if found.tenant_frozen:
        return "tenant_frozen"
    if found.agent_frozen:
        return "agent_frozen"
    if matched is None:
        return "no_route"
    lost: dict[str | None, Verdict] = {None: "matched", "deleted": "secret_deleted", "expired": "secret_expired"}
    return lost[matched.secret_lost]
