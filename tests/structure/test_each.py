"""A test of many cases tries each, and names every one that fails."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from tests.fixtures.each import each


@pytest.fixture(autouse=True)
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases stand in their order, also in a run whose order is drawn."""
    monkeypatch.delenv("TEST_SEED", raising=False)


def outcome_of(test: Callable[..., Any], **fixtures: Any) -> str:
    with pytest.raises(pytest.fail.Exception) as failure:
        test(**fixtures)
    return str(failure.value)


def test_every_case_is_tried_and_each_that_fails_is_named_with_its_reason() -> None:
    tried = []

    @each("number", range(4), ids=lambda number: f"number {number}")
    def odd(number: int) -> None:
        tried.append(number)
        assert number % 2, "is even"

    said = outcome_of(odd)

    assert tried == [0, 1, 2, 3]
    assert said.startswith("2 of 4 cases fail: number 0, number 2\n")
    assert said.count("is even") >= 2
    assert "test_each.py" in said


@pytest.mark.parametrize("error", [KeyError("x"), pytest.skip.Exception("x"), pytest.fail.Exception("x")], ids=repr)
def test_a_case_fails_by_any_error_and_by_being_skipped(error: BaseException) -> None:
    @each("number", [1, 2])
    def break_on_two(number: int) -> None:
        if number == 2:
            raise error

    assert outcome_of(break_on_two).startswith("1 of 2 cases fail: 2\n")


def test_an_interruption_is_no_failure() -> None:
    @each("number", [1])
    def interrupt(number: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_several_values_names_of_their_own_and_fixtures_are_handed_in() -> None:
    got = []

    @each(("a", "b"), [pytest.param(1, 2, id="first"), (3, 4)], ids=["x", "second"])
    @each("c", "pq")
    def all_of(a: int, b: int, c: str, fixture: str) -> None:
        got.append((a, b, c, fixture))
        assert a == 1, "not one"

    said = outcome_of(all_of, fixture="f")

    assert list(inspect.signature(all_of).parameters) == ["fixture"]
    assert got == [(1, 2, "p", "f"), (1, 2, "q", "f"), (3, 4, "p", "f"), (3, 4, "q", "f")]
    assert said.startswith("1 of 2 cases fail: second\n")
    assert "2 of 2 cases fail: 'p', 'q'" in said


async def test_cases_that_wait_are_waited_for() -> None:
    @each("number", [1, 2])
    async def waiting(number: int) -> None:
        assert number == 1

    with pytest.raises(pytest.fail.Exception, match=r"^1 of 2 cases fail: 2\n"):
        await waiting()


def test_cases_that_a_function_finds_are_looked_for_when_the_test_runs() -> None:
    cases: list[int] = []

    @each("number", lambda: cases)
    def odd(number: int) -> None:
        assert number % 2

    with pytest.raises(ValueError, match="0 cases"):
        odd()
    cases += [1, 2]
    assert outcome_of(odd).startswith("1 of 2 cases fail: 2\n")


def test_cases_of_a_seed_come_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def order(seed: str) -> list[int]:
        tried: list[int] = []
        monkeypatch.setenv("TEST_SEED", seed)

        @each("number", range(20))
        def try_one(number: int) -> None:
            tried.append(number)

        try_one()
        return tried

    assert order("1") == order("1") != order("2")
    assert sorted(order("1")) == list(range(20)) == order("")


def test_no_cases_marks_and_names_that_nobody_takes_are_refused() -> None:
    with pytest.raises(ValueError, match="0 cases"):
        each("number", [])
    with pytest.raises(ValueError, match="marks"):
        each("number", [pytest.param(1, marks=pytest.mark.long)])
    with pytest.raises(TypeError, match="takes no other"):
        each("other", [1])(lambda number: None)
