"""websockets, as a realtime client uses it."""

import os

from steps import BASE, KEY, UPLOADED, WORDS, run, size_and_digest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

URL = BASE.replace("http", "ws", 1)
GIVEN = {"additional_headers": {"Authorization": f"Bearer {KEY}"}} if KEY else {}
if os.environ.get("PLACE") == "subprotocol":
    GIVEN = {"subprotocols": [f"openai-insecure-api-key.{KEY}", "realtime"]}


def dial(path: str) -> ClientConnection:
    return connect(f"{URL}/{path}", max_size=None, **GIVEN)


def ask(message: str | bytes) -> str | bytes:
    with dial("ws") as connection:
        connection.send(message)
        return connection.recv(timeout=60)


def upload() -> object:
    size, digest = ask(UPLOADED).split()
    return [int(size), digest]


def busy() -> object:
    try:
        dial("busy")
    except InvalidStatus as refused:
        return [refused.response.status_code, refused.response.headers["retry-after"]]


run(
    {
        "call": lambda: ask(WORDS),
        "download": lambda: size_and_digest(ask("file")),
        "upload": upload,
        "busy": busy,
    }
)
