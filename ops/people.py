"""`custody tenants`, `custody users`, `custody invitations`: what a newcomer would otherwise type as curl commands."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from ops.operator_api import CallFailed, OperatorApi, Said
from ops.settings import Settings

# As many as a list gives at once.
_MOST = 1000
_TENANT = {"id": "ID", "name": "NAME", "createdAt": "CREATED", "frozenAt": "FROZEN"}
_USER = {"userId": "ID", "email": "E-MAIL", "name": "NAME", "walletAddress": "WALLET", "deactivatedAt": "DEACTIVATED"}
_INVITATION = {"id": "ID", "email": "E-MAIL", "role": "ROLE", "status": "STATUS", "expiresAt": "EXPIRES"}


def run(settings: Settings, chosen: argparse.Namespace) -> int:
    """Do it and print what came of it; 1 with a sentence where it was not done."""
    act = _ACTS[chosen.command, chosen.act]
    try:
        lines = act(OperatorApi(settings), chosen)
    except CallFailed as problem:
        print(f"custody {chosen.command}: {problem}", file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


def _create_tenant(api: OperatorApi, chosen: argparse.Namespace) -> Sequence[str]:
    file: Path | None = chosen.key_file
    # Before the tenant is made: a key that nobody could keep would be lost.
    handle = _private(file) if file is not None else None
    try:
        made = api.call("POST", "/platform/tenants", {"id": chosen.id, "name": chosen.name or chosen.id}).data
    except CallFailed:
        if handle is not None and file is not None:
            os.close(handle)
            file.unlink()
        raise
    if handle is not None:
        with os.fdopen(handle, "w") as kept:
            kept.write(f"{made.pop('apiKey')}\n")
    if chosen.json:
        return [_json(made)]
    if file is not None:
        return (*_fields(made), f"Its API key is in {file}. Set SERVICE_KEY_FILE to it for `custody run`.")
    return (*_fields(made), "Keep the API key now: it is not shown again. Send it as X-Service-Key.")


def _private(file: Path) -> int:
    try:
        return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise CallFailed(f"{file} is there already; name a new file") from None
    except OSError as problem:
        raise CallFailed(f"cannot write {file}: {problem.strerror}") from None


def _list_tenants(api: OperatorApi, chosen: argparse.Namespace) -> Sequence[str]:
    said = api.call("GET", "/platform/tenants", query={"limit": chosen.limit, "offset": chosen.offset})
    return _page(said, chosen, _TENANT, "tenants")


def _show_tenant(api: OperatorApi, chosen: argparse.Namespace) -> Sequence[str]:
    return _one(api.call("GET", f"/platform/tenants/{_part(chosen.id)}").data, chosen)


def _create_user(api: OperatorApi, chosen: argparse.Namespace) -> Sequence[str]:
    if chosen.tenant is None and (chosen.role is not None or chosen.external_id is not None):
        raise CallFailed("--role and --external-id are of a tenant: say --tenant too")
    if chosen.role is not None and _is_member(api, chosen):
        members = f"/platform/tenants/{chosen.tenant}/members"
        raise CallFailed(f"{chosen.email} is a member of {chosen.tenant} already; POST {members} changes a role")
    body = {"email": chosen.email, "emailVerified": chosen.verified}
    named = {"name": chosen.name, "tenantId": chosen.tenant, "walletExternalId": chosen.external_id}
    made = api.call("POST", "/platform/users", body | {name: it for name, it in named.items() if it is not None}).data
    if chosen.role is not None:
        path = f"/platform/tenants/{_part(chosen.tenant)}/members"
        api.call("POST", path, {"userId": made["userId"], "role": chosen.role})
    return _one(made, chosen)


def _is_member(api: OperatorApi, chosen: argparse.Namespace) -> bool:
    try:
        api.call("GET", "/platform/users/lookup", query={"email": chosen.email, "tenantId": chosen.tenant})
    except CallFailed as problem:
        if problem.code == "user_absent":
            return False
        raise
    return True


def _list_users(api: OperatorApi, chosen: argparse.Namespace) -> Sequence[str]:
    query = {"limit": chosen.limit, "offset": chosen.offset, "walletExternalId": chosen.external_id}
    return _page(
        api.call("GET", f"/platform/tenants/{_part(chosen.tenant)}/users", query=query), chosen, _USER, "users"
    )


def _show_user(api: OperatorApi, chosen: argparse.Namespace) -> Sequence[str]:
    query = {
        "email": chosen.email,
        "walletAddress": chosen.wallet,
        "phone": chosen.phone,
        "walletExternalId": chosen.external_id,
        "tenantId": chosen.tenant,
    }
    return _one(api.call("GET", "/platform/users/lookup", query=query).data["user"], chosen)


def _deactivate_user(api: OperatorApi, chosen: argparse.Namespace) -> Sequence[str]:
    path = f"/platform/users/{_part(chosen.id)}/deactivate"
    return _one(api.call("POST", path, {"force": chosen.force}).data, chosen)


def _reactivate_user(api: OperatorApi, chosen: argparse.Namespace) -> Sequence[str]:
    return _one(api.call("POST", f"/platform/users/{_part(chosen.id)}/reactivate", {}).data, chosen)


def _delete_user(api: OperatorApi, chosen: argparse.Namespace) -> Sequence[str]:
    return _one(api.call("DELETE", f"/platform/users/{_part(chosen.id)}", {"force": chosen.force}).data, chosen)


def _create_invitation(api: OperatorApi, chosen: argparse.Namespace) -> Sequence[str]:
    body = {"email": chosen.email, "role": chosen.role, "sendEmail": chosen.send}
    if chosen.expires_in is not None:
        body["expiresInSeconds"] = chosen.expires_in
    made = api.call("POST", f"/platform/tenants/{_part(chosen.tenant)}/invitations", body).data
    if chosen.json:
        return [_json(made)]
    sent = "It was sent by e-mail." if made["emailSent"] else "Hand the token to them: it is not shown again."
    return (*_fields({**made["invitation"], "token": made["token"]}), sent)


def _list_invitations(api: OperatorApi, chosen: argparse.Namespace) -> Sequence[str]:
    said = _invitations_of(api, chosen, chosen.limit, chosen.offset)
    return _page(said, chosen, _INVITATION, "invitations")


def _show_invitation(api: OperatorApi, chosen: argparse.Namespace) -> Sequence[str]:
    offset = 0
    while found := _invitations_of(api, chosen, _MOST, offset).data:
        for one in found:
            if one["id"] == chosen.id:
                return _one(one, chosen)
        offset += len(found)
    raise CallFailed(f"the tenant {chosen.tenant!r} has no invitation {chosen.id!r}")


def _invitations_of(api: OperatorApi, chosen: argparse.Namespace, limit: int, offset: int) -> Said:
    path = f"/platform/tenants/{_part(chosen.tenant)}/invitations"
    said = api.call("GET", path, query={"limit": limit, "offset": offset})
    return Said(said.data["invitations"], said.total)


_ACTS = {
    ("tenants", "create"): _create_tenant,
    ("tenants", "list"): _list_tenants,
    ("tenants", "show"): _show_tenant,
    ("users", "create"): _create_user,
    ("users", "list"): _list_users,
    ("users", "show"): _show_user,
    ("users", "deactivate"): _deactivate_user,
    ("users", "reactivate"): _reactivate_user,
    ("users", "delete"): _delete_user,
    ("invitations", "create"): _create_invitation,
    ("invitations", "list"): _list_invitations,
    ("invitations", "show"): _show_invitation,
}


def _part(text: str) -> str:
    """A part of a path, whatever its user typed."""
    return quote(text, safe="")


def _one(found: Mapping[str, Any], chosen: argparse.Namespace) -> Sequence[str]:
    return [_json(found)] if chosen.json else _fields(found)


def _page(said: Said, chosen: argparse.Namespace, columns: Mapping[str, str], what: str) -> Sequence[str]:
    if chosen.json:
        return [_json(said.data)]
    lines = _table(said.data, columns, what)
    shown = chosen.offset + len(said.data)
    if said.data and said.total is not None and shown < said.total:
        lines.append(f"{said.total - shown:,} more: --offset {shown}")
    return lines


def _table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], what: str) -> list[str]:
    if not rows:
        return [f"No {what}."]
    cells = [list(columns.values()), *([_text(row.get(name)) for name in columns] for row in rows)]
    # A column that nobody has anything in is left out.
    kept = [place for place in range(len(columns)) if any(line[place] for line in cells[1:])]
    widths = {place: max(len(line[place]) for line in cells) for place in kept}
    return ["  ".join(line[place].ljust(widths[place]) for place in kept).rstrip() for line in cells]


def _fields(found: Mapping[str, Any]) -> list[str]:
    width = max(map(len, found))
    return [f"{name:{width}}  {_text(value)}".rstrip() for name, value in found.items()]


def _text(value: Any) -> str:
    """A value in one line; what moves a terminal's cursor, or hides letters, is a question mark."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _json(found: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
