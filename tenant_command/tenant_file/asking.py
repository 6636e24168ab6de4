"""Asking the service what it has. Everything here is read; nothing is changed."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final

from console.wire.failures import Absent, Failure, TooFast
from tenant_command.call import Call
from tenant_command.call import path as path_of
from tenant_command.tenant_file.shape import FOR_PEOPLE
from tenant_command.tenant_file.state import State, item_of, items_of, names_of, rule_of
from tenant_command.tenant_file.steps import Who
from words.texts.fields import pluralize

# As many at once as the client has connections.
_AT_ONCE: Final = 8
_TRIES: Final = 8
_LONGEST_WAIT_SECONDS: Final = 60
_LISTS: Final = {
    "agents": "/agents",
    "secrets": "/secrets",
    "policySets": "/policy-sets",
    "tenantPolicySet": "/policy-sets",
    "credentialRoutes": "/secrets/routes",
    "paymentRoutes": "/payment-routes",
    "webhooks": "/webhooks",
    "appClients": "/tenants/{tenant}/app-clients",
    "ssoDomains": "/tenants/{tenant}/sso-domains",
}
_WHOLE: Final = {
    "saml": "/tenants/{tenant}/saml-sso",
    "oidcProviders": "/tenants/{tenant}/oidc-providers",
    "config": "/tenants/{tenant}/config",
}
_ACTIONS: Final = ("tenantAdmin", "webhooks")


async def find_who(call: Call) -> tuple[Who, Any]:
    """Ask who this is, and for the tenant's configuration, which says what wants a second factor."""
    # What is compared must be what was sent, and not what a terminal can show of it.
    call.client.exact = True
    me = await call.get("/me")
    if call.settings.tenant not in (None, me["tenantId"]):
        raise Failure(f"The credential is of tenant {me['tenantId']}, and not of {call.settings.tenant}.")
    config = await call.get(f"/tenants/{me['tenantId']}/config")
    is_person = me["kind"] == "session"
    required = config["authAbuseConfig"]["mfa"]["requireFor"]
    factor = frozenset(action for action in _ACTIONS if is_person and required.get(action, True))
    return Who(me["tenantId"], is_person, me["role"], factor), config


class Asking:
    """The reader of what the service has, section by section and thing by thing."""

    def __init__(self, call: Call, who: Who) -> None:
        self._call, self._who = call, who
        self.state = State()
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def read_all(self, sections: Iterable[str], agents: Iterable[str] | None) -> None:
        """Read these sections, and the rules of those of these agents that there are; None: of all."""
        wanted = {*sections, "agents", "secrets", "policySets", "tenantPolicySet"}
        if not self._who.is_person:
            wanted -= FOR_PEOPLE
        # Before what names them.
        for section in ("secrets", "policySets"):
            self.state.see(section, await self.read(section))
        rest = sorted(wanted - {"secrets", "policySets"})
        for section, found in zip(rest, await self._each(self.read, rest), strict=True):
            self.state.see(section, found)
        known = [item.id for item in self.state.items("agents")]
        asked = known if agents is None else sorted({*agents} & {*known})
        self._call.out.doing(f"Reading the rules of {pluralize(len(asked), 'agent', 'agents')}")
        watches = [f"policies/{agent}" for agent in asked]
        for watch, rules in zip(watches, await self._each(self.read, watches), strict=True):
            self.state.see(watch, rules)

    async def read(self, watch: str) -> Any:
        """Read a section, one thing of it (`section/id`; None: there is none), or the rules of an agent."""
        section, slash, identity = watch.partition("/")
        secrets, sets = (names_of(self.state.names(name)) for name in ("secrets", "policySets"))
        async with self._turn:
            if section == "policies":
                rows = await self._get(path_of("agents", identity, "policies"))
                return [rule_of(row, sets) for row in rows]
            if slash:
                try:
                    row = await self._get(f"{_LISTS[section]}{path_of(identity)}")
                except Absent:
                    return None
                return item_of(section, row, secrets, sets)
            if (whole := _WHOLE.get(section)) is not None:
                raw = await self._get(whole.replace("{tenant}", self._who.tenant))
            else:
                path = _LISTS[section].replace("{tenant}", self._who.tenant)
                raw = await patiently(self._call, lambda: self._call.every(path))
        return items_of(section, raw, secrets, sets)

    async def _get(self, path: str) -> Any:
        return await patiently(self._call, lambda: self._call.get(path))

    async def _each(self, read: Callable[[str], Coroutine[Any, Any, Any]], watches: list[str]) -> list[Any]:
        try:
            async with asyncio.TaskGroup() as tasks:
                begun = [tasks.create_task(read(watch)) for watch in watches]
        except BaseExceptionGroup as problems:
            raise problems.exceptions[0] from None
        return [task.result() for task in begun]


async def patiently[Result](call: Call, request: Callable[[], Awaitable[Result]]) -> Result:
    """Send a request; where the service is asked too fast, send it again when it says."""
    for _ in range(_TRIES):
        try:
            return await request()
        except TooFast as refused:
            if refused.code.startswith("policy") or refused.retry_after > _LONGEST_WAIT_SECONDS:
                raise
            call.out.doing(f"Waiting for {refused.retry_after} seconds: the service is asked too fast")
            await asyncio.sleep(refused.retry_after)
    return await request()
