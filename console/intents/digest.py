"""The digest of what an intent would do, computed here from what is shown. Pure."""

import hashlib

import msgspec

from console.wire.shapes_intents import Intent
from words.texts.plain import harmless


def digest_of(intent: Intent) -> str:
    """The SHA-256 of type and payload, as hex. Only of an intent whose texts are exactly as they were sent."""
    payload = msgspec.json.encode(intent.payload, order="sorted")
    return hashlib.sha256(b"custody-intent-v1:" + intent.intent_type.encode() + b":" + payload).hexdigest()


def harmlessly(exact: Intent) -> Intent:
    """The same intent as it may be shown: what a person reads is made of what the digest is over."""
    return msgspec.convert(harmless(msgspec.to_builtins(exact)), Intent)
