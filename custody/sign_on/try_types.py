"""The last try of a provider, as its administrators see it."""

from typing import Annotated

import msgspec

from custody.kit.described import Instant, described
from custody.protocol.identity.sign_on import Check


class LastTest(msgspec.Struct, frozen=True, rename="camel"):
    """What an administrator's last try came to."""

    ok: Annotated[bool, described("Whether the person would have come in.")]
    ended_at: Annotated[Instant, described("When it was.")]
    problem: Annotated[str | None, described("What was wrong.")]
    checks: Annotated[list[Check], described("Each check, in order.")]
