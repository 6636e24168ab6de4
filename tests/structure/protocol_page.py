"""Writes the tables of the pages that list the workers' messages from the declarations: `make protocol`."""

import re
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, get_args

import msgspec

from custody.identity.roles import ADMINS, ANYBODY, BUILDERS, READERS
from custody.protocol import common
from custody.protocol.command import Command, Declaration, commands_of, declaration_of
from custody.protocol.identity import (
    api_keys,
    credentials,
    devices,
    domains,
    factors,
    identities,
    invitations,
    oidc,
    origins,
    sessions,
    sign_in,
    sign_on,
    tenants,
    users,
    webhooks,
)
from custody.protocol.signer import (
    agents,
    approver_keys,
    authority,
    bitcoin,
    imports,
    intents,
    operation,
    orders,
    policies,
    secrets,
    user_wallets,
)

_DOCS = Path(__file__).parents[2] / "docs"
# Of each page, its sections.
PAGES: dict[Path, dict[str, ModuleType]] = {
    _DOCS / "protocol-messages.md": {
        "Agents": agents,
        "Policies": policies,
        "Signers and key quorums": authority,
        "Secrets and credential routes": secrets,
        "Orders": orders,
        "Votes": approver_keys,
        "Operation": operation,
        "Every worker": common,
    },
    _DOCS / "protocol-wallets.md": {
        "Bitcoin": bitcoin,
        "Key imports": imports,
        "Wallets of people": user_wallets,
        "Intents": intents,
    },
    _DOCS / "protocol-people.md": {
        "Signing in": sign_in,
        "Sessions": sessions,
        "Second factors": factors,
        "Devices": devices,
        "Origins": origins,
        "Tenants and members": tenants,
        "API keys": api_keys,
        "Credentials": credentials,
        "Webhooks": webhooks,
    },
    _DOCS / "protocol-joining.md": {
        "Linked identities": identities,
        "Invitations": invitations,
    },
    _DOCS / "protocol-sign-on.md": {
        "Signing in at identity providers": sign_on,
        "OIDC providers": oidc,
        "E-mail domains": domains,
    },
    _DOCS / "protocol-operator.md": {
        "People whom the operator names": users,
    },
}
_HEAD = "| Message | Fields | Proof | From | Session | Answer |\n|---|---|---|---|---|---|\n"
_ROLES = {ANYBODY: "any", READERS: "reader", BUILDERS: "builder", ADMINS: "admin"}
_PROOFS = ("tenant_key", "app_client", "session", "agent", "platform_key")
_SENDERS = ("api", "scheduler", "operator", "proxy")


def commands_in(module: ModuleType) -> list[type[Command[Any]]]:
    """The commands that a module declares, in their order."""
    known = dict.fromkeys((*commands_of("signer"), *commands_of("identity")))
    return [command for command in known if command.__module__ == module.__name__]


def fields_of(kind: type[msgspec.Struct]) -> str:
    """The names of the fields as they travel; `?` marks one that may be left out."""
    return " ".join(f"`{field.encode_name}{'' if field.required else '?'}`" for field in msgspec.structs.fields(kind))


def rewritten(text: str, sections: dict[str, ModuleType]) -> str:
    """A page with the table of each section as its module declares it; the rest is left as it is."""
    for title, module in sections.items():
        heading = f"\n## {title}\n"
        if text.count(heading) != 1:
            raise ValueError(f"the page needs one section {title!r}")
        before, after = text.split(heading)
        table = _HEAD + "".join(_row(command) for command in commands_in(module))
        text = f"{before}{heading}\n{table}\n" + re.sub(r"\A\n*(?:\|[^\n]*\n)*\n*", "", after)
    return text.rstrip() + "\n"


def _row(command: type[Command[Any]]) -> str:
    declared = declaration_of(command)
    proofs = ", ".join(proof for proof in _PROOFS if proof in declared.proofs) or "none"
    senders = ", ".join(sender for sender in _SENDERS if sender in declared.senders)
    cells = (f"`{command.__name__}`", fields_of(command), proofs, senders, _session(declared), _reply(declared.reply))
    return "| " + " | ".join(cells).replace("  ", " ") + " |\n"


def _session(declared: Declaration) -> str:
    if "session" not in declared.proofs:
        return ""
    return _ROLES[declared.roles] + (f", {declared.mfa}" if declared.mfa else "")


def _reply(reply: Any) -> str:
    if isinstance(reply, UnionType):
        return " ".join(f"`{kind.__name__}`" for kind in get_args(reply))
    if isinstance(reply, type) and issubclass(reply, msgspec.Struct):
        return f"`{reply.__name__}`: {fields_of(reply)}"
    return f"`{reply}`"


if __name__ == "__main__":
    for page, sections in PAGES.items():
        page.write_text(rewritten(page.read_text(), sections))
