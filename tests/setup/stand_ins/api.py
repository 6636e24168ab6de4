"""Answers 200 to everything, so that the supervisor has something to supervise."""

import http.server
import os
import signal
import sys

from tests.setup.stand_ins import last_words


class Answer(http.server.BaseHTTPRequestHandler):
    """200, always."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.end_headers()


signal.signal(signal.SIGTERM, lambda *_: sys.exit(last_words.signer_is_there()))
http.server.HTTPServer(("127.0.0.1", int(os.environ["SERVICE_API_PORT"])), Answer).serve_forever()
