"""The real supervisor over the stand-ins; says when it is up."""

import asyncio
import os

from ops import settings, supervisor


async def run() -> None:
    """Up, wait to be stopped, down."""
    found = supervisor.Supervisor(settings.load(os.environ))
    supervisor.stop_on_signals(found)
    try:
        await found.up({name: f"tests.setup.stand_ins.{name}" for name in ("signer", "api", "proxy")})
        print("up", flush=True)
        await found.stopping.wait()
    finally:
        await found.down()


asyncio.run(run())
