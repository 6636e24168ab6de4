"""The words of `custody tenants`, `custody users` and `custody invitations`, without what they import."""

from pathlib import Path
from typing import Any

ROLES = ("admin", "developer", "billing", "viewer", "member")


def declare(commands: Any) -> None:
    """The words of the three commands."""
    _tenants(commands)
    _users(commands)
    _invitations(commands)


def _tenants(commands: Any) -> None:
    top = commands.add_parser("tenants", help="create, list and show tenants, as the operator")
    acts = top.add_subparsers(dest="act", required=True, metavar="create|list|show")
    create = acts.add_parser("create", help="create a tenant; its API key is shown only once")
    create.add_argument("id", help="1 to 64 letters, digits, dots, colons, hyphens and underscores")
    create.add_argument("--name", help="a name for people; without it the id")
    saved = "write the API key into a new file that only you can read, instead of showing it"
    create.add_argument("--key-file", type=Path, metavar="FILE", help=saved)
    _as_json(create)
    _page(acts.add_parser("list", help="list the tenants, newest first"))
    show = acts.add_parser("show", help="show a tenant with the number of its agents")
    show.add_argument("id", help="the tenant")
    _as_json(show)


def _users(commands: Any) -> None:
    top = commands.add_parser("users", help="create, list, show, deactivate and delete users, as the operator")
    acts = top.add_subparsers(dest="act", required=True, metavar="create|list|show|deactivate|reactivate|delete")
    create = acts.add_parser("create", help="create the user of an e-mail address, or find them")
    create.add_argument("email", help="the address that they sign in with")
    create.add_argument("--name", help="a name for people")
    create.add_argument("--verified", action="store_true", help="you know that the address is theirs")
    create.add_argument("--tenant", metavar="ID", help="make them a member of this tenant")
    role = "what a new member may do (member); needs --tenant"
    create.add_argument("--role", choices=("owner", *ROLES), help=role)
    create.add_argument("--external-id", metavar="ID", help="the external id of their wallet; needs --tenant")
    _as_json(create)
    listed = acts.add_parser("list", help="list the users of a tenant, newest member first")
    listed.add_argument("--tenant", required=True, metavar="ID", help="the tenant")
    listed.add_argument("--external-id", metavar="ID", help="only the one whose wallet has this external id")
    _page(listed)
    show = acts.add_parser("show", help="show one user, found by one thing")
    by = show.add_mutually_exclusive_group(required=True)
    by.add_argument("--email", help="the address that they sign in with")
    by.add_argument("--wallet", metavar="ADDRESS", help="the wallet that they sign in with")
    by.add_argument("--phone", metavar="NUMBER", help="the number of their second factor, such as +41790000000")
    by.add_argument("--external-id", metavar="ID", help="the external id of their wallet; needs --tenant")
    show.add_argument("--tenant", metavar="ID", help="only a member of this tenant")
    _as_json(show)
    deactivate = acts.add_parser("deactivate", help="let a user sign in nowhere any more, and end their sessions")
    delete = acts.add_parser("delete", help="delete a deactivated user, permanently")
    for ends in (deactivate, delete):
        ends.add_argument("--force", action="store_true", help="also the last owner of a tenant")
    for act in (deactivate, acts.add_parser("reactivate", help="let a user sign in again"), delete):
        act.add_argument("id", help="the user's id, as `show` and `list` print it")
        _as_json(act)


def _invitations(commands: Any) -> None:
    top = commands.add_parser("invitations", help="create, list and show invitations to a tenant, as the operator")
    acts = top.add_subparsers(dest="act", required=True, metavar="create|list|show")
    create = acts.add_parser("create", help="invite an address; the token is shown only once")
    create.add_argument("email", help="the address of the person")
    create.add_argument("--role", required=True, choices=ROLES, help="what they may do")
    create.add_argument("--expires-in", type=int, metavar="SECONDS", help="300 to 2592000; 7 days without it")
    create.add_argument("--send", action="store_true", help="send the invitation by e-mail")
    listed = acts.add_parser("list", help="list the invitations of a tenant")
    _page(listed)
    show = acts.add_parser("show", help="show one invitation of a tenant")
    show.add_argument("id", help="the id that `list` shows")
    for act in (create, listed, show):
        act.add_argument("--tenant", required=True, metavar="ID", help="the tenant")
    for act in (create, show):
        _as_json(act)


def _page(act: Any) -> None:
    act.add_argument("--limit", type=int, default=1000, metavar="N", help="how many at most (1000)")
    act.add_argument("--offset", type=int, default=0, metavar="N", help="how many to skip (0)")
    _as_json(act)


def _as_json(act: Any) -> None:
    act.add_argument("--json", action="store_true", help="print what the API answers")
