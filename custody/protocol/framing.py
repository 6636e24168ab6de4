"""Frames: four bytes of length, big-endian, then MessagePack; at most 1 MiB."""

import asyncio

import msgspec

from custody.protocol.frames import MAX_FRAME


class BadFrame(Exception):
    """A frame that is too long or does not decode; the connection is closed."""


async def read_frame[T](
    reader: asyncio.StreamReader, decoder: msgspec.msgpack.Decoder[T], most: int = MAX_FRAME
) -> T | None:
    """The next frame, or None when the other side closed between frames."""
    try:
        length = int.from_bytes(await reader.readexactly(4), "big")
        if not 0 < length <= most:
            raise BadFrame(f"a frame of {length} bytes")
        return decoder.decode(await reader.readexactly(length))
    except asyncio.IncompleteReadError as problem:
        if problem.partial:
            raise BadFrame("closed inside a frame") from None
        return None
    except msgspec.MsgspecError as problem:
        # The text of a decoding problem names types and paths, never values.
        raise BadFrame(str(problem)) from None


def frame(payload: bytes) -> bytes:
    """One frame around an encoded message."""
    if len(payload) > MAX_FRAME:
        raise BadFrame(f"a frame of {len(payload)} bytes")
    return len(payload).to_bytes(4, "big") + payload
