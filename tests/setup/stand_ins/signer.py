"""Listens where the signer would, so that the supervisor has something to supervise."""

import asyncio
import os
import signal
import sys

from tests.setup.stand_ins import last_words


async def serve() -> None:
    """Accept and hang up."""
    path = os.environ["SERVICE_SIGN_SOCKET"]
    server = await asyncio.start_unix_server(lambda _reader, writer: writer.close(), path)
    os.chmod(path, 0o666)
    await server.serve_forever()


signal.signal(signal.SIGTERM, lambda *_: sys.exit(last_words.postgres_is_there()))
asyncio.run(serve())
