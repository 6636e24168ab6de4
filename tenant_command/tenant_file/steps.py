"""The parts of a plan: its steps, and the requests of each. Pure data."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tenant_command.tenant_file.comparing import Change, Rule

Verb = Literal["make", "change", "delete"]
# In the path of a later request of one step: the id that the first one brought.
MADE: Final = "{made}"


@dataclass(frozen=True)
class IdOf:
    """Stands in a body for the id of a named thing, which may not be there yet."""

    section: str
    name: str


@dataclass(frozen=True)
class ValueOf:
    """Stands in a body for the value of a secret."""

    secret: str


@dataclass(frozen=True)
class Request:
    """One request. `number`: of several that are alike, which; a request that makes something carries it in its key."""

    method: str
    path: str
    body: Any = None
    number: int | None = None


@dataclass(frozen=True)
class Step:
    """One thing that is made, changed or deleted. `watches`: what must be as it was when this was planned."""

    verb: Verb
    section: str
    name: str
    requests: tuple[Request, ...]
    watches: str
    changes: tuple[Change, ...] = ()
    rules: tuple[Rule, ...] = ()
    affects: str = ""
    looser: tuple[str, ...] = ()
    # Asked of a person who sends it: the action of the API that may want a recent second factor.
    action: str = "tenantAdmin"
    votes: bool = False


@dataclass
class Plan:
    """All that an apply does, and what it leaves as it is."""

    steps: list[Step] = field(default_factory=list)
    # Sections with the number of things that are as the file says.
    same: dict[str, int] = field(default_factory=dict)
    # What the service has beside the file, and why it stays.
    kept: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # Why nothing is sent at all.
    problems: list[str] = field(default_factory=list)
    # Secrets of which a value is sent, with where it comes from.
    values: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Who:
    """Somebody who applies: a person with a role, or a key of the tenant; and what of it wants a second factor."""

    tenant: str
    is_person: bool
    role: str | None = None
    factor_for: frozenset[str] = frozenset()
