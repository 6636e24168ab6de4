"""An API of gRPC: a server by the library's own authors, which takes its credential as metadata."""

import hashlib
import sys
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc

CERTIFICATE, EXPECTED = Path(sys.argv[1]).read_bytes(), sys.argv[2]
FILE = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(20 * 2**20 // 32))
WORDS = ("one ", "two ", "three ")
WIDE = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


def digest(content: bytes) -> bytes:
    return f"{len(content)} {hashlib.sha256(content).hexdigest()}".encode()


class Api(grpc.GenericRpcHandler):
    """Methods by name; bytes in and bytes out."""

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Return the method that a call names, if the call has the credential."""
        if dict(details.invocation_metadata).get("authorization") != f"Bearer {EXPECTED}":
            return grpc.unary_unary_rpc_method_handler(
                lambda _asked, context: context.abort(grpc.StatusCode.UNAUTHENTICATED, "The credential is wrong.")
            )
        return {
            "/api.Api/Call": grpc.unary_unary_rpc_method_handler(lambda asked, _context: asked),
            "/api.Api/Stream": grpc.unary_stream_rpc_method_handler(words),
            "/api.Api/Download": grpc.unary_unary_rpc_method_handler(lambda _asked, _context: FILE),
            "/api.Api/Upload": grpc.unary_unary_rpc_method_handler(lambda asked, _context: digest(asked)),
        }.get(details.method)


def words(_asked: bytes, _context: grpc.ServicerContext) -> Iterator[bytes]:
    yield from (word.encode() for word in WORDS)


server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[Api()], options=WIDE)
key = CERTIFICATE[CERTIFICATE.index(b"-----BEGIN PRIVATE KEY") :]
port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, CERTIFICATE)]))
server.start()
print(f"listening on 127.0.0.1:{port}", flush=True)
server.wait_for_termination()
