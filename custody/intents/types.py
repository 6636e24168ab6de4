"""Intents as callers see them. Every field of two words has both spellings, as the specification asks."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.kit.described import Id, Instant, described
from custody.kit.errors import Invalid
from custody.kit.shapes import AgentId, Digest, DisplayName, Reason
from custody.kit.spellings import both_spellings, same_as
from custody.policies.types import Result
from custody.protocol.signer.intent_words import IntentStatus, IntentType

MAX_TTL_SECONDS = 7 * 24 * 3600
DEFAULT_TTL_SECONDS = 72 * 3600
MAX_RESULT_BYTES = 16 * 1024
Resource = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+\Z")]
Moment = Annotated[str, Meta(min_length=20, max_length=40)]
_TYPE = described("Type of the intent.")
_AGENT = described("The agent it is about; every type but `rpc` needs one.")
_PAYLOAD = described("Payload of the intent's type; see docs/signers.md.")
_DETAILS = described("Accepted empty; details are not supported, so an array with any is refused.")
_RESOURCE_TYPE = described("A word of your own for what it is about.")
_RESOURCE = described("The id of that, for you to find the intent by.")
_EXPIRES = described("Time when it ends undecided; ISO 8601, at most 7 days ahead.", format="date-time")
_NAME = described("Display name of the proposer.")


class AuthorizationDetailsUnsupported(Invalid):
    """authorizationDetails are not supported: leave them out, or send an empty array."""


class TwoExpiries(Invalid):
    """expiresAt and ttlSeconds say the same in two ways; send one of them."""


class TtlTooLong(Invalid):
    """An intent lasts at most 7 days."""


class BadIntentExpiry(Invalid):
    """expiresAt must be a time to come, in ISO 8601 with its zone, such as 2026-01-31T12:00:00Z."""


class NewIntentBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=both_spellings, kw_only=True):
    """A proposal. Fields of two words may be sent in snake_case too."""

    intent_type: Annotated[IntentType | None, _TYPE] = None
    intent_type_: Annotated[IntentType | None, same_as("intentType")] = None
    agent_id: Annotated[AgentId | None, _AGENT] = None
    wallet_id: Annotated[AgentId | None, same_as("agentId")] = msgspec.field(name="wallet_id", default=None)
    resource_type: Annotated[Resource | None, _RESOURCE_TYPE] = None
    resource_type_: Annotated[Resource | None, same_as("resourceType")] = None
    resource_id: Annotated[Resource | None, _RESOURCE] = None
    resource_id_: Annotated[Resource | None, same_as("resourceId")] = None
    payload: Annotated[dict[str, Any], _PAYLOAD] = {}
    authorization_details: Annotated[list[dict[str, Any]] | None, _DETAILS] = None
    authorization_details_: Annotated[list[dict[str, Any]] | None, same_as("authorizationDetails")] = None
    expires_at: Annotated[Moment | None, _EXPIRES] = None
    expires_at_: Annotated[
        Annotated[int, Meta(ge=0, le=2**53)] | None, described("Time when it ends undecided, in Unix milliseconds.")
    ] = None
    ttl_seconds: Annotated[
        Annotated[int, Meta(ge=1, le=2**31)] | None,
        described("For how many seconds it waits, at most 7 days; without it 72 hours.", unit="seconds"),
    ] = None
    ttl_seconds_: Annotated[Annotated[int, Meta(ge=1, le=2**31)] | None, same_as("ttlSeconds")] = None
    created_by_display_name: Annotated[DisplayName | None, _NAME] = None
    created_by_display_name_: Annotated[DisplayName | None, same_as("createdByDisplayName")] = None


class DecisionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A person's word, and the digest of what they read."""

    reason: Annotated[Reason | None, described("Why, for the log and the webhooks.")] = None
    digest: Annotated[
        Digest | None, described("The `digest` of the intent as you read it; another one is refused with 409.")
    ] = None


class FailBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=both_spellings):
    """The result to keep for an intent that is closed as failed."""

    execution_result: Annotated[dict[str, Any] | None, described("Anything of yours, at most 16 KiB.")] = None
    execution_result_: Annotated[dict[str, Any] | None, same_as("executionResult")] = None


class Intent(msgspec.Struct, frozen=True, rename=both_spellings, kw_only=True):
    """A proposal, and what has become of it."""

    id: Annotated[Id, described("The intent.")]
    intent_id: Annotated[Id, same_as("id")] = msgspec.field(name="intent_id")
    intent_type: Annotated[IntentType, _TYPE]
    intent_type_: Annotated[IntentType, same_as("intentType")]
    agent_id: Annotated[str | None, described("The agent it is about.")]
    wallet_id: Annotated[str | None, same_as("agentId")] = msgspec.field(name="wallet_id")
    resource_type: Annotated[str | None, _RESOURCE_TYPE]
    resource_type_: Annotated[str | None, same_as("resourceType")]
    resource_id: Annotated[str | None, _RESOURCE]
    resource_id_: Annotated[str | None, same_as("resourceId")]
    payload: Annotated[dict[str, Any], described("Payload in its canonical spelling.")]
    digest: Annotated[str, described("The SHA-256 of type and payload, as who authorises it confirms it.")]
    authorization_details: Annotated[list[dict[str, Any]], described("Always empty.")] = []
    authorization_details_: Annotated[list[dict[str, Any]], same_as("authorizationDetails")] = []
    status: Annotated[IntentStatus, described("State of the intent.")]
    expires_at: Annotated[Instant, described("Time when it ends undecided.")]
    expires_at_: Annotated[int, described("The same in Unix milliseconds.")]
    created_at: Annotated[Instant, described("Time of the proposal.")]
    created_at_: Annotated[int, described("The same in Unix milliseconds.")]
    updated_at: Annotated[Instant, described("Time of the last change of its state.")]
    created_by: Annotated[str, described("The proposer: `user:<id>`, or a name of the key or client.")]
    created_by_display_name: Annotated[str | None, _NAME]
    created_by_display_name_: Annotated[str | None, same_as("createdByDisplayName")]
    authorized_by: Annotated[Id | None, described("The person who authorised it.")]
    authorized_at: Annotated[Instant | None, described("Time of the authorisation.")]
    reason: Annotated[str | None, described("Reason given when it was authorised, rejected or closed.")]
    policy_results: Annotated[
        list[Result] | None, described("Of a batch of calls: what each rule said when it was proposed.")
    ]
    execution_result: Annotated[dict[str, Any] | None, described("Result of the execution; `code` says why it failed.")]
    execution_result_: Annotated[dict[str, Any] | None, same_as("executionResult")]


class Throttling(msgspec.Struct, frozen=True, rename="camel"):
    """A rate-limit rule has no room for it now; the intent stays authorised: execute it after `Retry-After` seconds."""

    intent_id: Annotated[Id, described("The intent.")]
    results: Annotated[list[Result], described("Result of each rule.")]
    code: Annotated[Literal["policy_rate_limited"], Meta(description="The word for programs.")] = "policy_rate_limited"


class VotesMissing(msgspec.Struct, frozen=True, rename="camel"):
    """An approval-quorum rule asks for votes, and an intent takes none: have the agent send the order itself."""

    intent_id: Annotated[Id, described("The intent.")]
    results: Annotated[list[Result], described("Result of each rule.")]
    code: Annotated[Literal["quorum_needed"], Meta(description="The word for programs.")] = "quorum_needed"
