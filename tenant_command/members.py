"""`custody members`: the people of the tenant, and who is invited to it."""

from pathlib import Path
from typing import Any, Final

import click

from console.wire.failures import Failure
from tenant_command.call import Call, path
from tenant_command.command import command
from tenant_command.options import LIMIT, TOKEN_FILE, YES
from tenant_command.printing import Column
from tenant_command.token_file import check_writable, write_token
from words.texts.moments import clock, moment

_ROLES: Final = ("owner", "admin", "developer", "billing", "viewer", "member")


@click.group(no_args_is_help=True)
def members() -> None:
    """Invite and remove people; give them roles."""


@command("list", group=members, example="custody members list --json")
@LIMIT
async def list_members(call: Call, *, limit: int | None) -> None:
    """List the people of the tenant, newest first.

    For owners and admins, with a second factor.
    """
    found = await call.every(path("user", "me", "tenants", await call.tenant(), "users"), most=limit)
    columns: dict[str, Column] = {
        "SIGNS IN AS": lambda one: one["email"] or one["walletAddress"] or "",
        "NAME": "name",
        "ROLE": "role",
        "SINCE": lambda one: call.out.day(one["createdAt"]),
        "USER": "userId",
    }
    call.out.rows(found, columns, nothing="Nobody is a member.")


@command("role", group=members, example="custody members role name@example.com developer")
@click.argument("member")
@click.argument("role", type=click.Choice(_ROLES))
async def role(call: Call, *, member: str, role: str) -> None:
    """Give a member another role.

    MEMBER is what they sign in as, or their id. An owner gives and takes every role, an admin those below their own.
    The others are told by mail.
    """
    user = await _find(call, member)
    changed = await call.send("PATCH", path("tenants", await call.tenant(), "members", user), {"role": role})
    call.out.show(changed, f"{member} has the role {changed['role']}.")


@command("remove", group=members, example="custody members remove name@example.com --yes")
@click.argument("member")
@YES
async def remove(call: Call, *, member: str, yes: bool) -> None:
    """Remove a member; their sessions end at once.

    MEMBER is what they sign in as, or their id.
    """
    user = await _find(call, member)
    call.confirm(f"Remove {member}?", assumed=yes)
    removed = await call.send("DELETE", path("tenants", await call.tenant(), "members", user))
    call.out.show(removed, f"{member} was removed.")


@command("invite", group=members, example="custody members invite name@example.com developer --send")
@click.argument("email")
@click.argument("role", type=click.Choice(_ROLES[1:]))
@click.option("--send", is_flag=True, help="Let the service mail the link.")
@TOKEN_FILE
async def invite(call: Call, *, email: str, role: str, send: bool, file: Path | None) -> None:
    """Invite an address.

    The token is printed, this once, unless it is mailed or written into a file.
    """
    if file is not None:
        check_writable(file)
    body = {"email": email, "role": role, "sendEmail": send}
    made = await call.send("POST", path("tenants", await call.tenant(), "invitations"), body)
    told = f"Invited {made['invitation']['email']} as {role}, until {clock(moment(made['invitation']['expiresAt']))}."
    if file is not None:
        made = write_token(file, made, "Invite the address again, which ends this invitation.")
    shown = [] if send or file is not None else [made["token"]]
    call.out.show(made, told, *shown)


@command("invitations", group=members, example="custody members invitations")
@LIMIT
async def invitations(call: Call, *, limit: int | None) -> None:
    """List the invitations to the tenant, newest first."""
    found: list[Any] = []
    while limit is None or len(found) < limit:
        page = await call.get(path("tenants", await call.tenant(), "invitations"), limit=100, offset=len(found))
        found += page["invitations"]
        if len(page["invitations"]) < 100:
            break
    columns: dict[str, Column] = {
        "ADDRESS": "email",
        "ROLE": "role",
        "STATE": "status",
        "UNTIL": lambda one: call.out.day(one["expiresAt"]),
        "INVITATION": "id",
    }
    call.out.rows(found[:limit], columns, nothing="Nobody was invited.")


@command("withdraw", group=members, example="custody members withdraw 5f0c1c1e-0c5b-4f0e-9a55-5f3f8f0b6f0e")
@click.argument("invitation")
async def withdraw(call: Call, *, invitation: str) -> None:
    """End a pending invitation at once.

    INVITATION is its id, which `custody members invitations` shows.
    """
    ended = await call.send("DELETE", path("tenants", await call.tenant(), "invitations", invitation))
    call.out.show(ended, "The invitation works no more.")


async def _find(call: Call, named: str) -> str:
    """The id of the one member who is named; raises Failure for none, or several."""
    found = await call.every(path("tenants", await call.tenant(), "members"))
    # An e-mail address, and a wallet's in hex, is the same in any case of its letters.
    names = [(one["userId"], {one["userId"], one["email"], one["walletAddress"]} - {None}) for one in found]
    is_named = [user for user, called in names if named.lower() in {one.lower() for one in called}]
    if len(is_named) != 1:
        what = "No member" if not is_named else "More than one member"
        raise Failure(f"{what} signs in as {named}: name their id, which `custody members list` shows.")
    return str(is_named[0])
