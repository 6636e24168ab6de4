"""A process' connections to a worker: none is left open that nobody would close."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from custody.kit.callers import Origin
from custody.protocol.client import OutcomeUnknown, SignerClient, SignerUnavailable
from custody.protocol.command import Command
from custody.protocol.common import Status
from custody.protocol.frames import VERSION, Hello
from custody.protocol.framing import frame, read_frame
from custody.protocol.identity.credentials import RevokePlatformKey
from custody.protocol.signer.agents import DeleteAgent


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


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        (RevokePlatformKey("00000000-0000-4000-8000-000000000000"), "identity"),
        (DeleteAgent("buyer"), "the signer"),
    ],
)
async def test_a_connection_that_breaks_names_the_worker_that_was_asked(
    tmp_path: Path, command: Command[Any], asked: str
) -> None:
    async def breaking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Greet, and hang up at the first request."""
        await read_frame(reader, msgspec.msgpack.Decoder(Hello))
        writer.write(frame(msgspec.msgpack.encode(Hello(VERSION, "worker"))))
        await reader.read(1)
        writer.close()

    server = await asyncio.start_unix_server(breaking, tmp_path / "sign.sock")
    client = SignerClient(str(tmp_path / "sign.sock"), "api")

    with pytest.raises(OutcomeUnknown, match=f"the connection to {asked} broke"):
        await client.tell(command, Origin("a test"))

    await client.close()
    server.close()
    await server.wait_closed()


async def test_a_client_that_was_closed_opens_no_connection(tmp_path: Path) -> None:
    client = SignerClient(str(tmp_path / "sign.sock"), "api")
    await client.close()

    with pytest.raises(SignerUnavailable):
        await client.tell(Status(), Origin("a test"))
