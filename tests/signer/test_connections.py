"""A process' connections to a worker: none is left open that nobody would close."""

import asyncio
from pathlib import Path

import pytest

from custody.kit.callers import Origin
from custody.protocol.client import SignerClient, SignerUnavailable
from custody.protocol.common import Status


async def test_a_request_given_up_while_it_connects_leaves_no_connection(tmp_path: Path) -> None:
    accepted, ended = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a greeting, and never answer it."""
        accepted.set()
        await reader.read()
        ended.set()
        writer.close()

    server = await asyncio.start_unix_server(silent, tmp_path / "sign.sock")
    client = SignerClient(str(tmp_path / "sign.sock"), "api")
    asking = asyncio.create_task(client.tell(Status(), Origin("a test")))
    await accepted.wait()

    asking.cancel()

    await asyncio.wait_for(ended.wait(), 10)
    with pytest.raises(asyncio.CancelledError):
        await asking
    server.close()
    await server.wait_closed()


async def test_a_client_that_was_closed_opens_no_connection(tmp_path: Path) -> None:
    client = SignerClient(str(tmp_path / "sign.sock"), "api")
    await client.close()

    with pytest.raises(SignerUnavailable):
        await client.tell(Status(), Origin("a test"))
