"""The words of the tenants' command, which is a program of its own: an installation of the service need not have it."""

from typing import Any, Final

# The first sentence of each one's own help, which a test holds them to.
WORDS: Final = {
    "agents": "make, freeze and delete agents; mint their tokens",
    "approvals": "list the queue, and approve or deny what waits",
    "apply": "plan what a tenant's file changes, ask, do it",
    "channels": "have people told of what waits, in chat, push or mail",
    "completion": "print what makes a shell complete these words",
    "events": "print what happens in the tenant",
    "export": "print the whole tenant as a file",
    "listen": "post events to a receiver on your own machine",
    "login": "sign in as a person, in a browser",
    "logout": "end the session, here and at the service",
    "members": "invite and remove people; give them roles",
    "payment-routes": "say which requests the proxy may pay for",
    "policies": "read, compare, try and replace an agent's rules",
    "policy-sets": "read and replace rules that many agents share",
    "routes": "say which secret goes into which requests",
    "secrets": "store values that the proxy puts into requests",
    "step-up": "show a second factor for the next commands",
    "webhooks": "have events of the tenant sent to URLs",
    "whoami": "print who asks, in which tenant and role",
}
_COMPLETES = "_CUSTODY_COMPLETE"


def declare(commands: Any) -> None:
    """List them for `custody --help`; each explains itself."""
    for word, words in WORDS.items():
        commands.add_parser(word, help=words, add_help=False)


def are_for_tenants(arguments: list[str], environment: Any) -> bool:
    """Tell whether a tenant's command is meant: `custody api` alone runs the process of that name."""
    if _COMPLETES in environment:
        return True
    word, *more = arguments or [""]
    return word in WORDS or (word == "api" and bool(more))
