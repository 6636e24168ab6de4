"""Origins of web pages that tenants let call the api."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.kit.described import described
from custody.kit.shapes import TenantId
from custody.protocol.command import Command, command

OriginText = Annotated[str, Meta(min_length=8, max_length=512)]


class OriginStanding(msgspec.Struct, frozen=True):
    """The rights of a page on an origin."""

    listed: Annotated[bool, described("Whether an enabled app client lists the origin.")]


@command("identity", repeatable=True)
class LookUpOrigin(Command[OriginStanding], frozen=True):
    """Ask whether an enabled app client lists an origin, exactly: one of the tenant's, or of any tenant's."""

    origin: OriginText
    tenant: TenantId | None = None
