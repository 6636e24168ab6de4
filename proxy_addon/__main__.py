"""Start: connect, learn the token keys, listen, serve until told to stop."""

import asyncio
import os
import signal
import sys
from functools import partial
from types import SimpleNamespace

from custody.kit import authority, db, logs
from custody.kit.errors import Unavailable
from custody.kit.fair_slots import FairSlots
from custody.kit.metrics import serve_metrics
from custody.kit.outside import Fetcher, Outside
from custody.kit.poolers import ForgetfulPooler, refuse_forgetful
from custody.kit.resolver import Lookup, system_lookup
from custody.kit.schema_version import NewerDatabase, refuse_newer
from custody.kit.tasks import spawn
from custody.protocol.client import SignerClient
from proxy_addon import metrics, settings
from proxy_addon.addon import Addon
from proxy_addon.admission import Admission
from proxy_addon.audit import AuditTrail
from proxy_addon.charging import Charges
from proxy_addon.crowd import Crowd
from proxy_addon.dial import Dialler
from proxy_addon.exchange import Exchange, Limits
from proxy_addon.keys import Keys
from proxy_addon.listener import Listener
from proxy_addon.lookup_cache import LookupCache
from proxy_addon.minted import Minter
from proxy_addon.mitm.handler import HELD, ConnectionServices
from proxy_addon.mitm.tls import Certificates
from proxy_addon.payment import Payer
from proxy_addon.run_forever import run_forever

log = logs.logger("proxy")
DATABASE_SECONDS = 30.0
_SIGNER_SECONDS = 30.0
# What mitmproxy's layers read of its options; ours never change, and a look-up in the library's own costs 10 %.
_OPTIONS = SimpleNamespace(tcp_timeout=0, proxy_debug=False)


async def serve(given: settings.Settings, lookup: Lookup = system_lookup) -> None:
    """Run until SIGTERM or SIGINT; what runs then is allowed to end. `lookup` resolves the names of upstreams."""
    pool = await db.open_pool_when_there(given.database_url, size=3, seconds=DATABASE_SECONDS)
    await refuse_forgetful(given.database_url)
    await refuse_newer(pool)
    signer = SignerClient(str(given.reveal_socket), "proxy")
    minter = Minter(Fetcher(_outside(given, lookup)))
    keys, lookups, trail = Keys(signer), LookupCache(pool, signer, minter), AuditTrail(pool)
    await _load(keys)
    crowd = Crowd()
    charges = Charges(signer)
    admission = Admission(given, keys, lookups, trail, crowd, charges)
    certificates = Certificates(given.ca_file, given.ca_key_file, given.extra_ca_file)
    limits = Limits(given.connect_seconds, given.header_seconds, given.idle_seconds, given.max_body_bytes)
    services = ConnectionServices(
        options=_OPTIONS,
        hooks=Addon(admission, certificates, Payer(signer)).hooks(),
        dialler=Dialler(lookup, given.connect_seconds, given.private_hosts),
        limits=limits,
        ended=lambda exchange: _finish(exchange, trail, charges),
        gone=crowd.remove,
        held=FairSlots(HELD),
        only_http2=certificates.remember_http2,
    )
    listener = Listener(services, crowd, admission.refused_since, given.host, given.port)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    _start_metrics(given, trail)
    running = [
        spawn(run_forever(begin), getattr(begin, "__name__", "listen"))
        for begin in (
            partial(lookups.listen, given.database_url),
            lookups.forget,
            trail.write,
            listener.watch_the_clock,
            listener.watch_the_agents,
        )
    ]
    await listener.open()
    log.info("forwarding", extra={"host": given.host, "port": given.port, "worker": given.worker})
    await stop.wait()
    services.leaving.set()
    # Whoever sends connections here needs a while to notice; until then they are served as ever.
    await asyncio.sleep(given.drain_seconds)
    await listener.close()
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    if not await trail.end():
        log.error("audit rows were lost: the database was away at the end", extra={"rows": trail.waiting})
    await signer.close()
    await db.close_pool(pool)


def _outside(given: settings.Settings, lookup: Lookup) -> Outside:
    """Make the way to providers' token endpoints: the same judgement, authorities and private hosts as to upstreams."""
    private = given.private_hosts
    return Outside(
        loopback_allowed=False,
        extra_ca_file=given.extra_ca_file,
        private_allowed=lambda host, port, address: private.allow(host, port) or private.have(address, port),
        lookup=lookup,
    )


async def _load(keys: Keys) -> None:
    deadline = asyncio.get_running_loop().time() + _SIGNER_SECONDS
    while True:
        try:
            return await keys.load()
        except Unavailable:
            if asyncio.get_running_loop().time() > deadline:
                raise


def _finish(exchange: Exchange, trail: AuditTrail, charges: Charges) -> None:
    """An exchange is over: count it, say what it used, and write it down if we know whose it was."""
    if exchange.meter is not None and exchange.charge is not None and exchange.was_whole:
        counts = exchange.meter.end()
        if counts is not None:
            spawn(charges.end(exchange.charge, counts), "usage")
    told = exchange.refusal or exchange.failure
    reason = told.code if told else "abandoned" if exchange.abandoned else ""
    if exchange.form != "connect" or told is not None:
        metrics.requests(exchange.status or 0, reason).inc()
        metrics.SENT.inc(exchange.request_bytes)
        metrics.RECEIVED.inc(exchange.response_bytes)
        metrics.SECONDS.observe(exchange.seconds)
    if exchange.claims is not None:
        trail.keep(exchange)


def _start_metrics(given: settings.Settings, trail: AuditTrail) -> None:
    metrics.AUDIT_WAITING.set_function(lambda: trail.waiting)
    if given.worker:
        return  # the first worker has the port
    serve_metrics("proxy", given.metrics_host, given.metrics_port)


def main() -> None:
    """The process."""
    logs.set_up()
    # The libraries below would write every session's keys where this says.
    os.environ.pop("SSLKEYLOGFILE", None)
    try:
        try:
            given = settings.read()
            authority.ensure(given.ca_file, given.ca_key_file, None)
        except ValueError as problem:
            sys.stderr.write(f"proxy: {problem}\n")
            sys.exit(os.EX_CONFIG)
        # Plain asyncio: with this work uvloop is no faster, and its slowest answers are seven times slower.
        asyncio.run(serve(given))
    except (ValueError, OSError, NewerDatabase, ForgetfulPooler) as problem:
        sys.exit(f"proxy: {problem}")


if __name__ == "__main__":
    main()
