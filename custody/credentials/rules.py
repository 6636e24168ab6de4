"""The rules for a credential route, and for the values that it can carry."""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from custody.credentials.aws_key import AWS_SIGNATURE, is_scope, read_key
from custody.credentials.injection_keys import is_restricted
from custody.credentials.patterns import STAR, HostPattern, InvalidPattern, compile_host, compile_path
from custody.credentials.pointers import EACH, InvalidPointer, steps_of
from custody.credentials.prices import TokenPrices
from custody.credentials.spelling import is_address
from custody.credentials.token_exchange import problem_of, read_value
from custody.credentials.types import VALUE, Injection, Placement, RouteFields, RoutePlace
from custody.kit.errors import Invalid

METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
# A shorter one may stand in a text by accident.
SHORTEST_PLACEHOLDER: Final = 8
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}\Z")
_NOT_PRINTABLE = re.compile(r"[^\x20-\x7e]")
# Whatever ends or bends a header line; a tab is white space there, so it may not lead or close the value.
_NOT_IN_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|\A\t|\t\Z")


class InvalidRoute(Invalid):
    """The route is not valid; `fields` are those that are wrong."""


class ValueNotForHeader(Invalid):
    """The value has a control character, such as a line end, and a route puts it into a header."""


class ValueNotForUser(Invalid):
    """The value has a colon, so Basic would take what follows it for the password; put {value} behind a colon."""


class Complaint(Exception):
    """A sentence about one field."""


class Complaints:
    """The sentences about a route's fields, by their names."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}

    def read[T](self, name: str, reader: Callable[[], T]) -> T | None:
        """Read a field, or keep what is wrong with it."""
        try:
            return reader()
        except Complaint as problem:
            self._found[name] = str(problem)
        except InvalidPattern as problem:
            self._found[name] = problem.message
        return None

    def read_place[Fields: RoutePlace](self, fields: Fields, *, allow_broad: bool, allow_addresses: bool) -> Fields:
        """The fields with host, path and method as they are stored; call it first, and `end` last."""
        host = self.read("hostPattern", lambda: _read_host(fields.host_pattern, allow_broad, allow_addresses))
        path = self.read("pathPattern", lambda: compile_path(fields.path_pattern))
        method = self.read("method", lambda: _read_method(fields.method))
        self.read("agents", lambda: _check_agents(fields.agents))
        if host is None or path is None or method is None:
            return fields
        return msgspec.structs.replace(fields, host_pattern=host.text, path_pattern=path.text, method=method)

    def end(self) -> None:
        """Raise InvalidRoute if there is any."""
        if self._found:
            message = " ".join(f"{name}: {sentence}" for name, sentence in self._found.items())
            raise InvalidRoute(message, fields=list(self._found))


def check(fields: RouteFields, *, allow_broad: bool, allow_cookies: bool, allow_addresses: bool = False) -> RouteFields:
    """The fields as they are stored, or InvalidRoute naming each field that is wrong and why."""
    complaints = Complaints()
    read = complaints.read
    said = complaints.read_place(fields, allow_broad=allow_broad, allow_addresses=allow_addresses)
    read("injectKey", lambda: _check_key(fields, allow_cookies))
    read("injectFormat", lambda: _check_format(fields))
    read("alsoInject", lambda: _check_also(fields, allow_cookies))
    read("exchange", lambda: _check_exchange(fields))
    read("keepAuthorization", lambda: _check_kept(fields))
    read("usage", lambda: _check_usage(fields.usage))
    complaints.end()
    return said


def check_secret(fields: RouteFields, secret: str | None) -> None:
    """Raise InvalidRoute unless a route has a secret exactly where it injects one."""
    if fields.inject_as != "none" and secret is None:
        raise InvalidRoute("secretId: A route that injects something names its secret.", fields=["secretId"])
    if fields.inject_as == "none" and secret is not None:
        raise InvalidRoute("injectAs: A route that has a secret injects it; make another one.", fields=["injectAs"])


def check_price(fields: RouteFields) -> None:
    """Raise InvalidRoute unless a call has one price, and a metered one a most."""
    if bool(fields.max_micro_usd) != (fields.usage is not None):
        raise InvalidRoute(
            "maxMicroUsd: A metered route has both: maxMicroUsd, which is charged first, and usage with its prices.",
            fields=["maxMicroUsd"],
        )
    if fields.max_micro_usd and fields.cost_micro_usd:
        raise InvalidRoute(
            "costMicroUsd: A call has one price; leave out costMicroUsd, or maxMicroUsd and usage.",
            fields=["costMicroUsd"],
        )


def in_header(said: Placement) -> bool:
    """Say whether the value goes into a header."""
    return said.inject_as in ("header", "basic")


def is_particular(said: Placement) -> bool:
    """Say whether not every value will do."""
    exchanged = isinstance(said, RouteFields) and said.exchange is not None
    return in_header(said) or said.inject_as == AWS_SIGNATURE or exchanged


def value_fits(said: Placement, value: str) -> None:
    """Raise when a value would not stay in its header's line, moves Basic's colon, or is not what the route needs."""
    if said.inject_as == AWS_SIGNATURE:
        read_key(value.encode())
        return
    if isinstance(said, RouteFields) and said.exchange is not None:
        read_value(said.exchange, value.encode())
        return
    if in_header(said) and _NOT_IN_HEADER.search(value):
        raise ValueNotForHeader
    if said.inject_as == "basic" and ":" in value and ":" not in said.inject_format.partition(VALUE)[0]:
        raise ValueNotForUser


def _read_host(text: str, allow_broad: bool, allow_addresses: bool) -> HostPattern:
    pattern = compile_host(text)
    if not allow_addresses and pattern.name is not None and is_address(pattern.name):
        raise Complaint("The host is an IP address, and this service's operator lists none; write a name.")
    labels = pattern.text.partition(":")[0].split(".")
    if not allow_broad and any(STAR in label for label in labels[-2:]):
        raise Complaint("A * in the last two labels matches hosts of other owners, and this service does not allow it.")
    return pattern


def _read_method(text: str) -> str:
    method = text.upper()
    if method != STAR and method not in METHODS:
        raise Complaint(f"The method must be * or one of {', '.join(sorted(METHODS))}.")
    return method


def _check_key(fields: Placement, allow_cookies: bool) -> None:
    key = fields.inject_key
    if fields.inject_as == "none":
        _check_none(fields)
        return
    if fields.inject_as == AWS_SIGNATURE:
        _check_signature(fields)
        return
    if not in_header(fields):
        if not key or _NOT_PRINTABLE.search(key):
            raise Complaint("The name must be of printable ASCII characters.")
        _check_place(fields)
        return
    if not _TOKEN.match(key):
        raise Complaint("Not a valid header name.")
    if is_restricted(key, allow_cookies=allow_cookies):
        raise Complaint(f"A credential route must not set the header {key}.")


def _check_none(fields: Placement) -> None:
    if isinstance(fields, Injection):
        raise Complaint("Of a further secret it must be said where it goes.")
    if fields.inject_key or fields.inject_format != VALUE or fields.also_inject or fields.exchange:
        raise Complaint("Where nothing is injected, leave out injectKey, injectFormat, alsoInject and exchange.")


def _check_signature(fields: Placement) -> None:
    if isinstance(fields, Injection):
        raise Complaint("A signature is of the whole request; make it the route's own injectAs.")
    if not is_scope(fields.inject_key):
        raise Complaint("Name region and service as they are signed, such as us-east-1/s3.")


def _check_place(fields: Placement) -> None:
    if fields.inject_as == "json":
        try:
            steps_of(fields.inject_key)
        except InvalidPointer as problem:
            raise Complaint(problem.message) from None
    if fields.inject_as == "text" and len(fields.inject_key) < SHORTEST_PLACEHOLDER:
        raise Complaint(f"A placeholder has at least {SHORTEST_PLACEHOLDER} characters.")


def _check_format(fields: Placement) -> None:
    text = fields.inject_format
    if text.count(VALUE) != 1:
        raise Complaint(f"The format must have {VALUE} exactly once.")
    if _NOT_PRINTABLE.search(text):
        raise Complaint("The format must be of printable ASCII characters.")
    if fields.inject_as == AWS_SIGNATURE and text != VALUE:
        raise Complaint("A signature has no text around it; leave injectFormat out.")
    if fields.inject_as == "basic" and ":" not in text:
        raise Complaint("Basic wants user and password with a colon between them, such as user:{value}.")


def _check_agents(agents: tuple[str, ...]) -> None:
    if len(set(agents)) != len(agents):
        raise Complaint("Name each agent once.")


def _check_also(fields: RouteFields, allow_cookies: bool) -> None:
    taken = {_place(fields)}
    for number, one in enumerate(fields.also_inject):
        try:
            _check_key(one, allow_cookies)
            _check_format(one)
        except Complaint as problem:
            raise Complaint(f"The one at {number}: {problem}") from None
        if _place(one) in taken:
            raise Complaint(f"The one at {number}: two values cannot go to one place.")
        taken.add(_place(one))


def _place(said: Placement) -> tuple[str, str]:
    """Name where a value goes, as it is told apart there: X_Key and X-Key are one header."""
    if said.inject_as == AWS_SIGNATURE:
        return "header", "authorization"
    key = said.inject_key
    return ("header", key.lower().replace("_", "-")) if in_header(said) else (said.inject_as, key)


def _check_exchange(fields: RouteFields) -> None:
    exchange = fields.exchange
    if exchange is not None and fields.inject_as == AWS_SIGNATURE:
        raise Complaint("A signature is made with the secret itself; leave exchange out.")
    if exchange is not None and (problem := problem_of(exchange)) is not None:
        raise Complaint(problem)


def _check_kept(fields: RouteFields) -> None:
    if fields.keep_authorization and ("header", "authorization") in map(_place, fields.placements):
        raise Complaint("The route itself sets Authorization, so the agent's own cannot be kept.")


def _check_usage(usage: TokenPrices | None) -> None:
    if usage is None:
        return
    places = usage.input_at, usage.output_at
    if usage.form != "pointers":
        if any(places):
            raise Complaint("The places are known of this form; leave inputAt and outputAt out.")
        return
    for place in places:
        try:
            steps = steps_of(place)
        except InvalidPointer as problem:
            raise Complaint(problem.message) from None
        if EACH in steps:
            raise Complaint("Each count has one place, so no step is *.")
