"""The listener of a process' metrics: a thread of its own, so that they are served while the process is busy."""

from prometheus_client import start_http_server

from custody.kit.logs import logger


def serve_metrics(process: str, host: str, port: int) -> bool:
    """Serve `/metrics`; a port that is taken costs the metrics, never the process."""
    try:
        start_http_server(port, addr=host)
    except OSError as problem:
        logger(process).error("no metrics: cannot listen", extra={"port": port, "reason": problem.strerror})
        return False
    return True
