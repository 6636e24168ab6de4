"""Holders that people are: what they keep is shown to them once and typed back, and typed when a file is to be opened.

Nothing of it is ever in an argument, a file or a log. Without a terminal nothing is made: a key that nobody saw opens
nothing.
"""

import os
import time

from custody.kit.key_head import Head, Holder
from custody.kit.opener_settings import RECOVERY_KEY_FILE
from openers.__main__ import module_of
from openers.kinds import recovery
from openers.outcomes import BadSettings, NotOpened, NotOurs
from openers.shares import Paper, Terminal, hand_out, open_terminal
from openers.wrapped import Wrapped

KINDS = ("people", "recovery")
# Mistakes that somebody may make before all begins again.
TRIES = 10


def make_recovery(file: str, key: bytes) -> Wrapped:
    """Make a recovery key, and hand it out before anything depends on it."""
    text, public = recovery.make()
    with open_terminal() as terminal:
        hand_out([Paper("The recovery key", text, recovery.public_of)], terminal)
    name, blob = recovery.wrap(public, file, key)
    return Wrapped(Holder("recovery", name, blob), lambda head: recovery.unwrap_with(text, name, blob, head.file))


def make_shares(given: str, file: str, key: bytes) -> Wrapped:
    """Split the key among people, and hand out what each takes away."""
    people = module_of("people")
    split = people.split(given, file, key)
    with open_terminal() as terminal:
        hand_out([people.paper_of(at, share) for at, share in enumerate(split.shares)], terminal)
    holder = Holder("people", split.name, split.blob)

    def open_again(head: Head) -> bytes:
        gathering = people.Gathering(people.read_blob(holder.name, holder.blob), head.file)
        key: bytes = next(filter(None, (gathering.add(share, 0) for share in split.shares)))
        return key

    return Wrapped(holder, open_again)


def open_head(kind: str, head: Head) -> bytes:
    """The key of a file, by what somebody types here, or by the recovery key in a file of theirs."""
    problems: list[NotOpened] = []
    for holder in head.holders:
        if holder.kind == kind:
            try:
                if kind == "recovery" and os.environ.get(RECOVERY_KEY_FILE):
                    return recovery.unwrap(holder.name, holder.blob, head.file)
                with open_terminal() as terminal:
                    return _ask(terminal, holder, head.file)
            except NotOpened as problem:
                problems.append(problem)
    raise (problems or [BadSettings(f"The sealed key file has no holder of the kind {kind}.")])[0]


def _ask(terminal: Terminal, holder: Holder, file: str) -> bytes:
    if holder.kind == "recovery":
        typed = terminal.ask("Recovery key, not shown: ")
        return recovery.unwrap_with(typed, holder.name, holder.blob, file)
    people = module_of("people")
    shared = people.read_blob(holder.name, holder.blob)
    gathering = people.Gathering(shared, file)
    for _ in range(TRIES + shared.needed):
        there = gathering.counts(time.monotonic())
        typed = terminal.ask(f"Share {there.came + 1} of {there.needed}, not shown: ")
        try:
            key: bytes | None = gathering.add(typed, time.monotonic())
        except people.NoShare as problem:
            terminal.say(f"{problem}\n")
            continue
        if key is not None:
            return key
    raise NotOurs("Too many that were typed are no shares of this file. Begin again.")
