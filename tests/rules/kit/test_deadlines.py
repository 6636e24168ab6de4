"""Deadlines: what has come by then counts, however busy the loop was; what has not come is called off."""

import asyncio
import socket
import time

import pytest

from custody.kit.deadlines import in_time

SECONDS = 0.05


async def hear(reader: asyncio.StreamReader) -> bytes:
    """An answer as a pool gives it: heard, and told after some more turns of the loop."""
    heard = await reader.readexactly(2)
    for _ in range(5):
        await asyncio.sleep(0)
    return heard


def keep_busy() -> None:
    until = time.monotonic() + 2 * SECONDS
    while time.monotonic() < until:
        pass


@pytest.mark.parametrize("answered", [True, False])
async def test_an_answer_that_has_come_counts_although_the_loop_was_busy_until_the_deadline(answered: bool) -> None:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    with theirs:
        asked = asyncio.ensure_future(in_time(hear(reader), SECONDS))
        # So that it waits.
        for _ in range(3):
            await asyncio.sleep(0)
        if answered:
            theirs.sendall(b"ok")
        keep_busy()

        if answered:
            assert await asked == b"ok"
        else:
            with pytest.raises(TimeoutError):
                await asked
    writer.close()
    await writer.wait_closed()
