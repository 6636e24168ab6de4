"""The orders and priced calls of one agent that wait for its turn, for who has the turn and takes them along."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from custody.kit.answers import Answered
from custody.kit.refs import AgentRef
from signer.priced_calls import PricedCall
from signer.signing_attempt import Outcome, SigningAttempt


class Waiter:
    """An order that waits: how it is read, and what became of it where somebody took it along."""

    __slots__ = ("answer", "make_attempt")

    def __init__(self, make_attempt: Callable[[], SigningAttempt]) -> None:
        self.make_attempt = make_attempt
        self.answer: Answered[Outcome] | None = None

    @property
    def is_done(self) -> bool:
        """True once somebody took it along."""
        return self.answer is not None


class CallWaiter:
    """A priced call that waits."""

    __slots__ = ("call", "is_done")

    def __init__(self, call: PricedCall) -> None:
        self.call = call
        # True once somebody took it along.
        self.is_done = False


class Waiting:
    """Those who wait, by agent and in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: dict[AgentRef, list[Waiter | CallWaiter]] = {}

    def __len__(self) -> int:
        """Count those who wait, of all agents."""
        return sum(map(len, self._waiting.values()))

    @contextmanager
    def join(self, ref: AgentRef, waiter: Waiter | CallWaiter) -> Iterator[None]:
        """Wait among the others; until it is over somebody may take this one along."""
        self._waiting.setdefault(ref, []).append(waiter)
        try:
            yield
        finally:
            self.leave(ref, waiter)

    def leave(self, ref: AgentRef, waiter: Waiter | CallWaiter) -> None:
        """Nobody takes this one along any more."""
        waiters = self._waiting.get(ref, [])
        if waiter in waiters:
            waiters.remove(waiter)
        if not waiters:
            self._waiting.pop(ref, None)

    def of(self, ref: AgentRef) -> list[Waiter | CallWaiter]:
        """Those who wait now. Only who has the agent's turn may take them along."""
        return list(self._waiting.get(ref, ()))
