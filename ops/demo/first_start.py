"""The rights that the first start gives the proxy for the walk-through, and takes back after it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ops import places
from ops.demo import upstream
from ops.settings import Settings

_TRUSTED, _PRIVATE = "SERVICE_PROXY_EXTRA_CA_FILE", "SERVICE_PROXY_ALLOW_PRIVATE_HOSTS"


@asynccontextmanager
async def upstream_allowed(settings: Settings, home: places.Home) -> AsyncIterator[upstream.Upstream | None]:
    """An API that a proxy started meanwhile may call; None where the operator says what the proxy trusts.

    It may call that one port and trust that one certificate, whose key is gone with the API: what a proxy that goes on
    running keeps of it is of no use to anybody.
    """
    given = settings.environment
    if given.get(_TRUSTED, "").strip():
        yield None
        return
    before = given.get(_PRIVATE)
    file = home.file("proxy", "walk-through.pem")
    async with upstream.running() as found:
        places.write_private(file, found.certificate, owner=home.uid_of("proxy"))
        given[_TRUSTED] = str(file)
        given[_PRIVATE] = ",".join(filter(None, [before, found.host]))
        try:
            yield found
        finally:
            del given[_TRUSTED], given[_PRIVATE]
            if before is not None:
                given[_PRIVATE] = before
            file.unlink(missing_ok=True)
