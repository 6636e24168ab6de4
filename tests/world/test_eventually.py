"""A wait fails by a question that was asked after its time, however long an earlier one took to be answered."""

import time
from collections.abc import Callable

import pytest

from tests.fixtures.eventually import eventually, soon

SECONDS = 0.05


def slow_at_first(asked: list[float], answers: list[bool]) -> Callable[[], bool]:
    """A question whose first answer takes longer than the wait, so that it is of before."""

    def ask() -> bool:
        asked.append(time.monotonic())
        while len(asked) == 1 and time.monotonic() < asked[0] + 2 * SECONDS:
            pass
        return answers[min(len(asked), len(answers)) - 1]

    return ask


async def test_an_answer_of_before_decides_nothing() -> None:
    first, second = list[float](), list[float]()

    assert eventually(slow_at_first(first, [False, True]), seconds=SECONDS)
    assert await soon(slow_at_first(second, [False, True]), seconds=SECONDS)
    assert len(first) == len(second) == 2


async def test_a_wrong_answer_to_a_question_of_after_fails() -> None:
    first, second = list[float](), list[float]()

    with pytest.raises(AssertionError, match="still False"):
        eventually(slow_at_first(first, [False]), seconds=SECONDS)
    with pytest.raises(AssertionError, match="still False"):
        await soon(slow_at_first(second, [False]), seconds=SECONDS)
    assert [times[-1] > times[0] + SECONDS for times in (first, second)] == [True, True]
