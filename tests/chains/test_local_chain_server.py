"""The local chain's server and clients that do not stay."""

import socket
import struct
import subprocess
import sys

import httpx

QUESTION = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'
HEAD = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
# Closing sends a reset at once, as a process does that is killed.
_RESET = struct.pack("ii", 1, 0)


def test_a_client_that_hangs_up_leaves_no_traceback() -> None:
    command = [sys.executable, "-P", "-m", "ops.local_chain", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("listening on ").strip()
        host, port = address.split(":")
        for sent in (b"POST / HT", HEAD % 1000 + b"{", HEAD % len(QUESTION) + QUESTION):
            with socket.create_connection((host, int(port)), 60) as client:
                client.sendall(sent)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        answer = httpx.post(f"http://{address}", content=QUESTION, trust_env=False, timeout=60).json()
        process.terminate()
        _, said = process.communicate(timeout=90)

    assert (answer["result"], said) == ("0x7a69", "")
