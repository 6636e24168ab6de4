"""The payloads of the events of intents, as those of orders in `events.py`."""

from typing import Annotated, ClassVar

from custody.kit.described import Id, described
from custody.protocol.signer.intent_words import IntentStatus, IntentType
from custody.webhooks.payload import Payload


class IntentEvent(Payload, frozen=True, kw_only=True):
    """The fields of every event of an intent: its id and state, and nothing of what it does."""

    intent_id: Annotated[Id, described("The intent.")]
    intent_type: Annotated[IntentType, described("What kind of intent it is.")]
    agent_id: Annotated[str | None, described("The agent it is about.")]
    status: Annotated[IntentStatus, described("The state that it has come to.")]


class IntentCreated(IntentEvent, frozen=True, kw_only=True):
    """Somebody proposed something, and a person must authorise it."""

    event: ClassVar[str] = "intent.created"


class IntentAuthorized(IntentEvent, frozen=True, kw_only=True):
    """A person authorised an intent; it waits to be executed."""

    event: ClassVar[str] = "intent.authorized"


class IntentExecuted(IntentEvent, frozen=True, kw_only=True):
    """An intent was carried out."""

    event: ClassVar[str] = "intent.executed"


class IntentFailed(IntentEvent, frozen=True, kw_only=True):
    """An intent failed, or a person closed it as failed."""

    event: ClassVar[str] = "intent.failed"
    reason: Annotated[str | None, described("The `code` of its result: what went wrong.")]


class IntentRejected(IntentEvent, frozen=True, kw_only=True):
    """A person rejected an intent."""

    event: ClassVar[str] = "intent.rejected"
    reason: Annotated[str | None, described("The reason that was given.")]


class IntentCanceled(IntentEvent, frozen=True, kw_only=True):
    """A person cancelled an intent."""

    event: ClassVar[str] = "intent.canceled"


class IntentExpired(IntentEvent, frozen=True, kw_only=True):
    """Nobody decided over an intent in time, or a person ended it as expired."""

    event: ClassVar[str] = "intent.expired"
