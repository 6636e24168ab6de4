"""`circuit-breaker`: so many refusals or failures freeze the agent. It judges no order; the write counts."""

from typing import Annotated, ClassVar, Final, Self

from msgspec import UNSET, Meta, UnsetType

from custody.chains.types import Subject
from custody.kit.described import described
from custody.policies.kind import Config, Rule, Terms, at_most
from custody.policies.types import Facts, InvalidPolicy

TYPE: Final = "circuit-breaker"
MOST_MINUTES: Final = 10_080
MOST_COUNTED: Final = 1_000
Counted = Annotated[int, Meta(ge=1, le=MOST_COUNTED)]


class CircuitBreaker(Terms, frozen=True):
    """The window, and how many refusals and how many failures in it freeze the agent; None: they are not counted."""

    minutes: int
    refused: int | None
    failed: int | None

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Let pass: what is counted was refused by other rules, or failed."""
        return True, "the agent was not frozen by this rule"

    def tightens(self, old: Self) -> bool:
        """Say whether as few freeze the agent, in a window as long."""
        return self.minutes >= old.minutes and at_most(self.refused, old.refused) and at_most(self.failed, old.failed)


class CircuitBreakerConfig(Config, frozen=True):
    """At least one of the counts is needed."""

    minutes: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_MINUTES)], described("The window that is counted.", unit="minutes")
    ]
    refused: Annotated[
        Counted | UnsetType | None,
        described("So many orders that rules refused freeze the agent, the last one included.", unit="orders"),
    ] = UNSET
    failed: Annotated[
        Counted | UnsetType | None,
        described("So many orders that failed on their chain freeze the agent.", unit="orders"),
    ] = UNSET

    def terms(self) -> CircuitBreaker:
        """The window and its counts."""
        if not self.refused and not self.failed:
            raise InvalidPolicy("give `refused` or `failed`; without either, nothing is counted")
        return CircuitBreaker(self.minutes, self.refused or None, self.failed or None)


class CircuitBreakerRule(Rule, frozen=True, kw_only=True, tag="circuit-breaker"):
    """So many refusals or failures within some minutes freeze the agent. It judges no order by itself."""

    hard: ClassVar[bool] = False

    config: Annotated[CircuitBreakerConfig, described("Settings of the rule.")]
