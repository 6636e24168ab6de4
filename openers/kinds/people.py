"""People with shares of the file's key, k of n: SLIP-39 words on paper, gathered over a socket when the key is needed.

The key itself is the secret that is shared, without a passphrase: a wrong one would give another key and no error. The
blob holds nothing secret: k, n, the number that all shares of one split begin with, and a short digest of each, by
which a foreign one is told as soon as it comes. A share has 256 random bits, so nobody finds one by its digest.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import secrets
import socket
import stat
import struct
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from shamir_mnemonic import EncryptedMasterSecret, MnemonicError, Share, recover_ems, split_ems
from shamir_mnemonic.shamir import ShareGroup
from shamir_mnemonic.share import ShareGroupParameters
from shamir_mnemonic.wordlist import WORDLIST

from custody.kit.key_head import KEY_BYTES, binding
from custody.kit.opener_settings import UNLOCK_SOCKET
from custody.kit.unlock_lines import LINE_SECONDS, MAX_LINE, OPENED, Counts
from openers.outcomes import BadSettings, NotOurs
from openers.shares import Paper

WORDS = 33
MOST_SHARES = 16
# From the first share on; who comes later begins with the others from the start.
GATHERING_SECONDS = 600
CONNECTIONS_AT_ONCE = 8
# Behind K/N, in a head, the number of the split: of two lines of people each has another name.
_GIVEN = re.compile(r"([0-9]{1,2})(?:/|-of-)([0-9]{1,2})(?:@[0-9a-f]{4})?", re.ASCII)
_HEAD = struct.Struct(">BBBH")
_VERSION = 1
_IDENTIFIERS = 1 << 15
_DIGEST = 8
_PEER = struct.Struct("3i")
# Four letters tell each word of the list from all others.
_SPELLINGS = {spelling: word for word in WORDLIST for spelling in (word, word[:4])}


class Split(msgspec.Struct, frozen=True):
    """A key that was split: the holder's name and blob, and the shares, which are shown once and kept nowhere."""

    name: str
    blob: bytes
    shares: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Split({self.name})"


class NoShare(Exception):
    """These words are not taken; the message says why, and repeats none of them."""


class Shared(msgspec.Struct, frozen=True):
    """The blob: which shares there are, without any of them."""

    needed: int
    identifier: int
    digests: tuple[bytes, ...]

    @property
    def name(self) -> str:
        """The name of the holder."""
        return f"{self.needed}-of-{len(self.digests)}@{self.identifier:04x}"

    def pack(self) -> bytes:
        """The bytes that stand in the head."""
        return _HEAD.pack(_VERSION, self.needed, len(self.digests), self.identifier) + b"".join(self.digests)


def numbers_of(given: str) -> tuple[int, int]:
    """The number of shares that open and of all, from `3/5` or `3-of-5`; BadSettings for what makes no sense."""
    said = _GIVEN.fullmatch(given)
    needed, all_of_them = (int(said[1]), int(said[2])) if said else (0, 0)
    if not 2 <= needed <= all_of_them <= MOST_SHARES:
        raise BadSettings(
            f"People are given as K/N, how many shares open and how many there are: 2 to {MOST_SHARES}, for example "
            "3/5. For one person alone there is the recovery key."
        )
    return needed, all_of_them


def split(given: str, file: str, key: bytes) -> Split:
    """Split the file's key into shares, as `3/5` says."""
    needed, all_of_them = numbers_of(given)
    # Without a passphrase there is nothing to slow down, so the exponent of its iterations is 0.
    secret = EncryptedMasterSecret.from_master_secret(key, b"", secrets.randbelow(_IDENTIFIERS), True, 0)
    (shares,) = split_ems(1, [(needed, all_of_them)], secret)
    texts = tuple(share.mnemonic() for share in shares)
    shared = shared_of(needed, file, texts)
    return Split(shared.name, shared.pack(), texts)


def shared_of(needed: int, file: str, texts: Sequence[str]) -> Shared:
    """All that the head says of these shares; they are read as people will bring them."""
    shares = [Share.from_mnemonic(text) for text in texts]
    return Shared(needed, shares[0].identifier, tuple(_digest(file, share) for share in shares))


def wrap(name: str, file: str, key: bytes) -> tuple[str, bytes]:
    """Refuse: shares have to reach people, and only `custody keys lock` shows them."""
    raise BadSettings("Shares are shown to people, one after the other: use `custody keys lock` at a terminal.")


def unwrap(name: str, blob: bytes, file: str) -> bytes:
    """Wait at the socket until enough people brought their shares."""
    return unwrap_any([(name, blob)], file)


def unwrap_any(lines: Sequence[tuple[str, bytes]], file: str) -> bytes:
    """The same for several lines of people, for nobody knows whose people come."""
    shared, problems = [], []
    for name, blob in lines:
        try:
            shared.append(read_blob(name, blob))
        except NotOurs as problem:
            problems.append(problem)
    if not shared:
        raise problems[0]
    return asyncio.run(_gather(_place(), Gatherings([Gathering(one, file) for one in shared])))


def read_blob(name: str, blob: bytes) -> Shared:
    """The blob of a head, to the letter."""
    broken = NotOurs("The line of people in the sealed key file was changed, or made by a newer version of Custody.")
    if len(blob) < _HEAD.size:
        raise broken
    version, needed, all_of_them, identifier = _HEAD.unpack_from(blob)
    rest = blob[_HEAD.size :]
    shared = Shared(needed, identifier, tuple(rest[at : at + _DIGEST] for at in range(0, len(rest), _DIGEST)))
    if version != _VERSION or name != shared.name or len(rest) != all_of_them * _DIGEST:
        raise broken
    try:
        numbers_of(name)
    except BadSettings:
        raise broken from None
    return shared


def words_of(text: str) -> list[str]:
    """The words of a share in full, from words or their first four letters; NoShare says which one is wrong."""
    if len(text) > MAX_LINE:
        raise NoShare(f"That is too long for a share: it has {WORDS} words.")
    typed = text.lower().split()
    for at, word in enumerate(typed[:WORDS]):
        if word not in _SPELLINGS:
            raise NoShare(f"Word {at + 1} is none of the list: look at its letters.")
    if len(typed) != WORDS:
        raise NoShare(f"A share has {WORDS} words, and {len(typed)} were given.")
    return [_SPELLINGS[word] for word in typed]


def paper_of(at: int, share: str) -> Paper:
    """A share as it is shown to a person, and as what they type back is read."""
    return Paper(f"share {at + 1}", share, _read_back)


def _read_back(text: str) -> list[str]:
    try:
        return words_of(text)
    except NoShare as problem:
        raise BadSettings(str(problem)) from None


class Gathering:
    """The shares that came so far; all of them are dropped when the others did not come in time."""

    def __init__(self, shared: Shared, file: str) -> None:
        self._shared, self._file = shared, file
        self._shares: dict[int, Share] = {}
        self._until = 0.0

    def __repr__(self) -> str:
        return "Gathering()"

    def counts(self, now: float) -> Counts:
        """The number that came, and how long they are kept."""
        self.drop_late(now)
        left = self._until - now if self._shares else GATHERING_SECONDS
        return Counts(len(self._shares), self._shared.needed, round(left))

    def drop_late(self, now: float) -> None:
        """Forget all shares once the time since the first one is over."""
        if self._shares and now >= self._until:
            self._shares.clear()

    def add(self, text: str, now: float) -> bytes | None:
        """Take one share; the key, when it was the last one needed. NoShare says why it is not taken."""
        self.drop_late(now)
        number, share = self._look_at(text)
        if number in self._shares:
            raise NoShare(f"Share {number} came already: another person's is needed.")
        if not self._shares:
            self._until = now + GATHERING_SECONDS
        self._shares[number] = share
        if len(self._shares) < self._shared.needed:
            return None
        return self._combine()

    def expects(self, share: Share) -> bool:
        """Say whether it is of this split, as far as the words before its value say."""
        # An exponent that is not ours would have the key computed for hours.
        ours = ShareGroupParameters(self._shared.identifier, True, 0, 0, 1, 1, self._shared.needed)
        return bool(share.group_parameters() == ours)

    def _look_at(self, text: str) -> tuple[int, Share]:
        share = _read_share(text)
        number = share.index + 1
        if not self.expects(share) or number > len(self._shared.digests):
            raise NoShare("That is a share of something else, or of an earlier split: look at the paper's date.")
        if _digest(self._file, share) != self._shared.digests[number - 1]:
            raise NoShare("That is a share of another sealed key file.")
        return number, share

    def _combine(self) -> bytes:
        group = ShareGroup()
        group.shares = set(self._shares.values())
        self._shares.clear()
        try:
            key = bytes(recover_ems({0: group}).decrypt(b""))
        except (MnemonicError, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            raise NoShare("The shares do not make a key together, so all were dropped: begin again.")
        return key


class Gatherings:
    """Those of all lines of people; a share is given to the one that it is of."""

    def __init__(self, gatherings: Sequence[Gathering]) -> None:
        self._gatherings = gatherings

    def counts(self, now: float) -> Counts:
        """The counts of the one that has most, by what it lacks."""
        return min((one.counts(now) for one in self._gatherings), key=lambda counts: counts.needed - counts.came)

    def seconds(self, now: float) -> int:
        """The time until the next of them drops what came."""
        return min(one.counts(now).seconds for one in self._gatherings)

    def add(self, text: str, now: float) -> tuple[bytes | None, Counts]:
        """Take one share; the key if it was the last one needed, and the counts of those that it is one of."""
        share = _read_share(text)
        found = next((one for one in self._gatherings if one.expects(share)), self._gatherings[0])
        return found.add(text, now), found.counts(now)


def _read_share(text: str) -> Share:
    try:
        return Share.from_mnemonic(" ".join(words_of(text)))
    except MnemonicError:
        raise NoShare("The words do not fit together: one is another word of the list, or two are exchanged.") from None


def _digest(file: str, share: Share) -> bytes:
    """Bind the share to the file, so that the line of another one does not take it."""
    return hashlib.sha256(binding(file) + f" share {share.index} ".encode() + share.value).digest()[:_DIGEST]


def _place() -> str:
    if not (path := os.environ.get(UNLOCK_SOCKET, "")):
        raise BadSettings(f"{UNLOCK_SOCKET} is not set: it says where to wait for `custody unlock`.")
    with contextlib.suppress(FileNotFoundError):
        # Left behind by one that was killed.
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            Path(path).unlink()
    return path


async def _gather(path: str, gatherings: Gatherings) -> bytes:
    """Listen until the key is there, or for ever."""
    waiting = _Waiting(gatherings)
    before = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(waiting.meet, path, limit=MAX_LINE)
    except OSError as problem:
        raise BadSettings(f"{UNLOCK_SOCKET}={path!r} cannot be listened at: {problem.strerror or problem}.") from None
    finally:
        os.umask(before)
    try:
        return await waiting.key()
    finally:
        server.close()
        with contextlib.suppress(OSError):
            os.unlink(path)


class _Waiting:
    """The opener's side of all connections."""

    def __init__(self, gatherings: Gatherings) -> None:
        self._gatherings = gatherings
        self._connections = 0
        self._moved = asyncio.Event()
        self._opened: bytes | None = None
        self._key: bytes | None = None

    async def key(self) -> bytes:
        """The key, as soon as enough shares came; meanwhile late ones are dropped."""
        while self._key is None:
            self._moved.clear()
            kept = self._gatherings.seconds(time.monotonic())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._moved.wait(), kept + 1)
        return self._key

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, in its time."""
        self._connections += 1
        try:
            async with asyncio.timeout(LINE_SECONDS):
                answer = await self._talk(reader, writer)
                await _say(writer, answer)
        except TimeoutError:
            with contextlib.suppress(OSError):
                writer.write(b"no It took too long: type the share first, and send it then.\n")
        except OSError:
            pass  # They went away.
        finally:
            self._connections -= 1
            writer.close()
            # Only now, so that the last one who came hears that it is open before this process ends.
            self._key = self._opened
            self._moved.set()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        if self._connections > CONNECTIONS_AT_ONCE:
            return "no Too many talk to this opener at once: try again."
        if _peer_of(writer) not in (0, os.geteuid()):
            return "no Only root, or the user that the opener runs as, may bring shares."
        await _say(writer, self._gatherings.counts(time.monotonic()).line("waiting"))
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return "no Nothing was sent."
        except asyncio.LimitOverrunError:
            return f"no That is too long for a share: it has {WORDS} words."
        if self._opened is not None:
            return OPENED  # One that comes while the key is on its way is not needed any more.
        try:
            self._opened, counts = self._gatherings.add(line.decode("ascii", "replace"), time.monotonic())
        except NoShare as problem:
            return f"no {problem}"
        return OPENED if self._opened is not None else counts.line("came")


async def _say(writer: asyncio.StreamWriter, line: str) -> None:
    writer.write(f"{line}\n".encode())
    await writer.drain()


def _peer_of(writer: asyncio.StreamWriter) -> int:
    """The user at the other end, by the kernel's word."""
    connection: socket.socket = writer.get_extra_info("socket")
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return int(_PEER.unpack(peer)[1])
