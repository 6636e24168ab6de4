"""The counters of the proxy. Labels never hold an agent or a tenant; figures per agent come from the audit rows."""

import functools

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter(
    "custody_proxy_requests_total", "Requests by status and, where refused, the reason", ["status", "reason"]
)
BYTES = Counter("custody_proxy_bytes_total", "Body bytes by direction", ["direction"])
CONNECTIONS = Gauge("custody_proxy_connections", "Open connections of agents")
TURNED_AWAY = Counter(
    "custody_proxy_turned_away_total", "Connections that were ended, or not taken, because too many were open"
)
AUDIT_WAITING = Gauge("custody_proxy_audit_waiting", "Audit rows that are not written yet")
SECONDS = Histogram(
    "custody_proxy_seconds",
    "From the request's head to the end of its answer",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
SENT, RECEIVED = BYTES.labels("to_upstream"), BYTES.labels("to_agent")


@functools.lru_cache(maxsize=1024)
def requests(status: int, reason: str) -> Counter:
    """The counter of one status and reason; looking it up in the library each time costs more than counting."""
    return REQUESTS.labels(str(status), reason)
