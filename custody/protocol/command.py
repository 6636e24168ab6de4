"""A command to a worker, and the one place where it says who may send it and what comes of it.

A command is a message with a declaration above it. Derived from the declarations: which messages a socket decodes and
from which process, who is admitted, what a client may repeat, which audit rows may be written, which codes the routes
list that ask it, and the page docs/protocol.md.
"""

from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, TypeVar

import msgspec

from custody.identity.mfa import Action
from custody.identity.roles import ADMINS, ANYBODY
from custody.kit.errors import CustodyError
from custody.kit.shapes import Role

WorkerName = Literal["signer", "identity"]
Process = Literal["api", "scheduler", "proxy", "operator"]
ProofKind = Literal["agent", "tenant_key", "platform_key", "session", "app_client"]

# Without a proof: the message brings its own evidence, or needs none.
NO_PROOF: frozenset[ProofKind] = frozenset()
AGENT: frozenset[ProofKind] = frozenset({"agent"})
SESSION: frozenset[ProofKind] = frozenset({"session"})
PLATFORM_KEY: frozenset[ProofKind] = frozenset({"platform_key"})
PROGRAM: frozenset[ProofKind] = frozenset({"tenant_key", "app_client"})
TENANT = PROGRAM | SESSION
# Decisions over money are for a person or the holder of the tenant's own key, never for an integration.
DECIDER: frozenset[ProofKind] = frozenset({"tenant_key", "session"})

# Invariant, unlike an inferred one that no method uses: a handler must return exactly what its command declares.
R = TypeVar("R")


class Command(msgspec.Struct, Generic[R], frozen=True, forbid_unknown_fields=True, tag=True):  # noqa: UP046 - see R
    """A message to a worker, answered with an R; its tag is its name. Every one has a declaration."""


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of one command."""

    # On more than one: what every worker answers for itself.
    workers: frozenset[WorkerName]
    senders: frozenset[Process]
    proofs: frozenset[ProofKind]
    # What a person needs who proves themselves with a session: one of the roles, and a recent second factor.
    roles: frozenset[Role]
    mfa: Action | None
    # Also from a session that began at an app client's page, though it takes any role: what takes any role is about the
    # person, who is more than a member of that page's tenant.
    pages: bool
    # Also from a session that a tenant's sign-on began, though it takes any role, for the same reason: whoever runs the
    # identity provider of one tenant must not act for a person elsewhere.
    bound: bool
    # What a platform key needs.
    scope: str | None
    # The client sends it again by itself when the connection broke before the answer came.
    repeatable: bool
    # The handler looks for its earlier answer itself, in the round trip in which it reads what it judges.
    replays_itself: bool
    # A token that is good for one item will do; its handler looks which.
    for_item: bool
    # It may bring the authorization of an agent's signers (`custody/kit/callers.py`).
    authorized: bool
    # The only audit actions that may be recorded while it is carried out.
    audit: frozenset[str]
    # The errors of its own that it may be refused with; every route that asks it lists them in the contract.
    refuses: tuple[type[CustodyError], ...]
    reply: Any


_DECLARED: dict[type[Command[Any]], Declaration] = {}
_REFUSED: dict[type[Command[Any]], tuple[type[CustodyError], ...]] = {}


def command[C: type[Command[Any]]](  # noqa: PLR0913 - this is the declaration itself
    *workers: WorkerName,
    senders: Iterable[Process] = ("api",),
    proofs: frozenset[ProofKind] = NO_PROOF,
    roles: frozenset[Role] = ADMINS,
    mfa: Action | None = None,
    pages: bool = False,
    bound: bool = False,
    scope: str | None = None,
    repeatable: bool = False,
    replays_itself: bool = False,
    for_item: bool = False,
    authorized: bool = False,
    audit: Iterable[str] = (),
) -> Callable[[C], C]:
    """Declare the message below."""

    def declare(kind: C) -> C:
        _DECLARED[kind] = Declaration(
            workers=frozenset(workers),
            senders=frozenset(senders),
            proofs=proofs,
            roles=roles,
            mfa=mfa,
            pages=pages or roles != ANYBODY,
            bound=bound or roles != ANYBODY,
            scope=scope,
            repeatable=repeatable,
            replays_itself=replays_itself,
            for_item=for_item,
            authorized=authorized,
            audit=frozenset(audit),
            refuses=_REFUSED.pop(kind, ()),
            reply=_reply_of(kind),
        )
        return kind

    return declare


def refuses[C: type[Command[Any]]](*problems: type[CustodyError]) -> Callable[[C], C]:
    """Declare what the message below may be refused with; it stands below `command`, on as many lines as it takes."""

    def declare(kind: C) -> C:
        if kind in _DECLARED:
            raise TypeError(f"{kind.__name__}: say what it refuses below its declaration")
        _REFUSED[kind] = (*problems, *_REFUSED.get(kind, ()))
        return kind

    return declare


def declaration_of(kind: type[Command[Any]]) -> Declaration:
    """Find the declaration of a command."""
    return _DECLARED[kind]


def commands_of(worker: WorkerName) -> tuple[type[Command[Any]], ...]:
    """The commands of a worker whose modules are loaded, in the order of their declarations."""
    return tuple(kind for kind, declared in _DECLARED.items() if worker in declared.workers)


def _reply_of(kind: type[Command[Any]]) -> Any:
    (base,) = (base for base in getattr(kind, "__orig_bases__", ()) if getattr(base, "__origin__", None) is Command)
    return base.__args__[0]
