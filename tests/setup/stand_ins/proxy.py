"""Listens where the proxy would, once it could read its key, so that the supervisor has something to wait for."""

import os
import socket
from pathlib import Path

# The supervisor switches assertions off here.
if not Path(os.environ["SERVICE_PROXY_CA_KEY_FILE"]).read_text().startswith("-----BEGIN PRIVATE KEY-----"):
    raise SystemExit("no key")
if not Path(os.environ["SERVICE_REVEAL_SOCKET"]).parent.is_dir():
    raise SystemExit("no folder for the signer's socket")
with socket.socket() as listener:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", int(os.environ["SERVICE_PROXY_PORT"])))
    listener.listen()
    while True:
        connection, _ = listener.accept()
        connection.sendall(os.environ.get("SERVICE_PROXY_WORKER", "only").encode())
        connection.close()
