"""Receive a request's body: after its caller was admitted, and never more of it than its route takes.

How much that is stands beside the route (`max_body`). A body that says beforehand that it is longer is refused before
a byte of it is read, one that comes in chunks as soon as it is. What is not read is never kept.
"""

import asyncio
from typing import Any

from sanic import Request
from sanic.exceptions import BadRequest, PayloadTooLarge

from api.http.errors import BodyTooLarge
from custody.kit.errors import Invalid

KIB = 1024
# For routes that say nothing else; no other legal body is longer, with every character of its texts escaped.
MAX_BODY = 20 * KIB
# Metadata of 16 KiB as it is counted, three times as long with every character escaped that is not ASCII, and the rest.
MAX_METADATA_BODY = 64 * KIB
# A message of 8 KiB and the signature of a contract's wallet.
MAX_WALLET_BODY = 36 * KIB
# A comment, and an assertion as the vote.
MAX_VOTE_BODY = 32 * KIB
# Fifty pairs of ids.
MAX_REMEDIATIONS_BODY = 32 * KIB
# WebAuthn's JSON, an attestation with its certificates included.
MAX_PASSKEY_BODY = 32 * KIB
# Twice what a set may have: for spaces and line ends.
MAX_POLICIES_BODY = 128 * KIB
# A hundred agents and a set of policies.
MAX_BATCH_BODY = 256 * KIB
# 128 KiB of calldata in hex.
MAX_EVM_BODY = 264 * KIB
# 64 KiB of JSON as it is counted; escaping every non-ASCII character makes it three times as long.
MAX_TYPED_DATA_BODY = 192 * KIB
# 16 KiB of text, every character of which may be escaped.
MAX_MESSAGE_BODY = 100 * KIB
# A demand of 16 KiB, every character of which may be escaped, or its header.
MAX_PAYMENT_BODY = 100 * KIB
# 64 KiB of text, every character of which may be escaped.
MAX_SECRET_BODY = 400 * KIB
# An address of 32,768 characters.
MAX_EXPLAIN_BODY = 36 * KIB
# Fifty agents, five places of secrets, and an exchange.
MAX_ROUTE_BODY = 104 * KIB
# A PSBT of 400,000 characters; base64 needs no escapes.
MAX_PSBT_BODY = 396 * KIB
# Calldata of a batch, in hex, and what stands around it.
MAX_INTENT_BODY = 320 * KIB
# 64 KiB of XML in base64, every plus sign and slash of it escaped, and a RelayState.
MAX_SAML_BODY = 128 * KIB
# Five certificates of 16 KiB, and a hundred groups.
MAX_SAML_CONFIG_BODY = 144 * KIB
# A tenant's templates, presets and app clients.
MAX_CONFIG_BODY = 256 * KIB
# Of a body that is refused, so much is taken and thrown away, so that its sender hears the answer.
MAX_THROWN_AWAY = 1024 * KIB
# Each chunk costs the loop about as much as a kilobyte of body.
MAX_CHUNKS = 1_024
# How long a body may take to arrive.
BODY_SECONDS = 30.0


class BodyTooSlow(Invalid):
    """The request body did not arrive in time."""

    status = 408


class MalformedRequest(Invalid):
    """The request is malformed."""


def content_length(request: Request, most: int) -> int:
    """Bound the length of the body by what the request says of it."""
    # The server's own types do not know what it keeps in these fields.
    stream: Any = request.stream
    if stream is None or not stream.request_body:
        return 0
    return most if stream.request_body == "chunked" else min(most, stream.request_bytes)


async def receive(request: Request, most: int) -> None:
    """Read the body into `request.body`, or raise BodyTooLarge."""
    stream: Any = request.stream
    if stream is None or not stream.request_body:
        return
    # What it says of itself; in chunks it says nothing.
    if stream.request_bytes > most:
        raise BodyTooLarge(most)
    stream.request_max_size = most
    is_chunked = stream.request_body == "chunked"
    pieces: list[bytes] = []
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in stream:
                pieces.append(piece)
                if is_chunked and len(pieces) > MAX_CHUNKS:
                    raise PayloadTooLarge
    except PayloadTooLarge:
        drop(request)
        raise BodyTooLarge(most) from None
    except BadRequest:
        drop(request)
        raise MalformedRequest from None
    except TimeoutError:
        drop(request)
        raise BodyTooSlow from None
    request.body = b"".join(pieces)


def leave(request: Request) -> None:
    """Before an answer goes out: work on what was not read of a body only where its length is known.

    The server throws it away then, up to its own limit, so that the connection can serve again. Chunks would cost work
    without a bound, and a client that waits for `100 Continue` sends nothing more: such connections end.
    """
    stream: Any = request.stream
    if stream is not None and (stream.request_body == "chunked" or stream.expecting_continue):
        drop(request)


def drop(request: Request) -> None:
    """Read no more of a body; the connection ends with the answer."""
    stream: Any = request.stream
    if stream is not None and stream.request_body:
        stream.expecting_continue = False
        stream.keep_alive = False
        stream.request_body = None
