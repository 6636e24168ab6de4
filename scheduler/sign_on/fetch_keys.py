"""Fetch the key sets of OIDC issuers. Identity reads and judges them; here is only the way to them.

A set is claimed in the database for a minute, which ends by itself if this process dies. Each fetch goes on by itself,
so an issuer that is slow holds up no other: one tenant has few providers, and there are places for many.
"""

import asyncio

from custody.identity.oidc_provider import MAX_KEY_SET
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError
from custody.kit.ids import new_uuid
from custody.kit.logs import logger
from custody.kit.outside import FETCHES, Fetcher, NoAnswer
from custody.kit.tasks import spawn
from custody.ports import Ports
from custody.protocol.client import InternalFault
from custody.protocol.identity.oidc import PutProviderKeys
from custody.sign_on import provider_store
from custody.sign_on.provider_store import DueKeys

log = logger(__name__)
AT_ONCE = FETCHES // 2
CLAIM_SECONDS = 60
CLOSE_SECONDS = 12.0
_DEPLOYMENT = "platform"


class KeyFetches:
    """The fetches of this process; one run of the job takes up what is due, what it began goes on after it."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(self, ports: Ports) -> int:
        """Take up what is due; gives back how many fetches were begun."""
        room = AT_ONCE - len(self._under_way)
        if room <= 0:
            return 0
        due = await provider_store.claim(ports.pool, room, CLAIM_SECONDS)
        for one in due:
            spawn(self._fetch(ports, one), "key set", among=self._under_way)
        return len(due)

    async def close(self) -> None:
        """Let what is under way end, for a bounded time."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=CLOSE_SECONDS)
        for fetch in self._under_way:
            fetch.cancel()

    async def _fetch(self, ports: Ports, due: DueKeys) -> None:
        keys, problem = await self._ask(due)
        message = PutProviderKeys(
            tenant=None if due.tenant == _DEPLOYMENT else due.tenant,
            provider=due.provider,
            jwks_uri=due.jwks_uri,
            keys=keys,
            problem=problem,
        )
        try:
            kept = await ports.workers.tell(message, Origin(new_uuid()))
        except (CustodyError, InternalFault, TimeoutError) as refusal:
            # Changed or deleted meanwhile, or identity is away: then it is due again when the claim is over.
            code = getattr(refusal, "code", type(refusal).__name__)
            log.info("keys were not kept", extra={"tenant": due.tenant, "provider": due.provider, "reason": code})
            return
        if kept.problem is not None:
            said = {"tenant": due.tenant, "provider": due.provider, "reason": kept.problem}
            log.info("an issuer's keys were not taken", extra=said)

    async def _ask(self, due: DueKeys) -> tuple[bytes | None, str | None]:
        try:
            answer = await self._fetcher.get(
                due.jwks_uri, tenant=due.tenant, most_bytes=MAX_KEY_SET, headers={"Accept": "application/json"}
            )
        except NoAnswer as problem:
            return None, problem.problem
        if answer.status != 200:
            return None, "redirect" if 300 <= answer.status < 400 else "status"
        return answer.body, None
