"""grpcio, which finds the proxy and its authority in the environment."""

import grpc
from steps import BASE, UPLOADED, WORDS, run, size_and_digest

WIDE = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
channel = grpc.secure_channel(BASE.removeprefix("https://"), grpc.ssl_channel_credentials(), options=WIDE)
SECONDS = 100


def ask(method: str, message: bytes) -> bytes:
    return channel.unary_unary(f"/api.Api/{method}")(message, timeout=SECONDS)


def stream() -> list[str]:
    return [piece.decode() for piece in channel.unary_stream("/api.Api/Stream")(b"", timeout=SECONDS)]


def upload() -> object:
    size, digest = ask("Upload", UPLOADED).decode().split()
    return [int(size), digest]


run(
    {
        "call": lambda: ask("Call", WORDS.encode()).decode(),
        "stream": stream,
        "download": lambda: size_and_digest(ask("Download", b"")),
        "upload": upload,
    }
)
