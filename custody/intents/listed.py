"""Lists of intents: what is long of one is there only for who asks for it."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.intents.types import Intent
from custody.kit.described import described
from custody.kit.shapes import AgentId, Offset
from custody.kit.spellings import both_spellings, same_as
from custody.protocol.signer.intent_words import IntentStatus, IntentType

# A payload or a result beyond so many bytes is left out of a list.
MAX_LISTED_BYTES: Final = 2_048


class IntentQuery(msgspec.Struct, frozen=True, kw_only=True, rename=both_spellings):
    """The intents to list."""

    status: Annotated[IntentStatus | None, described("Only intents in this state.")] = None
    intent_type: Annotated[IntentType | None, described("Only intents of this type.")] = None
    intent_type_: Annotated[IntentType | None, same_as("intentType")] = None
    type: Annotated[IntentType | None, same_as("intentType")] = None
    agent_id: Annotated[AgentId | None, described("Only intents of this agent.")] = None
    wallet_id: Annotated[AgentId | None, same_as("agentId")] = msgspec.field(name="wallet_id", default=None)
    limit: Annotated[Annotated[int, Meta(ge=1, le=200)], described("Maximum number of items.")] = 50
    include: Annotated[Literal["data"] | None, described("`data`: with payloads and results, however long.")] = None
    offset: Annotated[Offset, described("Number of items to skip.")] = 0


class ListedIntent(Intent, frozen=True, rename=both_spellings, kw_only=True):
    """An intent in a list; what is longer than 2 KiB is there with `include=data`, else its length alone."""

    payload: Annotated[
        dict[str, Any] | UnsetType,
        described("Payload in its canonical spelling; omitted if it is long: `digest` is its hash."),
    ] = UNSET  # type: ignore[assignment]
    payload_bytes: Annotated[int | UnsetType, described("Length of the payload that was left out.", unit="bytes")] = (
        UNSET
    )
    execution_result: Annotated[
        dict[str, Any] | UnsetType | None,
        described("Result of the execution; `code` says why it failed. Left out where it is long."),
    ] = UNSET  # type: ignore[assignment]
    execution_result_: Annotated[
        dict[str, Any] | UnsetType | None,
        same_as("executionResult"),
    ] = UNSET  # type: ignore[assignment]
    execution_result_bytes: Annotated[
        int | UnsetType, described("Length of the result that was left out.", unit="bytes")
    ] = UNSET


class IntentList(msgspec.Struct, frozen=True, rename="camel"):
    """A page of intents, newest first; it ends before its limit where it reaches 4 MiB."""

    intents: Annotated[list[ListedIntent], described("The intents.")]
    total: Annotated[
        int, described("Number of items, counted up to a thousand beyond the page; see `totalIsEstimate`.")
    ]
    total_is_estimate: Annotated[bool, described("True if there may be more than `total`.")]
    limit: Annotated[int, described("Maximum number of items on a page.")]
    offset: Annotated[int, described("Number of items skipped.")]

    @property
    def page_of(self) -> tuple[int, int]:
        """Return the number of rows here, and of all rows."""
        return len(self.intents), self.total
