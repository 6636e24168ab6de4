"""How long each stage of a request took, for the one line that is logged about it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_stages: ContextVar[dict[str, float] | None] = ContextVar("stages", default=None)


def begin() -> dict[str, float]:
    """Start a fresh collection for this request; what it starts shares it."""
    stages: dict[str, float] = {}
    _stages.set(stages)
    return stages


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Add the milliseconds of what happens inside to the stage of that name."""
    began = time.perf_counter()
    try:
        yield
    finally:
        if (stages := _stages.get()) is not None:
            stages[f"{name}_ms"] = round(stages.get(f"{name}_ms", 0.0) + (time.perf_counter() - began) * 1000, 2)
