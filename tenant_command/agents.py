"""`custody agents`: those for whom the tenant keeps keys."""

from pathlib import Path

import click

from console.agents.agent_in_words import agent_in_words, frozen_words
from console.agents.agent_summary import fetch_summary
from console.wire.answers import convert
from console.wire.failures import Failure
from console.wire.shapes_agents import Tenant
from tenant_command.call import Call, path
from tenant_command.command import command
from tenant_command.documents import read_document, rules_of
from tenant_command.options import LIMIT, TOKEN_FILE, YES
from tenant_command.printing import Column
from tenant_command.token_file import check_writable, write_token
from words.shapes import Agent
from words.texts.amounts import quote
from words.texts.moments import clock, moment
from words.texts.plain import short


@click.group(no_args_is_help=True)
def agents() -> None:
    """Make, freeze and delete agents; mint their tokens."""


@command("list", group=agents, example="custody agents list --limit 20")
@click.option("--platform-id", metavar="ID", help="Only those with this id on your own platform.")
@LIMIT
async def list_agents(call: Call, *, platform_id: str | None, limit: int | None) -> None:
    """List the agents, newest first."""
    found = await call.every("/agents", most=limit, platformId=platform_id)
    at_terminal = call.out.width is not None
    columns: dict[str, Column] = {
        "AGENT": "id",
        "NAME": "name",
        "STATE": lambda one: frozen_words(convert(one, Agent)),
        "EVM ADDRESS": lambda one: short(one["walletAddress"]) if at_terminal else one["walletAddress"],
        "MADE": lambda one: call.out.day(one["createdAt"]),
    }
    call.out.rows(found, columns, nothing="There are no agents. Make one with `custody agents create`.")


@command("show", group=agents, example="custody agents show buyer")
@click.argument("agent")
async def show(call: Call, *, agent: str) -> None:
    """Show what an agent holds, spends, may and did."""
    found = await call.get(path("agents", agent))
    if call.out.as_json:
        call.out.data(found)
        return
    one = convert(found, Agent)
    summary = await fetch_summary(call.client, one.id)
    frozen = await _is_tenant_frozen(call, one)
    call.out.lines(agent_in_words(one, summary, call.client.now(), tenant_frozen=frozen))


@command("create", group=agents, example="custody agents create buyer --name 'Buys paper' --policies rules.json")
@click.argument("agent")
@click.option("--name", metavar="TEXT", help="A name for people; without it the id.")
@click.option("--platform-id", metavar="ID", help="Its id on your own platform.")
@click.option("--policies", "file", metavar="FILE", help="Its rules, as YAML or JSON; `-` is standard input.")
async def create(call: Call, *, agent: str, name: str | None, platform_id: str | None, file: str | None) -> None:
    """Make an agent with its wallets.

    With a file of rules it is there with them, or not at all. An agent without rules signs everything, unless the
    service refuses such agents.
    """
    body = {"id": agent, "name": name or agent} | ({"platformId": platform_id} if platform_id else {})
    if file is None:
        made = await call.send("POST", "/agents", body)
    else:
        # In one request: it is there with its rules, or not at all.
        rules = rules_of(read_document(file), file)
        answer = await call.send("POST", "/agents/batch", {"agents": [body], "applyPolicies": rules})
        if not answer["created"]:
            raise Failure(f"It was not made: {', '.join(str(one['error']) for one in answer['errors'])}.")
        [made] = answer["created"]
    addresses = made["walletAddresses"]
    call.out.show(
        made,
        f"Made agent {made['id']}.",
        *(f"{family.upper():<9}{address}" for family, address in addresses.items()),
    )
    if file is None and not call.out.as_json:
        call.out.warn("It has no rules yet: set them with `custody policies apply` before you mint its token.")


@command("token", group=agents, example="custody agents token buyer --expires-in 12h --to buyer.token")
@click.argument("agent")
@click.option("--expires-in", default="24h", metavar="TIME", help="Its lifetime: 90s, 30m, 12h, 30d at most (24h).")
@TOKEN_FILE
async def token(call: Call, *, agent: str, expires_in: str, file: Path | None) -> None:
    """Mint a token for an agent; print it this once."""
    if file is not None:
        check_writable(file)
    minted = await call.send("POST", path("agents", agent, "token"), {"expiresIn": expires_in})
    if file is None:
        call.out.show(minted, minted["token"])
        return
    told = write_token(file, minted, f"Revoke it: custody agents revoke-tokens {minted['agentId']}")
    call.out.show(told, f"Wrote a token of agent {minted['agentId']}, good for {minted['expiresIn']}, to {file}.")


@command("revoke-tokens", group=agents, example="custody agents revoke-tokens buyer")
@click.argument("agent")
async def revoke_tokens(call: Call, *, agent: str) -> None:
    """End every token of an agent, as after a leak."""
    ended = await call.send("DELETE", path("agents", agent, "tokens"))
    call.out.show(ended, f"No token of agent {ended['agentId']} that there was is good any more.")


@command("freeze", group=agents, example="custody agents freeze buyer --reason 'Its machine was stolen'")
@click.argument("agent")
@click.option("--reason", metavar="TEXT", help="Why; callers that are refused see it.")
async def freeze(call: Call, *, agent: str, reason: str | None) -> None:
    """Freeze an agent: it signs nothing from then on.

    No secret is used for it either, and its orders that wait stay.
    """
    frozen = await call.send("POST", path("agents", agent, "freeze"), {"reason": reason} if reason else {})
    said = f" Reason: {quote(frozen['reason'], 500)}." if frozen["reason"] else ""
    call.out.show(frozen, f"Agent {frozen['agentId']} is frozen since {clock(moment(frozen['frozenAt']))}.{said}")


@command("unfreeze", group=agents, example="custody agents unfreeze buyer")
@click.argument("agent")
async def unfreeze(call: Call, *, agent: str) -> None:
    """Let an agent sign again. Only a person may, with a second factor."""
    found = await call.send("POST", path("agents", agent, "unfreeze"))
    call.out.show(found, f"Agent {found['agentId']} is not frozen any more.")


@command("rename", group=agents, example="custody agents rename buyer 'Buys paper and ink'")
@click.argument("agent")
@click.argument("name")
async def rename(call: Call, *, agent: str, name: str) -> None:
    """Give an agent another NAME; its id stays."""
    found = await call.send("PATCH", path("agents", agent), {"name": name})
    call.out.show(found, f"Agent {found['id']} is called {quote(found['name'], 200)}.")


@command("delete", group=agents, example="custody agents delete buyer")
@click.argument("agent")
@YES
async def delete(call: Call, *, agent: str, yes: bool) -> None:
    """Delete an agent for good, with its keys.

    With a tenant key alone: a person is refused. Its rules, transactions and approvals go too, and what its wallets
    still hold is lost.
    """
    if not yes:
        found = convert(await call.get(path("agents", agent)), Agent)
        call.out.warn(f"Agent {found.id}, {quote(found.name)}, pays from {found.wallet_addresses.evm} and")
        call.out.warn(f"{found.wallet_addresses.solana}. Its keys go too: what these hold is lost.")
    call.confirm(f"Delete agent {agent} for good?", assumed=yes)
    gone = await call.send("DELETE", path("agents", agent))
    call.out.show(gone, f"Deleted agent {gone['deleted']}.")


async def _is_tenant_frozen(call: Call, agent: Agent) -> bool:
    try:
        return (await call.client.get(path("tenants", agent.tenant_id), Tenant)).frozen_at is not None
    except Failure:
        # Some may read agents and not their tenant.
        return False
