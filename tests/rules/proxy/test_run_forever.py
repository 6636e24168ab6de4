"""Work that must go on is begun again whatever ends it, and is heard of; only being cancelled ends it."""

import asyncio

import pytest

from proxy_addon.run_forever import run_forever


@pytest.mark.parametrize("how", ["fails", "ends"])
async def test_work_that_ends_is_begun_again(how: str, caplog: pytest.LogCaptureFixture) -> None:
    begun, goes_on = 0, asyncio.Event()

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun == 3:
            goes_on.set()
            await asyncio.Event().wait()
        if how == "fails":
            raise LookupError("nobody thought of this")

    running = asyncio.ensure_future(run_forever(work, again_seconds=0.001))
    await asyncio.wait_for(goes_on.wait(), 5)
    running.cancel()
    ended = await asyncio.gather(running, return_exceptions=True)

    assert isinstance(ended[0], asyncio.CancelledError)
    assert begun == 3
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 2
