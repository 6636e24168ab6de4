"""Carrying a plan out, step by step. Killed anywhere, a second apply finds what was done and goes on.

What is replaced may be sent twice. What is made without a name that is taken once (routes, webhooks, policy sets) is
sent under a key that is derived from what it says, so that two applies which do not know of each other make it once.
Such a key is good for a day: where it brings back something that was deleted since, the next one is taken.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from console.wire.failures import Answered, Conflicted, Failure
from tenant_command.call import Call
from tenant_command.tenant_file.asking import Asking, patiently
from tenant_command.tenant_file.comparing import digest_text
from tenant_command.tenant_file.state import Item
from tenant_command.tenant_file.steps import MADE, IdOf, Plan, Request, Step, ValueOf, Who
from tenant_command.tenant_file.words import name_of

_KEYS: Final = 32
_IN_FLIGHT_TRIES: Final = 30


class Sending:
    """One plan on its way."""

    def __init__(self, call: Call, who: Who, asking: Asking, values: Mapping[str, str]) -> None:
        self._call, self._who, self._asking, self._values = call, who, asking, values
        self._ids = {section: asking.state.ids(section) for section in ("secrets", "policySets")}
        self._fresh = ""
        self.notes: list[str] = []

    async def carry_out(self, plan: Plan) -> None:
        """Send everything; raises Failure with how far it came."""
        total = len(plan.steps)
        for number, step in enumerate(plan.steps, 1):
            self._call.out.doing(f"{number} of {total}: {name_of(step)}")
            try:
                await self._take(step)
            except Failure as failure:
                done = f"{number - 1} of {total} steps were done; the next apply goes on here."
                failure.sentence = f"{name_of(step)}: {failure.sentence} {done}"
                raise

    async def _take(self, step: Step) -> None:
        if not step.requests:
            return
        await self._compare_again(step)
        made = ""
        for request in step.requests:
            path = request.path.replace(MADE, made)
            answer = await self._send(step, request, path)
            if request.method == "POST" and isinstance(answer, dict):
                made = str(answer.get("id", made))
        if step.section in self._ids and step.verb == "make":
            self._ids[step.section][step.name] = made
        self._note(step, made)
        if step.watches:
            self._asking.state.see(step.watches, await self._asking.read(step.watches))
            self._fresh = step.watches

    async def _compare_again(self, step: Step) -> None:
        """Nobody's change is overwritten unseen: what a step was planned on is read once more just before."""
        if not step.watches or self._fresh == step.watches:
            return
        found = await self._asking.read(step.watches)
        if found != self._asking.state.find(step.watches):
            raise Failure("Somebody changed it since this was planned, and nothing was overwritten.")
        self._fresh = step.watches

    async def _send(self, step: Step, request: Request, path: str) -> Any:
        self._fresh = ""
        body = self._resolve(request.body)
        if request.number is None:
            answer = await patiently(self._call, lambda: self._call.send(request.method, path, body))
            if path == "/agents/batch":
                _check_batch(answer)
            return answer
        return await self._make_once(step, request, path, body)

    async def _make_once(self, step: Step, request: Request, path: str, body: Any) -> Any:
        before = {item.id for item in self._asking.state.find(step.watches)}
        for number in range(_KEYS):
            key = self._key(request, path, body, number)
            try:
                answer = await self._not_twice(request, path, body, key)
            except Conflicted as conflict:
                # It was made once under this key, and its secret is not told twice.
                if conflict.code != "idempotency_secret_shown":
                    raise
                answer = None
            there = await self._asking.read(step.watches)
            found = _made_of(there, before, answer)
            if found is not None:
                return {"id": found.id}
        raise Failure("It was made and deleted too often today; try again tomorrow, or make it by hand.")

    async def _not_twice(self, request: Request, path: str, body: Any, key: str) -> Any:
        for left in reversed(range(_IN_FLIGHT_TRIES)):
            try:
                return await patiently(self._call, lambda: self._call.send(request.method, path, body, key=key))
            except Conflicted as conflict:
                if conflict.code != "idempotency_in_flight" or not left:
                    raise
                await asyncio.sleep(1)
        return None

    def _key(self, request: Request, path: str, body: Any, number: int) -> str:
        said = digest_text([self._who.tenant, request.method, path, body, request.number, number])
        return f"apply-{hashlib.sha256(said).hexdigest()}"

    def _resolve(self, body: Any) -> Any:
        match body:
            case IdOf(section, name):
                return self._ids[section][name]
            case ValueOf(secret):
                return self._values[secret]
            case dict():
                return {name: self._resolve(value) for name, value in body.items()}
            case list() | tuple():
                return [self._resolve(value) for value in body]
            case _:
                return body

    def _note(self, step: Step, made: str) -> None:
        if step.section == "webhooks" and step.verb == "make":
            self.notes.append(f"{name_of(step)}: its secret: custody webhooks roll-secret {made}")


def _made_of(there: list[Item], before: set[str], answer: Any) -> Item | None:
    """Find what was made: what the answer names, if it is there; else what is there since."""
    if answer is not None:
        return next((item for item in there if item.id == answer["id"]), None)
    return next((item for item in there if item.id not in before), None)


def _check_batch(answer: Any) -> None:
    for error in answer["errors"]:
        code = str(error["error"])
        raise Answered(f"The service refused it ({code}).", status=409, code=code, data={})
