"""Checkpoints as C2SP tlog-checkpoint has them: a signed note of origin, size and root. Pure.

https://c2sp.org/tlog-checkpoint and https://c2sp.org/signed-note; one Ed25519 signature, whose name is the origin.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_ED25519 = b"\x01"
_NOTE = re.compile(
    r"(?P<text>(?P<origin>[^\s+]+)\n(?P<size>0|[1-9][0-9]{0,18})\n(?P<root>[A-Za-z0-9+/]{43}=)\n)\n"
    r"(?P<signatures>(?:\u2014 [^\s+]+ [A-Za-z0-9+/=]+\n)+)\Z"
)
MAX_NOTE = 4096


class BadCheckpoint(Exception):
    """A text that is no checkpoint, or is signed by none of these keys."""


class Checkpoint(msgspec.Struct, frozen=True):
    """The statement of a log on itself: how long it is, and the root over all its leaves."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """Write the text that is signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


def origin_of(public_url: str, tenant: str) -> str:
    """The name of a tenant's log: the service's public address and the tenant, as a URL without scheme."""
    return f"{urlsplit(public_url).netloc}/audit/{tenant}"


def sign_note(checkpoint: Checkpoint, public: bytes, sign: Callable[[bytes], bytes]) -> str:
    """The note. Raises BadCheckpoint for an origin that is more than one word: it would say something else."""
    if any(letter.isspace() for letter in checkpoint.origin):
        raise BadCheckpoint
    signature = _key_id(checkpoint.origin, public) + sign(checkpoint.text.encode())
    return f"{checkpoint.text}\n\u2014 {checkpoint.origin} {base64.b64encode(signature).decode()}\n"


def read(note: str) -> Checkpoint:
    """The content of a note, without checking its signature. Raises BadCheckpoint."""
    return _parts(note)[0]


def open_note(note: str, keys: Iterable[bytes]) -> Checkpoint:
    """Read a note that one of these public keys signed. Raises BadCheckpoint; unknown signatures are ignored."""
    checkpoint, signatures = _parts(note)
    for key in keys:
        for signature in signatures:
            if signature[:4] == _key_id(checkpoint.origin, key) and _verifies(key, signature[4:], checkpoint.text):
                return checkpoint
    raise BadCheckpoint


def _parts(note: str) -> tuple[Checkpoint, list[bytes]]:
    found = _NOTE.match(note) if len(note) <= MAX_NOTE else None
    if found is None:
        raise BadCheckpoint
    try:
        root = base64.b64decode(found["root"], validate=True)
        lines = [line.split(" ") for line in found["signatures"].removesuffix("\n").split("\n")]
        named = [base64.b64decode(line[2], validate=True) for line in lines if line[1] == found["origin"]]
    except binascii.Error:
        raise BadCheckpoint from None
    checkpoint = Checkpoint(found["origin"], int(found["size"]), root)
    # Base64 can be spelled in several ways; what is signed must be exactly what is read.
    if checkpoint.text != found["text"]:
        raise BadCheckpoint
    return checkpoint, named


def _key_id(name: str, public: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:4]


def _verifies(public: bytes, signature: bytes, text: str) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True
