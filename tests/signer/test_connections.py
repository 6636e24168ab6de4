"""A process' connections to a worker: none is left open that nobody would close."""

import asyncio
import os
import subprocess
import sys
import time
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
from custody.worker.server import MAX_HELLO
from ops import places
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import connect, greet

# The worker's own time for a greeting.
HELLO_SECONDS = 5


async def test_a_request_given_up_while_it_connects_leaves_no_connection(socket_folder: Path) -> None:
    accepted, ended = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a greeting, and never answer it."""
        accepted.set()
        await reader.read()
        ended.set()
        writer.close()

    server = await asyncio.start_unix_server(silent, socket_folder / "sign.sock")
    client = SignerClient(str(socket_folder / "sign.sock"), "api")
    asking = asyncio.create_task(client.tell(Status(), Origin("a test")))
    await accepted.wait()

    asking.cancel()

    await asyncio.wait_for(ended.wait(), 60)
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
    socket_folder: Path, command: Command[Any], asked: str
) -> None:
    async def breaking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Greet, and hang up at the first request."""
        await read_frame(reader, msgspec.msgpack.Decoder(Hello))
        writer.write(frame(msgspec.msgpack.encode(Hello(VERSION, "worker"))))
        await reader.read(1)
        writer.close()

    server = await asyncio.start_unix_server(breaking, socket_folder / "sign.sock")
    client = SignerClient(str(socket_folder / "sign.sock"), "api")

    with pytest.raises(OutcomeUnknown, match=f"the connection to {asked} broke"):
        await client.tell(command, Origin("a test"))

    await client.close()
    server.close()
    await server.wait_closed()


def test_a_user_that_no_process_has_is_turned_away_unread(postgres_home: places.Home, worker_id: str) -> None:
    """As another user of the machine, who sends nothing; the end comes long before the time for a greeting is over."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    database = database_apart(postgres_home, f"strangers_{worker_id}")
    with deploy(database, SERVICE_PEER_UIDS="proxy:64714,scheduler:64713") as service:
        for folder in (service.home, service.home / "run", service.home / "run-identity"):
            folder.chmod(0o755)
        for path in (service.socket, service.home / "run-identity" / "identity.sock"):
            began = time.monotonic()
            said = _as_a_stranger(path)
            assert (said, time.monotonic() - began < HELLO_SECONDS) == (b"", True)
        assert service.logs().count('"event":"a peer was refused","uid":61000') == 2


def test_a_greeting_is_small(service: Service) -> None:
    with connect(service) as wire:
        wire.sendall((MAX_HELLO + 1).to_bytes(4, "big"))
        # Its end comes with the length, and nobody waits for so many bytes.
        assert wire.recv(1) == b""
    with greet(service):
        pass


def _as_a_stranger(path: Path) -> bytes:
    program = (
        "import os, socket, sys\n"
        "os.setgid(61000); os.setuid(61000)\n"
        "wire = socket.socket(socket.AF_UNIX); wire.connect(sys.argv[1]);\n"
        "sys.stdout.buffer.write(wire.recv(99))\n"
    )
    command = [sys.executable, "-S", "-c", program, str(path)]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


async def test_a_client_that_was_closed_opens_no_connection(socket_folder: Path) -> None:
    client = SignerClient(str(socket_folder / "sign.sock"), "api")
    await client.close()

    with pytest.raises(SignerUnavailable):
        await client.tell(Status(), Origin("a test"))
