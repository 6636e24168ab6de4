"""Holders as the commands meet them: a word that names one, what it wraps, and whether it opens that again.

Each is asked by its opener, as a program of its own that has the settings of its kind alone. Only what a person types
is asked for here, at the terminal.
"""

import binascii
import os
import sys
from base64 import b64decode
from time import monotonic

from custody.kit import key_head
from custody.kit.key_head import KEY_BYTES, MAX_HOLDER_BLOB, MAX_HOLDER_NAME, Head, Holder
from custody.kit.opener_settings import SETTINGS, settings_of
from openers import at_terminal, bounded, outcomes
from openers.hosts import is_of_another_host
from openers.kinds import recovery
from openers.outcomes import BadSettings, NotOpened, NotOurs
from openers.wrapped import Wrapped

SECONDS = 20.0
_COMMON = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH"),
    *("PYTHONPATH", "PYTHONSAFEPATH"),
)
_OF_A_HOST = ("systemd", "tpm2")
_BY_STATUS = {kind.status: kind for kind in (outcomes.Away, outcomes.Refused, NotOurs, BadSettings)}
_MOST_WRAPPED = MAX_HOLDER_NAME + 2 + MAX_HOLDER_BLOB * 4 // 3 + 4


def parse(word: str) -> tuple[str, str]:
    """The kind and the name of a holder, from KIND or KIND:NAME."""
    kind, _, name = word.partition(":")
    if kind not in SETTINGS:
        raise BadSettings(f"There is no kind of holder {kind!r}: it is one of {', '.join(sorted(SETTINGS))}.")
    return kind, name


def wrap(kind: str, name: str, file: str, key: bytes) -> Wrapped:
    """Have a holder wrap the key of a file; what people keep is shown to them, once, and typed back."""
    if kind == "recovery" and not name:
        return at_terminal.make_recovery(file, key)
    if kind == "people":
        return at_terminal.make_shares(name, file, key)
    if kind == "recovery":
        named, blob = recovery.wrap(name, file, key)
        return Wrapped(Holder(kind, named, blob), None)
    said = _run(kind, ("wrap", name), f"{file}\n".encode() + key, _MOST_WRAPPED).decode("ascii", "replace")
    named, _, text = said.removesuffix("\n").partition(" ")
    try:
        blob = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NotOurs(f"The opener of {kind} gave no name and base64 for what it wrapped.") from None
    holder = Holder(kind, named, blob)
    return Wrapped(holder, lambda head: ask(kind, only(head, holder)))


def is_elsewhere(holder: Holder) -> bool:
    """Say whether only another host can ask this holder: what is wrapped here in its name, it could not open."""
    return holder.kind in _OF_A_HOST and is_of_another_host(holder.name)


def wrap_again(holder: Holder, file: str, key: bytes) -> Wrapped:
    """Have a holder wrap the same key again, as its own may have another version now; people keep what they have."""
    if holder.kind == "people" or is_elsewhere(holder):
        return Wrapped(holder, None)
    return wrap(holder.kind, holder.name, file, key)


def open_by(head: Head, source: str) -> bytes:
    """The key of a file, of the first holder that gives it: those of `source` first, and people last."""
    named = [kind for kind in source.replace(" ", "").split(",") if kind not in ("", "file")]
    there = list(dict.fromkeys(one.kind for one in head.holders))
    kinds = [kind for kind in named if kind in there] + sorted(
        (kind for kind in there if kind not in named), key=lambda kind: kind in at_terminal.KINDS
    )
    refusals = []
    for kind in kinds:
        try:
            return ask(kind, head)
        except NotOpened as problem:
            refusals.append(f"{kind}: {problem.sentence}")
    raise NotOpened("No holder opened it. " + " ".join(refusals))


def ask(kind: str, head: Head) -> bytes:
    """The key that the holders of a kind give; NotOpened with their sentence."""
    if kind in at_terminal.KINDS:
        return at_terminal.open_head(kind, head)
    key = _run(kind, ("open",), head.text, KEY_BYTES)
    if len(key) != KEY_BYTES:
        raise NotOurs(f"The opener of {kind} gave {len(key)} bytes, and a key has {KEY_BYTES}.")
    return key


def only(head: Head, holder: Holder) -> Head:
    """A head with one holder alone, to hear what just this one answers."""
    return key_head.write_head(head.file, (holder,))


def _run(kind: str, words: tuple[str, ...], given: bytes, most: int) -> bytes:
    common = {name: os.environ[name] for name in _COMMON if name in os.environ}
    environment = common | settings_of(kind, os.environ)
    command = (sys.executable, "-P", "-m", "openers", kind, *words)
    try:
        ended = bounded.run(command, given, most=most, until=monotonic() + SECONDS, environment=environment)
    except bounded.TookTooLong:
        raise outcomes.Away(f"The opener of {kind} did not end in {SECONDS:.0f} s.") from None
    except bounded.SaidTooMuch:
        raise NotOurs(f"The opener of {kind} gave more than it may.") from None
    except bounded.NotStarted as problem:
        raise BadSettings(f"The opener of {kind} cannot be started: {problem}") from None
    if ended.status != os.EX_OK:
        raise _BY_STATUS.get(ended.status, NotOurs)(ended.complaint or f"its opener ended with {ended.status}.")
    return ended.output
