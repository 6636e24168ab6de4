"""HTTP/2 with agents in a tunnel: each stream goes through a lane of HTTP/1.1, so that nothing is decided here.

mitmproxy's own is not used: it opens windows of 2 GiB, keeps whatever a slow reader does not take, and bounds nothing.
"""

import contextlib
from typing import Any, Protocol

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context

from proxy_addon.http2 import MAX_BLOCK, BadFrames, BadHead, Frames, Headers, end_of_connection
from proxy_addon.lanes import Lane

Commands = layer.CommandGenerator[None]
# Streams at once on one connection, and in all; each is a connection of its agent while it lasts.
MAX_STREAMS = 100
MAX_STREAMS_OF_CONNECTION = 10_000
# Lanes that wait for the next stream.
MAX_IDLE_LANES = 8
# Bytes of requests that may be under way to lanes: of one stream, of a connection.
STREAM_WINDOW, CONNECTION_WINDOW = 2**16 - 1, 2**21
# Bytes of answers that one go frames.
MAX_SENT_AT_ONCE = 16 * 1024
# Bytes of heads that are kept so as not to be written twice; the other side may ask for fewer, and would for more.
MAX_TABLE = 4096
_ERRORS = (ValueError, IndexError, KeyError)
_Codes = h2.errors.ErrorCodes
# The library has no name of its own for what it writes heads with.
_below: Any = h2.connection


class Sleep(commands.RequestWakeup):
    """The wish to be woken once a lane has something to say."""

    def __init__(self) -> None:
        super().__init__(0)


class Tunnel(Protocol):
    """The part of a tunnel that its streams need."""

    @property
    def leaving(self) -> bool:
        """True once the process was told to stop, though it may serve for a while."""

    def open_lane(self) -> Lane:
        """Open a lane; it counts as a connection of its own."""

    def wake(self, lane: Lane) -> None:
        """Have the layer woken, because a lane has something to say."""

    def note_streams(self, count: int) -> None:
        """Take note of how many streams are under way."""


class AgentHttp2(layer.Layer):
    """The streams of one tunnel."""

    def __init__(self, context: Context, tunnel: Tunnel) -> None:
        super().__init__(context)
        self._tunnel = tunnel
        self._h2 = new_connection(client=False)
        self._frames = Frames(preface=True)
        self._streams: dict[int, Lane] = {}
        self._numbers: dict[Lane, int] = {}
        self._idle: list[Lane] = []
        # Lanes with something to say, in the order of their turns.
        self._ready: dict[Lane, None] = {}
        # All lanes that were not let go of, those that are ending among them.
        self._lanes: set[Lane] = set()
        self._last = self._begun = 0
        self._over = self._goodbye_said = self._leaving = self._refused = False

    @property
    def ready(self) -> bool:
        """True while there is more to do without waiting."""
        return bool(self._ready) and not self._over

    def mark(self, lane: Lane) -> None:
        """Note that a lane has something to say."""
        self._ready[lane] = None

    def leave(self) -> None:
        """Take no further streams; the last one that ends ends the connection."""
        self._leaving = True

    def give_up(self, before: float) -> bool:
        """Give up streams whose lanes ended before then, and whose agent still does not take the rest of its answer.

        Nothing else counts them any more: what they keep would be kept as long as the agent likes.
        """
        late = [number for number, lane in self._streams.items() if lane.ended_at < before]
        for number in late:
            self._forget(number)
            self._reset(number, _Codes.CANCEL)
        return bool(late)

    def lose(self) -> None:
        """The connection is gone."""
        self._over = True
        for lane in list(self._lanes):
            lane.lose()

    def _handle_event(self, event: events.Event) -> Commands:
        if self._over:
            return
        if isinstance(event, events.Start):
            self._h2.initiate_connection()
            self._h2.increment_flow_control_window(CONNECTION_WINDOW - self._h2.inbound_flow_control_window)
            yield from self._send()
            yield Sleep()
        elif isinstance(event, events.DataReceived):
            self._frames.give(event.data)
            yield from self._read()
        elif isinstance(event, events.Wakeup):
            if isinstance(event.command, Sleep):
                yield from self._pump()
                yield Sleep()
            else:
                yield from self._read()
        elif isinstance(event, events.ConnectionClosed):
            self.lose()
            yield commands.CloseConnection(self.context.client)

    # ---- what comes

    def _read(self) -> Commands:
        try:
            data, more = self._frames.take()
            heard = self._h2.receive_data(data) if data else []
            for one in heard:
                self._hear(one)
        except (BadFrames, h2.exceptions.ProtocolError, *_ERRORS) as problem:
            yield from self._end(problem)
            return
        yield from self._send()
        if self._refused and not self._goodbye_said:
            self._goodbye_said = True
            yield commands.SendData(self.context.client, end_of_connection(self._last, _Codes.NO_ERROR))
        if more:
            yield commands.RequestWakeup(0)
        if any(isinstance(one, h2.events.ConnectionTerminated) for one in heard):
            self.leave()
            yield from self._end_if_idle()

    def _hear(self, one: h2.events.Event) -> None:
        if isinstance(one, h2.events.RequestReceived):
            self._begin(one.stream_id, one.headers or [], ended=one.stream_ended is not None)
        elif isinstance(one, h2.events.DataReceived):
            self._take(one)
        elif isinstance(one, h2.events.StreamEnded):
            if (lane := self._streams.get(one.stream_id)) is not None:
                lane.give_end()
        elif isinstance(one, h2.events.StreamReset):
            if (lane := self._forget(one.stream_id)) is not None:
                lane.lose()
        elif isinstance(one, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            for lane in self._streams.values():
                if lane.answer is not None and lane.answer.plain:
                    self._tunnel.wake(lane)

    def _begin(self, number: int, fields: Headers, *, ended: bool) -> None:
        self._begun += 1
        last = self._leaving or self._begun > MAX_STREAMS_OF_CONNECTION
        if last or len(self._lanes) - len(self._idle) >= MAX_STREAMS:
            # Nothing of it was done, so it may be sent again; elsewhere, if this connection takes no more.
            self._reset(number, _Codes.REFUSED_STREAM)
            self._refused = self._refused or last
            return
        self._last = number
        lane = self._free_lane()
        try:
            lane.ask(fields, ended=ended)
        except BadHead:
            self._idle.append(lane)
            self._reset(number, _Codes.PROTOCOL_ERROR)
            return
        self._streams[number], self._numbers[lane] = lane, number
        self._tunnel.note_streams(len(self._streams))

    def _free_lane(self) -> Lane:
        while self._idle:
            if not (lane := self._idle.pop()).closed:
                return lane
        lane = self._tunnel.open_lane()
        self._lanes.add(lane)
        return lane

    def _take(self, one: h2.events.DataReceived) -> None:
        lane, size = self._streams.get(one.stream_id), one.flow_controlled_length or 0
        if lane is None:
            self._h2.acknowledge_received_data(size, one.stream_id)
            return
        lane.give(one.data or b"")
        lane.unread += size
        self._give_room(one.stream_id, lane)

    def _give_room(self, number: int, lane: Lane) -> None:
        if lane.readable and lane.unread:
            self._h2.acknowledge_received_data(lane.unread, number)
            lane.unread = 0

    # ---- what goes

    def _pump(self) -> Commands:
        """Frame what lanes have to say, some of each in turn."""
        left = MAX_SENT_AT_ONCE
        try:
            for lane in list(self._ready):
                del self._ready[lane]
                number = self._numbers.get(lane)
                if number is not None:
                    left -= self._pass_on(number, lane, left)
                elif lane.gone:
                    self._let_go(lane)
                if left <= 0:
                    break
        except (h2.exceptions.ProtocolError, *_ERRORS) as problem:
            yield from self._end(problem)
            return
        yield from self._send()
        if self._leaving or self._tunnel.leaving or self._begun >= MAX_STREAMS_OF_CONNECTION:
            yield from self._end_if_idle()

    def _pass_on(self, number: int, lane: Lane, most: int) -> int:
        """Frame some of an answer; gives how much."""
        self._give_room(number, lane)
        answer, size = lane.answer, 0
        if answer is None:
            return 0
        while answer.interim:
            self._h2.send_headers(number, [(b":status", b"%d" % answer.interim.pop(0))])
        if answer.status and not lane.begun:
            lane.begun = True
            bare = answer.ended and not answer.plain and not answer.trailers
            # The end says as much as a length of nothing, which clients of gRPC would take for one of their own fields.
            fields = [field for field in answer.fields if not bare or field != (b"content-length", b"0")]
            self._h2.send_headers(number, [(b":status", b"%d" % answer.status), *fields], end_stream=bare)
            size += 256
            if bare:
                self._finish(number, lane)
                return size
        while answer.plain and size < most:
            room = min(self._h2.local_flow_control_window(number), self._h2.max_outbound_frame_size, most)
            if room <= 0:
                return size
            piece = bytes(answer.plain[:room])
            del answer.plain[:room]
            self._h2.send_data(number, piece)
            self._frames.note_answers(1)
            size += len(piece)
            lane.note_sent()
        if answer.plain:
            self._ready[lane] = None
        elif answer.ended and lane.begun:
            if answer.trailers:
                self._h2.send_headers(number, answer.trailers, end_stream=True)
            else:
                self._h2.end_stream(number)
            self._finish(number, lane)
        elif lane.closed:
            self._forget(number)
            self._reset(number, _Codes.INTERNAL_ERROR if lane.begun else _Codes.REFUSED_STREAM)
        return size

    def _finish(self, number: int, lane: Lane) -> None:
        unfinished = number in self._h2.streams and not self._h2.streams[number].closed
        self._forget(number)
        if unfinished:
            # Answered before the request was over: the rest of it is of no use to anybody (RFC 9113, 8.1).
            self._reset(number, _Codes.NO_ERROR)
        if lane.finish():
            self._idle.append(lane)
            if len(self._idle) > MAX_IDLE_LANES:
                self._idle.pop(0).lose()

    def _forget(self, number: int) -> Lane | None:
        lane = self._streams.pop(number, None)
        if lane is not None:
            del self._numbers[lane]
            if lane.unread:
                # Others need the room in the connection's window.
                self._h2.acknowledge_received_data(lane.unread, number)
                lane.unread = 0
            if lane.gone:
                self._let_go(lane)
            self._tunnel.note_streams(len(self._streams))
        return lane

    def _let_go(self, lane: Lane) -> None:
        self._lanes.discard(lane)
        if lane in self._idle:
            self._idle.remove(lane)

    def _reset(self, number: int, code: h2.errors.ErrorCodes) -> None:
        with contextlib.suppress(h2.exceptions.ProtocolError):  # it may have ended already
            self._h2.reset_stream(number, code)

    def _send(self) -> Commands:
        if data := self._h2.data_to_send():
            yield commands.SendData(self.context.client, data)

    def _end_if_idle(self) -> Commands:
        """End the connection once nothing is under way: some clients give up all streams when they hear of an end."""
        if self._streams:
            return
        if not self._goodbye_said:
            yield commands.SendData(self.context.client, end_of_connection(self._last, _Codes.NO_ERROR))
        self.lose()
        yield commands.CloseConnection(self.context.client)

    def _end(self, problem: Exception) -> Commands:
        """Break off: nobody knows what the other side means."""
        if isinstance(problem, h2.exceptions.ProtocolError):
            yield from self._send()
        else:
            frame = end_of_connection(self._last, _Codes.ENHANCE_YOUR_CALM)
            yield commands.SendData(self.context.client, frame)
        self.lose()
        self._tunnel.note_streams(0)
        yield commands.CloseConnection(self.context.client)


class Encoder(_below.Encoder):  # type: ignore[misc]
    """Writes heads in time that grows with their bytes, whatever the other side wishes.

    The library's keeps as many heads as the other side says, and looks through all of them for each field; and it packs
    a value in time by the square of its length: 60 KiB in 0.4 s.
    """

    table_size_changes: list[int]

    @property
    def header_table_size(self) -> int:
        """Bytes that are kept."""
        return int(self.header_table.maxsize)

    @header_table_size.setter
    def header_table_size(self, wished: int) -> None:
        size, table = min(wished, MAX_TABLE), self.header_table
        if table.resized or size != table.maxsize:
            # Of changes since the last head the smallest and the last count (RFC 7541, 4.2).
            self.table_size_changes = [min([*self.table_size_changes, size]), size]
            table.maxsize, table.resized = size, True

    def encode(self, headers: Any, huffman: bool = False) -> bytes:
        """Write a head, unpacked."""
        return bytes(super().encode(headers, huffman=False))


def new_connection(*, client: bool) -> h2.connection.H2Connection:
    """Make the state of one connection, with the bounds that it tells the other side."""
    config = h2.config.H2Configuration(
        client_side=client,
        header_encoding=False,
        validate_outbound_headers=False,
        normalize_outbound_headers=False,
        normalize_inbound_headers=False,
    )
    made = h2.connection.H2Connection(config)
    codes = h2.settings.SettingCodes
    own = {codes.MAX_HEADER_LIST_SIZE: MAX_BLOCK, codes.INITIAL_WINDOW_SIZE: STREAM_WINDOW}
    own |= {codes.ENABLE_PUSH: 0} if client else {codes.MAX_CONCURRENT_STREAMS: MAX_STREAMS}
    made.encoder = Encoder()
    made.local_settings = h2.settings.Settings(client=client, initial_values=own)
    return made
