"""Background tasks: kept until they end, loud when they fail, and whole where they must be."""

import asyncio
import gc
import logging
from typing import Any

import pytest

from custody.kit.errors import Conflict
from custody.kit.tasks import leave_to_caller, run_to_completion, spawn


async def failing(problem: Exception) -> None:
    await asyncio.sleep(0)
    raise problem


async def wait_for_end(task: "asyncio.Task[Any]") -> None:
    await asyncio.wait({task})
    await asyncio.sleep(0)


async def test_a_task_nobody_holds_runs_to_its_end() -> None:
    step: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def work() -> None:
        await step
        done.set()

    spawn(work(), "work")
    await asyncio.sleep(0)
    gc.collect()
    step.set_result(None)
    async with asyncio.timeout(5):
        await done.wait()


async def test_a_failure_is_logged_with_the_name_of_its_task(caplog: pytest.LogCaptureFixture) -> None:
    await wait_for_end(spawn(failing(ValueError("no")), "look-out"))
    (record,) = caplog.records
    assert (record.levelno, record.__dict__["task"]) == (logging.ERROR, "look-out")
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


async def test_a_cancelled_task_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    task = spawn(asyncio.Event().wait(), "waiting")
    await asyncio.sleep(0)
    task.cancel()
    await wait_for_end(task)
    assert caplog.records == []


async def test_a_set_holds_its_tasks_until_they_end() -> None:
    among: set[asyncio.Task[None]] = set()
    task = spawn(failing(ValueError()), "short", among=among, on_failure=leave_to_caller)
    assert among == {task}
    await wait_for_end(task)
    assert among == set()


async def test_an_eager_task_that_never_waits_has_ended_when_it_is_returned() -> None:
    async def at_once() -> int:
        return 7

    among: set[asyncio.Task[int]] = set()
    task = spawn(at_once(), "now", among=among, eager=True)
    assert (task.done(), task.result(), among) == (True, 7, set())


@pytest.mark.parametrize(("problem", "logged"), [(ValueError("no"), 1), (Conflict("changed"), 0)])
async def test_work_goes_on_without_its_caller_and_its_faults_are_logged(
    problem: Exception, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    step: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    reached = asyncio.Event()

    async def work() -> None:
        await step
        reached.set()
        raise problem

    among: set[asyncio.Task[None]] = set()
    caller = spawn(run_to_completion(work(), "sign"), "caller", among=among)
    await asyncio.sleep(0)
    caller.cancel()
    await wait_for_end(caller)
    step.set_result(None)
    async with asyncio.timeout(5):
        await reached.wait()
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(caplog.records) == logged


async def test_a_caller_that_stays_gets_the_result_or_the_exception(caplog: pytest.LogCaptureFixture) -> None:
    async def answer() -> int:
        return 7

    assert await run_to_completion(answer(), "sign") == 7
    with pytest.raises(ValueError, match="no"):
        await run_to_completion(failing(ValueError("no")), "sign")
    assert caplog.records == []
