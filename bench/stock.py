"""The same work by mitmproxy as it comes: `mitmdump` with an addon that only says where requests go.

It knows no agents, injects and masks nothing, and writes nothing down; bodies may stream, as in the proxy.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PROJECT = Path(__file__).parents[1]
_PROGRAM = "from mitmproxy.tools.main import mitmdump; mitmdump()"
_UPSTREAM = "BENCH_UPSTREAM_PORT"


@contextmanager
def start(upstream: int, ca_file: Path) -> Iterator[tuple[int, int, Path]]:
    """Start it; gives its port, its process id and the certificate of its authority."""
    from tests.outside.processes import die_with  # noqa: PLC0415 - mitmdump, which reads this file too, has no use for it

    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        options = [
            f"confdir={folder}",
            f"ssl_verify_upstream_trusted_ca={ca_file}",
            "listen_host=127.0.0.1",
            "listen_port=0",
        ]
        command = [sys.executable, "-P", "-c", _PROGRAM, "-q", "-s", __file__, *(f"--set={one}" for one in options)]
        process = subprocess.Popen(
            command,
            cwd=_PROJECT,
            env={**os.environ, _UPSTREAM: str(upstream)},
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.strip().isdigit():
                raise RuntimeError(f"mitmdump did not start: {line!r}")
            yield int(line), process.pid, Path(folder, "mitmproxy-ca-cert.pem")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


class Forward:
    """The addon."""

    def running(self) -> None:
        """Say on which port it listens."""
        from mitmproxy import ctx  # noqa: PLC0415 - only mitmdump has one

        found: Any = ctx.master.addons.get("proxyserver")
        print(found.listen_addrs()[0][1], flush=True)

    def requestheaders(self, flow: Any) -> None:
        """To the upstream, whatever was asked for."""
        flow.request.scheme, flow.request.host, flow.request.port = "https", "localhost", int(os.environ[_UPSTREAM])
        flow.request.stream = True

    def responseheaders(self, flow: Any) -> None:
        """As it comes."""
        flow.response.stream = True


addons = [Forward()]
