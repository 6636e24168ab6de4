"""The words of the command, each read from its own file when it is asked for: most calls need one of them."""

import importlib
from typing import Final

import click

# The first words, and the module that declares each under the same name.
WORDS: Final = {
    "agents": "agents",
    "api": "request",
    "approvals": "approvals",
    "apply": "tenant_file.commands",
    "channels": "channels",
    "completion": "completion",
    "events": "events",
    "export": "tenant_file.commands",
    "listen": "listen",
    "login": "account",
    "logout": "account",
    "members": "members",
    "payment-routes": "payment_routes",
    "policies": "policies",
    "policy-sets": "policy_sets",
    "routes": "routes",
    "secrets": "secrets",
    "step-up": "account",
    "webhooks": "webhooks",
    "whoami": "account",
}


class _Words(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(WORDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in WORDS:
            return None
        module = importlib.import_module(f"tenant_command.{WORDS[cmd_name]}")
        found: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return found


@click.group(cls=_Words, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
def root() -> None:
    """Administer a tenant: agents, rules, credentials, routes, webhooks and approvals."""
