"""The duration of each stage of a request, for the one line that is logged about it."""

import time
from contextvars import ContextVar

_stages: ContextVar[dict[str, float] | None] = ContextVar("stages", default=None)


def begin() -> dict[str, float]:
    """Start a fresh collection for this request; what it starts shares it."""
    stages: dict[str, float] = {}
    _stages.set(stages)
    return stages


class _Timed:
    __slots__ = ("_began", "_name")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        if (stages := _stages.get()) is not None:
            taken = (time.perf_counter() - self._began) * 1000
            stages[f"{self._name}_ms"] = round(stages.get(f"{self._name}_ms", 0.0) + taken, 2)


def time_stage(name: str) -> _Timed:
    """Add the milliseconds of what happens inside to the stage of that name."""
    # Several for each order: a generator takes four times as long.
    return _Timed(name)
