"""The decision whether a request may go out, and what of it goes out. It knows nothing of mitmproxy.

The order is the safety: the token is taken and stripped before anything can fail; then who asks, then where to, then
which route, then the secret. Whatever raises on the way is a refusal; nothing falls through to plain forwarding.
"""

import asyncio
import re
import time

import msgspec

from custody.credentials import rules
from custody.credentials.match import RouteTable
from custody.credentials.payment_routes import PaymentRoute
from custody.credentials.target import MalformedTarget, Target, check_path, parse_target
from custody.credentials.types import CredentialRoute
from custody.kit import clock
from custody.kit.errors import CustodyError, Invalid, NotFound, TooMany, Unavailable
from custody.kit.jwt import AgentClaims, BadToken, UnknownKey
from custody.kit.logs import logger
from proxy_addon import aws_request, grpc, inject, ranges, refuse
from proxy_addon.agent_token import TwoTokens, check_no_other, forward_token, gateway_token, without_offers
from proxy_addon.audit import AuditTrail
from proxy_addon.aws_request import Signature
from proxy_addon.charging import Charge, Charges
from proxy_addon.crowd import Crowd
from proxy_addon.exchange import Exchange, Ticket
from proxy_addon.keys import Keys
from proxy_addon.lookup_cache import FRESH_SECONDS, Credential, LookupCache, Standing, StoreAway, caller_of
from proxy_addon.minted import GrantEnded, NotMinted
from proxy_addon.origin import origin_of
from proxy_addon.payment import BODY_TOO_LARGE, MAX_PAID_BODY, Payment, key_in, pays_itself
from proxy_addon.peer import Agent, Peer
from proxy_addon.rate import Windows
from proxy_addon.refuse import Refusal
from proxy_addon.settings import Settings

log = logger("proxy")
MAX_INJECTED_BODY = 8 * 2**20
# How long a refusal waits once an agent was refused more often than is written down one by one.
REFUSED_SECONDS = 1.0
# How often a route is looked for that changes while its credential is waited for.
_LOOKS = 3
_METHOD = re.compile(r"[A-Z]{1,20}")
Headers = list[tuple[bytes, bytes]]


class Refused(Exception):
    """The request does not go out."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.code)


class Arrived(msgspec.Struct, frozen=True):
    """A request's head as it came. `authority` is the host that the agent named outside the path, where it did."""

    method: str
    path: bytes
    http11: bool
    headers: Headers
    authority: str | None
    has_body: bool
    content_length: int | None


class Outgoing(msgspec.Struct, frozen=True):
    """The head that goes to the upstream, credential included."""

    host: str
    port: int
    path: bytes
    headers: Headers

    def __repr__(self) -> str:
        return f"Outgoing({self.host}:{self.port})"


class Admission:
    """Admit or refuse a request, whatever its form; docs/proxy.md lists the steps."""

    def __init__(
        self, settings: Settings, keys: Keys, lookups: LookupCache, trail: AuditTrail, crowd: Crowd, charges: Charges
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._lookups = lookups
        self._trail = trail
        self._crowd = crowd
        self._charges = charges
        self._windows = Windows(settings.rate_limit_max, settings.rate_limit_window_seconds)

    async def request(self, arrived: Arrived, exchange: Exchange, peer: Peer) -> Outgoing:
        """Decide about one request. Raises Refused."""
        try:
            token = self._token(arrived, exchange, peer)
            _, standing = await self._who(token, exchange, peer)
            _check_head(arrived)
            target = self._target(arrived, exchange, peer)
            _keep_token_out(target, token)
            exchange.target = target
            if (arrived.content_length or 0) > self._settings.max_body_bytes:
                raise Refused(refuse.BODY_TOO_LARGE)
            credential = await self._choose(arrived.method, target, standing, exchange, token)
            _check_payment(arrived, exchange)
            return self._outgoing(arrived, exchange, credential, token)
        except (Refused, CustodyError) as problem:
            raise await self._refuse(problem, exchange) from None

    async def tunnel(self, arrived: Arrived, exchange: Exchange, peer: Peer) -> None:
        """Decide about a CONNECT: who, and whether any route leads to that host. Raises Refused."""
        try:
            token = self._token(arrived, exchange, peer)
            claims, standing = await self._who(token, exchange, peer)
            target = exchange.target = self._parse(arrived.authority or "", "/")
            port = 443 if target.port == 80 else target.port  # plain HTTP inside the tunnel goes out as HTTPS
            table = (await self._lookups.tables(claims.tid, standing.credential_version)).credentials
            if not table.knows_host(target.host, port, claims.sub):
                raise Refused(refuse.NO_ROUTE)
        except (Refused, CustodyError) as problem:
            raise await self._refuse(problem, exchange) from None
        peer.token, peer.tunnel = token, (target.host, port)
        peer.until = time.monotonic() + claims.exp - clock.now().timestamp()

    async def charge(self, exchange: Exchange) -> None:
        """Have a priced call charged that is about to leave. Raises Refused."""
        if exchange.charge is None or exchange.charge.is_fresh:
            return
        try:
            await self._charges.make(exchange.charge)
        except NotFound:
            raise await self._refuse(Refused(refuse.NO_ROUTE), exchange) from None
        except CustodyError as problem:
            raise await self._refuse(problem, exchange) from None

    def distrust(self, exchange: Exchange) -> None:
        """Ask for another access token next time: the upstream says that it does not know who calls."""
        if exchange.claims is not None and exchange.route_id is not None:
            self._lookups.distrust(exchange.claims.tid, exchange.route_id)

    async def refused_since(self, claims: AgentClaims) -> Refusal | None:
        """Why an agent whose request is under way would be refused by now, or None. Never raises."""
        if claims.exp <= clock.now().timestamp():
            return refuse.BAD_TOKEN
        try:
            standing = await self._lookups.standing(claims.tid, claims.sub)
        except StoreAway:
            return refuse.UNAVAILABLE
        except Exception:
            log.exception("an agent could not be looked at")
            return refuse.INTERNAL
        if standing is None or (standing.incarnation, standing.token_epoch) != (claims.inc, claims.epoch):
            return refuse.BAD_TOKEN
        return refuse.FROZEN if standing.frozen else None

    async def _refuse(self, problem: Refused | CustodyError, exchange: Exchange) -> Refused:
        """Write what the agent is told; one that does not stop asking is told a while later, and so asks less often."""
        claims = exchange.claims
        if claims is not None and self._trail.refusals.many((claims.tid, claims.sub)):
            await asyncio.sleep(REFUSED_SECONDS)
        return problem if isinstance(problem, Refused) else Refused(_refusal(problem, exchange))

    # ---- who

    def _token(self, arrived: Arrived, exchange: Exchange, peer: Peer) -> str:
        if exchange.form == "tunnel":
            if peer.token is None:
                raise Refused(refuse.PROXY_TOKEN)
            _check_no_other(arrived.headers, peer.token)
            return peer.token
        forward = exchange.form in ("absolute", "connect")
        try:
            token = (forward_token if forward else gateway_token)(arrived.headers)
        except TwoTokens:
            raise Refused(refuse.TWO_TOKENS) from None
        if token is None:
            raise Refused(refuse.PROXY_TOKEN if forward else refuse.BAD_TOKEN)
        if forward:
            _check_no_other(arrived.headers, token)
        return token

    async def _who(self, token: str, exchange: Exchange, peer: Peer) -> tuple[AgentClaims, Standing]:
        bad = refuse.BAD_TOKEN if exchange.form == "gateway" else refuse.PROXY_TOKEN
        try:
            claims = await self._verify(token)
        except BadToken:
            raise Refused(bad) from None
        agent = claims.tid, claims.sub
        if not self._trail.promise(agent):
            raise Refused(refuse.UNAVAILABLE)
        exchange.claims = claims
        standing = await self._lookups.standing(claims.tid, claims.sub)
        if standing is None or (standing.incarnation, standing.token_epoch) != (claims.inc, claims.epoch):
            raise Refused(bad)
        # A frozen agent's connections count, too; a token that holds no more takes nothing from its agent.
        self._count_connection(agent, peer)
        if standing.frozen:
            raise Refused(refuse.FROZEN)
        if (wait := self._windows.hit(agent)) is not None:
            raise TooMany(code="rate_limited", retry_after=wait)
        return claims, standing

    async def _verify(self, token: str) -> AgentClaims:
        try:
            return self._keys.current.verify(token)
        except UnknownKey:
            # Perhaps minted with a key that is younger than we are.
            if not await self._keys.refresh():
                raise
            return self._keys.current.verify(token)

    def _count_connection(self, agent: Agent, peer: Peer) -> None:
        if (lack := self._crowd.count_as(peer, agent)) is not None:
            raise Refused(refuse.TOO_MANY_CONNECTIONS if lack == "share" else refuse.CROWDED)

    # ---- where to

    def _target(self, arrived: Arrived, exchange: Exchange, peer: Peer) -> Target:
        if peer.tunnel is not None:
            if arrived.authority is not None:
                raise MalformedTarget("A request inside a tunnel must not name another host.")
            host, port = peer.tunnel
            return self._parse(f"{host}:{port}", _text(arrived.path))
        if arrived.authority is not None:
            target = self._parse(arrived.authority, _text(arrived.path))
            # A plain request goes out as HTTPS.
            return msgspec.structs.replace(target, port=443) if target.port == 80 else target
        prefix, target = self._of_path(_text(arrived.path))
        exchange.origin = origin_of(prefix, target, arrived.headers, self._settings.public_url)
        return target

    def _of_path(self, raw: str) -> tuple[str, Target]:
        """`/alias/rest` or `/proxy/host/rest`: what comes before the rest, and where it leads."""
        check_path(raw)  # the whole path is well formed before any part of it means something
        path, mark, query = raw.partition("?")
        alias, _, rest = path[1:].partition("/")
        prefix, host = f"/{alias}", self._settings.aliases.get(alias)
        if alias == "proxy":
            host, _, rest = rest.partition("/")
            prefix = f"/proxy/{host}"
        if not host:
            raise Refused(refuse.UNKNOWN_ALIAS)
        return prefix, self._parse(host, f"/{rest}{mark}{query}")

    def _parse(self, host: str, path: str) -> Target:
        # Where the operator lists none, an address is told to be one.
        return parse_target(host, path, addresses=bool(self._settings.private_hosts.places))

    # ---- with what

    async def _choose(
        self, method: str, target: Target, standing: Standing, exchange: Exchange, token: str
    ) -> Credential:
        """The credential of the route that a request falls to, as long as what was judged is not older than a look."""
        claims = exchange.claims
        assert claims is not None  # noqa: S101 - set by _who
        for _ in range(_LOOKS):
            began = time.monotonic()
            tables = await self._lookups.tables(claims.tid, standing.credential_version)
            route = tables.credentials.find(target, method, claims.sub)
            if route is None:
                raise Refused(refuse.NO_ROUTE)
            credential = await self._credential(route, standing, exchange, token)
            if not credential.covers(target, method, claims.sub):
                # The table says otherwise than the seal, or is about to be read again; the seal counts.
                raise Refused(refuse.NO_ROUTE)
            if tables.payments is not None:
                self._find_payment(tables.payments, method, target, exchange, token)
            if time.monotonic() - began < FRESH_SECONDS:
                return credential
            # A provider took its time; meanwhile the agent may have been frozen, or the secret rotated.
            if (refusal := await self.refused_since(claims)) is not None:
                raise Refused(refusal)
            now = await self._lookups.standing(claims.tid, claims.sub)
            if now is None or now.credential_version == standing.credential_version:
                return credential
            standing = now
        raise Refused(refuse.UNAVAILABLE)

    @staticmethod
    def _find_payment(
        table: RouteTable[PaymentRoute], method: str, target: Target, exchange: Exchange, token: str
    ) -> None:
        """Take note of the route by which the request may be paid for; the signer has the last word on it."""
        claims = exchange.claims
        assert claims is not None  # noqa: S101 - set by _who
        try:
            route = table.find(target, method, claims.sub)
        except MalformedTarget:
            # Servers read its path in several ways, and they are not all paid for.
            route = None
        exchange.payment = None
        if route is not None:
            caller = caller_of(claims.tid, claims.sub, token, exchange.request_id, exchange.address)
            path = target.path if target.query is None else f"{target.path}?{target.query}"
            exchange.payment = Payment(route.id, caller, (method, f"{target.host}:{target.port}", path))

    async def _credential(
        self, route: CredentialRoute, standing: Standing, exchange: Exchange, token: str
    ) -> Credential:
        claims = exchange.claims
        assert claims is not None  # noqa: S101 - set by _who
        exchange.route_id, exchange.secret_id = route.id, route.secret_id
        if route.secret_lost is not None:
            raise Refused(_unavailable(route.secret_lost))
        caller = caller_of(claims.tid, claims.sub, token, exchange.request_id, exchange.address)
        try:
            credential = await self._lookups.credential(claims.tid, route.id, standing.credential_version, caller)
        except NotFound:
            raise Refused(refuse.NO_ROUTE) from None
        except NotMinted as problem:
            raise Refused(refuse.GRANT_ENDED if isinstance(problem, GrantEnded) else refuse.NOT_MINTED) from None
        if credential.expired:
            raise Refused(_unavailable("expired"))
        if not credential.fits:
            raise Refused(refuse.VALUE_UNFIT)
        exchange.charge = Charge(route.id, caller) if credential.fields.charge else None
        exchange.usage = credential.fields.usage
        return credential

    def _outgoing(self, arrived: Arrived, exchange: Exchange, credential: Credential, token: str) -> Outgoing:
        target, fields = exchange.target, credential.fields
        assert target is not None  # noqa: S101 - set by request
        exchange.websocket = _is_websocket(arrived)
        came = arrived.headers
        if exchange.websocket:
            came, exchange.offered = without_offers(came, token)
        wanted = ranges.read(arrived.method, came, credential.needles, forwarded=fields.ranges)
        exchange.parts, exchange.wanted = fields.ranges, wanted
        headers = inject.outgoing_headers(
            came,
            token=token,
            websocket=exchange.websocket,
            keep_authorization=fields.keep_authorization,
            parts=wanted is not None,
        )
        if wanted is not None:
            headers.append((wanted.header, wanted.as_sent()))
        named = f"{target.host}:{target.port}" if target.port != 443 else target.host
        headers = inject.into_headers(headers, "Host", named)
        # What comes back must be readable, or the credential could hide in it.
        headers = inject.into_headers(headers, "Accept-Encoding", "identity")
        if is_call := grpc.is_call(headers):
            headers = inject.into_headers(headers, "grpc-accept-encoding", "identity")
        path, query = target.path.encode(), inject.without_token(target.query, token)
        for one in credential.placed:
            if rules.in_header(one.said):
                headers = inject.into_headers(headers, one.said.inject_key, one.text)
            elif one.said.inject_as == "query":
                query = inject.into_query(query, one.said.inject_key, one.text)
            else:
                self._want_body(arrived, exchange, one)
        exchange.secret_version = credential.secret_version
        exchange.needles = credential.needles
        if credential.signature is not None:
            query = aws_request.plain_query(query)
            headers = self._sign(arrived, exchange, credential.signature, (named, _of(path, query)), headers)
        exchange.injected = bool(credential.placed or credential.signature) and not exchange.body_wanted
        exchange.ticket = Ticket(
            exchange,
            target.host,
            target.port,
            private_allowed=self._settings.private_hosts.allow(target.host, target.port),
            http2=is_call,
        )
        return Outgoing(target.host, target.port, _of(path, query), headers)

    def _sign(
        self, arrived: Arrived, exchange: Exchange, signature: Signature, target: tuple[str, bytes], headers: Headers
    ) -> Headers:
        """Sign a request last of all, or leave that to when its body is here."""
        said = aws_request.payload_of(
            headers, signature.service, has_body=arrived.has_body, changed=bool(exchange.into_body)
        )
        exchange.chunks = said.chunks
        if said.digest is None:
            if arrived.content_length is not None and arrived.content_length > MAX_INJECTED_BODY:
                raise Refused(refuse.BODY_NOT_DIGESTED)
            exchange.signature = signature
            return said.headers
        if said.chunks is not None and said.chunks.length > self._settings.max_body_bytes:
            raise Refused(refuse.BODY_TOO_LARGE)
        headers, made = signature.sign(arrived.method, *target, said.headers, said.digest)
        exchange.mask(made)
        return headers

    def _want_body(self, arrived: Arrived, exchange: Exchange, placed: inject.Placed) -> None:
        if not arrived.has_body or exchange.websocket:
            raise Refused(refuse.BODY_UNFIT)
        if arrived.content_length is not None and arrived.content_length > MAX_INJECTED_BODY:
            raise Refused(refuse.BODY_TOO_LARGE)
        exchange.into_body.append(placed)


def _check_payment(arrived: Arrived, exchange: Exchange) -> None:
    """Have nothing paid for a request that cannot be sent again, or that the agent pays for."""
    exchange.pays_itself = pays_itself(arrived.headers)
    payment = exchange.payment
    if payment is None:
        return
    # Of a call by gRPC both sides may speak at once, and no 402 is in it.
    if exchange.pays_itself or grpc.is_call(arrived.headers):
        exchange.payment = None
        return
    payment.key = key_in(arrived.headers)
    if (arrived.content_length or 0) > MAX_PAID_BODY or _is_websocket(arrived):
        payment.skipped = BODY_TOO_LARGE


def _refusal(problem: CustodyError, exchange: Exchange) -> Refusal:
    if isinstance(problem, Unavailable):
        log.warning("could not decide", extra={"request_id": exchange.request_id, "reason": problem.code})
    return refuse.from_error(problem)


def _check_head(arrived: Arrived) -> None:
    """Refuse what two readers could read in two ways."""
    if not _METHOD.fullmatch(arrived.method) or arrived.method in ("CONNECT", "TRACE"):
        raise Invalid("This method is not forwarded.", code="method_not_forwarded")
    hosts = [value for name, value in arrived.headers if name.lower() == b"host"]
    if len(hosts) > 1 or (arrived.http11 and not hosts):
        raise Refused(refuse.MALFORMED)
    codings = [value for name, value in arrived.headers if name.lower() == b"transfer-encoding"]
    if codings and [coding.lower() for coding in codings] != [b"chunked"]:
        raise Refused(refuse.MALFORMED)


def _check_no_other(headers: Headers, token: str) -> None:
    """Refuse another agent's token in a place that goes to the upstream: it was meant for nobody there."""
    try:
        check_no_other(headers, token)
    except TwoTokens:
        raise Refused(refuse.TWO_TOKENS) from None


def _keep_token_out(target: Target, token: str) -> None:
    """In the path a token can be neither sent on nor left out."""
    if inject.holds_token(target.path, token):
        raise MalformedTarget("The path contains the agent's token; send the token in a header.")


def _unavailable(how: str) -> Refusal:
    return msgspec.structs.replace(refuse.SECRET_UNAVAILABLE, message=f"The credential of this route is {how}.")


def _of(path: bytes, query: bytes | None) -> bytes:
    return path if query is None else path + b"?" + query


def _text(path: bytes) -> str:
    try:
        return path.decode()
    except UnicodeDecodeError:
        raise MalformedTarget("The target has bytes that are not UTF-8; percent-encode them.") from None


def _is_websocket(arrived: Arrived) -> bool:
    found = {key.lower(): value.lower() for key, value in arrived.headers}
    upgrade = found.get(b"upgrade") == b"websocket" and b"upgrade" in found.get(b"connection", b"")
    return arrived.method == "GET" and upgrade and not arrived.has_body
