"""The last try of a provider, as its administrators see it."""

from typing import Annotated

import msgspec

from custody.kit.described import Instant, described
from custody.protocol.identity.sign_on import Check


class LastTest(msgspec.Struct, frozen=True, rename="camel"):
    """The result of an administrator's last test."""

    ok: Annotated[bool, described("True if the person would have been signed in.")]
    ended_at: Annotated[Instant, described("Time of the test.")]
    problem: Annotated[str | None, described("The problem.")]
    checks: Annotated[list[Check], described("Each check, in order.")]
