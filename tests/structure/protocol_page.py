"""Writes the tables of the page that lists the workers' messages from the declarations: `make protocol`."""

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
    channels,
    credentials,
    devices,
    domains,
    factors,
    identities,
    invitations,
    members,
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
    calls,
    imports,
    intents,
    operation,
    orders,
    payment_routes,
    policies,
    policy_sets,
    receipts,
    secrets,
    simulation,
    user_wallets,
)

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
SECTIONS: dict[str, ModuleType] = {
    "Agents": agents,
    "Policies": policies,
    "Policy sets": policy_sets,
    "Signers and key quorums": authority,
    "Secrets and credential routes": secrets,
    "Payment routes": payment_routes,
    "Priced calls": calls,
    "Orders": orders,
    "Simulations": simulation,
    "Receipts": receipts,
    "Votes": approver_keys,
    "Operation": operation,
    "Every worker": common,
    "Bitcoin": bitcoin,
    "Key imports": imports,
    "Wallets of people": user_wallets,
    "Intents": intents,
    "Signing in": sign_in,
    "Sessions": sessions,
    "Second factors": factors,
    "Devices": devices,
    "Origins": origins,
    "Tenants and members": tenants,
    "API keys": api_keys,
    "Credentials": credentials,
    "Webhooks": webhooks,
    "Notification channels": channels,
    "Linked identities": identities,
    "Invitations": invitations,
    "Colleagues": members,
    "Signing in at identity providers": sign_on,
    "OIDC providers": oidc,
    "E-mail domains": domains,
    "People whom the operator names": users,
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


def rewrite(text: str, sections: dict[str, ModuleType]) -> str:
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
    PAGE.write_text(rewrite(PAGE.read_text(), SECTIONS))
