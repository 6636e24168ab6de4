"""The tokens that an answer says it cost, read while it passes. Nothing of the answer is changed or held up.

An API is not believed more than its form allows: a count that is missing, odd or beyond all measure is none, and of an
answer that is cut, or too long to be looked into, nothing is known. A stream has to say that it is over, and its usage
in the end, for the rest of it costs more than an early event knows. Of several usages the largest counts. Otherwise the
whole charge stays.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from custody.credentials.pointers import steps_of
from custody.credentials.prices import MOST_TOKENS, Counts, TokenPrices, Tokens

# The events that end a streamed response of OpenAI's.
_ENDS_OF_RESPONSES: Final = ("response.completed", "response.incomplete", "response.failed")
# Of an answer in one piece, or of one event in a stream, so many bytes are held at most.
MAX_HELD: Final = 1024 * 1024
_EVENTS: Final = "text/event-stream"


class Unreadable(Exception):
    """A usage that cannot be believed."""


class _Details(msgspec.Struct, frozen=True):
    cached_tokens: Tokens | None = None


class _OpenAiUsage(msgspec.Struct, frozen=True):
    """Of chat completions and embeddings `prompt_tokens`, of responses `input_tokens`."""

    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None
    total_tokens: Tokens | None = None
    prompt_tokens_details: _Details | None = None
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    input_tokens_details: _Details | None = None

    def counts(self) -> Counts:
        """The tokens, those from the cache by themselves."""
        given = self.prompt_tokens if self.input_tokens is None else self.input_tokens
        made = self.completion_tokens if self.output_tokens is None else self.output_tokens
        if given is None or (made is None and self.total_tokens is None):
            raise Unreadable
        made = (self.total_tokens or 0) - given if made is None else made
        details = self.input_tokens_details or self.prompt_tokens_details or _Details()
        cached = details.cached_tokens or 0
        if made < 0 or cached > given:
            raise Unreadable
        return Counts(input=given - cached, output=made, cached=cached)


class _OpenAiWhole(msgspec.Struct, frozen=True):
    usage: _OpenAiUsage | None = None


class _OpenAi(_OpenAiWhole, frozen=True):
    """A whole answer, or an event; the last event of a streamed response has the response in it."""

    type: str = ""
    response: _OpenAiWhole | None = None


class _AnthropicUsage(msgspec.Struct, frozen=True):
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    cache_creation_input_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None


class _AnthropicStart(msgspec.Struct, frozen=True):
    usage: _AnthropicUsage | None = None


class _Anthropic(msgspec.Struct, frozen=True):
    """A whole message, or an event: the first has a message in it, later ones have counts that go on."""

    type: str = ""
    usage: _AnthropicUsage | None = None
    message: _AnthropicStart | None = None


class _Reader(Protocol):
    # What stands in every event that must be looked at.
    marks: tuple[bytes, ...]

    def see(self, text: bytes) -> None: ...

    def pass_over(self) -> None:
        """Take note of an event that says nothing of usage."""

    def end(self, *, stream: bool, done: bool) -> Counts | None:
        """The counts once everything was seen; `done`: a stream said by its last line that it is over."""


class _Largest:
    """The largest counts of those that an answer says; a smaller one contradicts what was said before."""

    def __init__(self) -> None:
        self.counts: Counts | None = None

    def add(self, counts: Counts) -> None:
        """Take further ones."""
        known = msgspec.structs.asdict(self.counts or Counts())
        said = msgspec.structs.asdict(counts)
        self.counts = Counts(**{name: max(known[name], said[name]) for name in said})


class _OfOpenAi:
    """The sum stands in the last event before `[DONE]`, or of a response in the event that ends it."""

    marks: tuple[bytes, ...] = (b'"usage"',)
    _decode = msgspec.json.Decoder(_OpenAi).decode

    def __init__(self) -> None:
        self._found = _Largest()
        self._last, self._over = False, False

    def see(self, text: bytes) -> None:
        """Look at a whole answer, or at an event."""
        said = self._decode(text)
        usage = said.usage or (said.response.usage if said.response is not None else None)
        self._last = usage is not None
        self._over = said.type in _ENDS_OF_RESPONSES
        if usage is not None:
            self._found.add(usage.counts())

    def pass_over(self) -> None:
        """Something came after what was said."""
        self._last = self._over = False

    def end(self, *, stream: bool, done: bool) -> Counts | None:
        """The counts, once everything was seen."""
        return self._found.counts if not stream or (self._last and (done or self._over)) else None


class _OfAnthropic:
    """An event leaves out what one before it said; until one says that the message is over, nothing is known."""

    marks: tuple[bytes, ...] = (b'"usage"', b"message_stop")
    _decode = msgspec.json.Decoder(_Anthropic).decode

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._told = self._over = False

    def see(self, text: bytes) -> None:
        """Look at a whole message, or at an event."""
        said = self._decode(text)
        self._over = said.type == "message_stop"
        self._told = said.type in ("message", "message_delta") or (self._told and self._over)
        for usage in (said.message.usage if said.message is not None else None, said.usage):
            if usage is not None:
                for name, count in msgspec.structs.asdict(usage).items():
                    if count is not None:
                        self._known[name] = max(count, self._known.get(name, 0))

    def pass_over(self) -> None:
        """Something came after what was said."""
        self._told = self._over = False

    def end(self, *, stream: bool, done: bool) -> Counts | None:
        """The counts, once everything was seen."""
        known = self._known
        whole = self._told and (self._over or not stream)
        if not whole or not {"input_tokens", "output_tokens"} <= known.keys():
            return None
        return Counts(
            input=known["input_tokens"],
            output=known["output_tokens"],
            cached=known.get("cache_read_input_tokens", 0),
            cache_write=known.get("cache_creation_input_tokens", 0),
        )


class _AtPointers:
    """Both counts stand in one document, which is the last one of a stream."""

    # Every event is looked at.
    marks: tuple[bytes, ...] = (b"",)

    def __init__(self, said: TokenPrices) -> None:
        self._places = steps_of(said.input_at), steps_of(said.output_at)
        self._found = _Largest()
        self._last = False

    def see(self, text: bytes) -> None:
        """Look at a whole answer, or at an event."""
        document = msgspec.json.decode(text)
        found = [_at(document, steps) for steps in self._places]
        self._last = found != [None, None]
        if not self._last:
            return
        for count in found:
            if type(count) is not int or not 0 <= count <= MOST_TOKENS:
                raise Unreadable
        self._found.add(Counts(input=found[0], output=found[1]))

    def pass_over(self) -> None:
        """Something came after what was said."""
        self._last = False

    def end(self, *, stream: bool, done: bool) -> Counts | None:
        """The counts, once everything was seen."""
        return self._found.counts if self._last else None


def _at(document: Any, steps: list[str]) -> Any:
    for step in steps:
        document = document.get(step) if isinstance(document, dict) else None
    return document


class Meter:
    """The usage of one answer. `hold` counts bytes that are kept, and says whether there is room for them."""

    __slots__ = ("_broken", "_done", "_events", "_hold", "_piece", "_reader")

    def __init__(self, said: TokenPrices, content_type: str | None, hold: Callable[[int], bool]) -> None:
        self._events = (content_type or "").partition(";")[0].strip().lower() == _EVENTS
        self._reader: _Reader = _AtPointers(said) if said.form == "pointers" else _READERS[said.form]()
        self._done = False
        self._hold = hold
        self._piece = bytearray()
        self._broken = False

    def feed(self, plain: bytes) -> None:
        """Look at some of the answer as it passes."""
        if self._broken:
            return
        if not self._events:
            self._keep(plain)
            return
        *whole, rest = plain.split(b"\n")
        for line in whole:
            self._keep(line)
            self._see_event()
        self._keep(rest)

    def end(self) -> Counts | None:
        """The tokens that it cost, once it is over; None where nobody knows."""
        if not self._events:
            self._see(bytes(self._piece))
        elif self._piece:
            # A stream that was cut within a line.
            self._give_up()
        return None if self._broken else self._reader.end(stream=self._events, done=self._done)

    def _keep(self, data: bytes) -> None:
        if self._broken or not data:
            return
        if len(self._piece) + len(data) > MAX_HELD or not self._hold(len(data)):
            self._give_up()
            return
        self._piece += data

    def _see_event(self) -> None:
        line = bytes(self._piece)
        self._hold(-len(self._piece))
        self._piece.clear()
        if not line.startswith(b"data:"):
            return
        said = line[5:].strip()
        # What comes after the end of a stream is not in what it said.
        self._done = said == b"[DONE]"
        if self._done:
            return
        # Most events say nothing of usage; those are not read.
        if any(mark in said for mark in self._reader.marks):
            self._see(said)
        else:
            self._reader.pass_over()

    def _see(self, text: bytes) -> None:
        if self._broken:
            return
        try:
            self._reader.see(text)
        except (msgspec.MsgspecError, Unreadable, UnicodeDecodeError, RecursionError):
            self._give_up()

    def _give_up(self) -> None:
        self._hold(-len(self._piece))
        self._broken, self._piece = True, bytearray()


_READERS: Final[dict[str, Callable[[], _Reader]]] = {"openai": _OfOpenAi, "anthropic": _OfAnthropic}
