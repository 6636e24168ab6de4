"""The prose of the contract: how the API is used as a whole, and what its groups are."""

DESCRIPTION = """\
Custody lets agents spend money and call APIs without holding a key. It holds their wallets, signs only what their
policies allow, and asks a person for what is above the threshold.

# Authentication

A request has exactly one credential; each operation lists those that it takes.

| Who | How |
|---|---|
| tenant | `X-Service-Key: <API key>` |
| agent | `Authorization: Bearer <agent token>`, from `createAgentToken` |
| person | `Authorization: Bearer <access token>`, from a sign-in; `x-service-roles` names the roles that may call, \
`x-service-mfa` the action that needs a recent second factor |
| app client | `Authorization: Basic <app id:secret>` and `X-Service-App-Id` |
| operator | `X-Service-Platform-Key: <key>` |

401 means that the credential is missing or not valid, 403 that it does not allow this.

# Answers

Every answer is JSON: `{"ok": true, "data": ...}`, or `{"ok": false, "error": ..., "data": {"code": ...}}`. `error` is a
sentence for people and may change, `data.code` is for programs and does not. Each answer lists its codes, and the
schema `ErrorCode` says what each means. Fields and codes may be added; ignore what you do not know. Amounts are decimal
strings in the smallest unit, times are RFC 3339 in UTC.

Every answer has `X-Request-Id`, which the operator finds in the logs; send one to choose it.

# Idempotency

Send an `Idempotency-Key` with every change. A second request with the same key and the same body gets the first answer,
with `Idempotency-Replayed: true`; another body under the same key is 409 `idempotency_mismatch`. Answers are stored for
24 hours. A request that is refused before it takes effect leaves the key free.

# Paging

Lists take `limit` and `offset`, and give `X-Total-Count`: exact up to a thousand rows beyond the page, else the least
there are, and `X-Total-Is-Estimate: true` and `totalIsEstimate: true` say so. While rows are added, an offset shows
some of them twice. Lists that take a `cursor` name the next one in `nextCursor`, null on the last page, and in the
header `X-Next-Cursor`: send it with the same filters, and no row comes twice and none is left out. Exports have the
header alone.

Leave out a parameter that has no value: `null` and empty texts are values like others. Bounds of time are RFC 3339 with
a zone, or a date, which is that whole day in UTC; both are inclusive.

# Retries

Retry on 429 and 503 after `Retry-After` seconds, and on 500, 502 and broken connections with growing pauses, always
under the same `Idempotency-Key`. Anything else that is refused stays refused until the request or the state changes.

# Names

Some fields have a second name, most often the same word in snake_case: `wallet_ids` beside `walletIds`. Requests may
have either, answers have both. Such a property or parameter has `x-service-same-as`, the name to prefer;
`x-service-needs` lists fields of which one of the names must be sent.

# Generated clients

`/openapi.json` is the whole contract. `/openapi-plain.json` has each field by one name: take that for openapi-generator
and for every tool that would make one name of two spellings. `/webhooks.json` has what we send to endpoints.

# Limits

Every answer that counts has `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`. One that is refused has
`Retry-After` besides. Bodies have a greatest size (`x-service-max-bytes`); a longer one is 413.
"""
EVENTS = """\
What endpoints for webhooks are sent: a POST with the headers and the body of its event. The routes that make endpoints
are in `/openapi.json`.
"""
# The operations that serve the contract itself: name, summary, description.
SELF = {
    "/openapi.json": ("getContract", "Get this contract.", "OpenAPI 3.1, outside the envelope."),
    "/openapi-plain.json": (
        "getPlainContract",
        "Get this contract with one name for each field.",
        "For generators that make one name of `wallet_ids` and `walletIds`, such as openapi-generator. OpenAPI 3.1, "
        "outside the envelope.",
    ),
    "/webhooks.json": (
        "getWebhooksContract",
        "Get the contract of what endpoints for webhooks are sent.",
        "OpenAPI 3.1, outside the envelope.",
    ),
}
LICENSE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
# Every group of operations, in the order of pages.
TAGS = {
    "Health": "Probes: is the service alive, is it ready?",
    "System": "The contract, and the public keys of the service.",
    "Credentials": "The caller's own credential.",
    "Sign-in": "Sign-in of people.",
    "Sessions": "Sessions of people.",
    "Second factors": "Factors that people verify besides signing in.",
    "Passkeys": "Passkeys of people.",
    "Linked identities": "Ways for people to sign in, beside passkeys.",
    "Sign-on": "Sign-in at Google, Discord, X and at tenants' own identity providers (OIDC, SAML).",
    "Devices": "Sign-in on devices without a keyboard (RFC 8628).",
    "Agents": "Agents, their wallets and tokens.",
    "Signers and key quorums": "Signers and quorums that must agree before an agent's wallet signs.",
    "Policies": "The rules that decide over an agent's orders.",
    "Signing": "Signing with an agent's wallets.",
    "Key imports": "Private keys from elsewhere, sealed to the signer.",
    "Your wallets": "Wallets of the person who is signed in.",
    "Wallet actions": "Transfers: what an agent wants done, authorised by its signers.",
    "Transactions": "Signed orders and their outcomes.",
    "Approvals": "Orders that wait for a person.",
    "Intents": "Actions that one person proposes, another authorises, and the service then carries out.",
    "Accounts": "Wallets of agents under one name, and what they hold.",
    "Dashboard": "One agent at a glance.",
    "Secrets": "Credentials that agents use without seeing them.",
    "Credential routes": "Routes decide which calls of agents get which secret.",
    "Policy sets": "Rules that many agents share, and limits on what all of them spend together.",
    "Payment routes": "Routes decide which calls of agents are paid for, how much and to whom.",
    "Tenants": "Tenants and their configuration.",
    "API keys": "A tenant's API keys: list, replace, revoke.",
    "App clients": "Applications that call for a tenant.",
    "Single sign-on": "Sign-in of a tenant's people by its own identity provider.",
    "Request signing": "Keys that sign requests.",
    "Tokens": "Names that the owners of a tenant give its tokens.",
    "Oversight": "Pages for a tenant's admins.",
    "Wallet policy": "One linked wallet for each member of a tenant.",
    "Freeze": "Stopping an agent or a tenant at once.",
    "Audit": "The audit trail.",
    "Platform": "Requests of the operator.",
    "Invitations": "Inviting people into a tenant, and joining it.",
    "Members": "The people of a tenant and their roles, as its owners and admins name them.",
    "Platform users": "People as the operator names and finds them.",
    "Tenant users": "The people of a tenant, as its owners and admins see them.",
    "Notifications": "Channels by which people are told of what waits, in chat, push or mail.",
    "Webhooks": "Endpoints that events are sent to, and deliveries.",
    "Events": "The stream of events.",
}
