"""Our scheduler with a resolver that says what a test wrote into a file, and with less patience for receivers."""

import asyncio
import sys
from pathlib import Path

from custody.chains import built_in, families
from custody.kit import logs, outside_urls
from custody.kit.outside import Outside
from scheduler import settings
from scheduler.__main__ import serve
from tests.outside.rebinding_proxy import Resolver

if __name__ == "__main__":
    logs.set_up()
    families.hand_in(built_in.LISTED)
    given = settings.read()
    outside = Outside(
        loopback_allowed=outside_urls.loopback_allowed(given.public_url),
        extra_ca_file=given.webhook_extra_ca_file,
        lookup=Resolver(Path(sys.argv[1])),
        answer_seconds=float(sys.argv[2]),
    )
    asyncio.run(serve(given, outside))
