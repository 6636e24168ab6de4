"""The permitted targets of each kind of channel, as far as the text alone tells, and what of them is shown."""

import base64
import re
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec

from custody.identity.addresses import normalised_email
from custody.kit import outside_urls
from custody.kit.errors import Invalid
from custody.kit.web_urls import WebUrl
from custody.protocol.identity.channels import ChannelKind, Led
from custody.protocol.identity.refusals import BadChannelTarget


class Place(NamedTuple):
    """The hosts of a kind, or their ends behind a dot, what follows the host, and how that is told."""

    hosts: tuple[str, ...]
    rest: re.Pattern[str]
    told: str


PLACES: Final = {
    "slack": Place(
        ("hooks.slack.com",),
        re.compile(r"/(services|triggers|workflows)/.+"),
        "begin with https://hooks.slack.com/services/",
    ),
    "discord": Place(("discord.com",), re.compile(r"/api/webhooks/.+"), "begin with https://discord.com/api/webhooks/"),
    "teams": Place(
        # A workflow's address, of two times; and an incoming webhook's of before.
        (".environment.api.powerplatform.com", ".logic.azure.com", ".webhook.office.com"),
        re.compile(r"/.+"),
        "be the address of a workflow or incoming webhook of Teams",
    ),
    "telegram": Place(
        ("api.telegram.org",),
        re.compile(
            r"/bot[0-9]{1,20}:[A-Za-z0-9_-]{20,100}/sendMessage"
            r"\?chat_id=(-?[0-9]{1,20}|@[A-Za-z][A-Za-z0-9_]{3,31})(&message_thread_id=[0-9]{1,20})?"
        ),
        "be https://api.telegram.org/bot<token>/sendMessage?chat_id=<chat>",
    ),
    "pagerduty": Place(
        ("events.pagerduty.com", "events.eu.pagerduty.com"),
        re.compile(r"/v2/enqueue"),
        "be https://events.pagerduty.com/v2/enqueue, or that of events.eu.pagerduty.com",
    ),
}
WITH_TOKEN: Final = frozenset({"ntfy", "apprise", "pagerduty"})
# Of less than this four characters would be too much.
_LONG: Final = 16
_SHOWN: Final = 4
# Of P-256: a private key is below it.
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def check(kind: ChannelKind, target: str, token: str | None, *, public_url: str) -> Led:
    """The target as it is kept, or BadChannelTarget; the refusal never repeats it, for it is a secret."""
    if token is not None and kind not in WITH_TOKEN:
        raise _bad(f"token: a channel of kind {kind} has none; its secret is in its address.", "token")
    if token is None and kind == "pagerduty":
        raise _bad("token: give the routing key (integration key) of the service in PagerDuty.", "token")
    return _check_mail(target) if kind == "email" else _check_url(kind, target, token, public_url)


def _check_mail(target: str) -> Led:
    try:
        address = normalised_email(target)
    except Invalid:
        raise _bad("target: this is not an e-mail address.") from None
    local, _, host = address.rpartition("@")
    return Led(address, None, host, _end(local))


def _check_url(kind: ChannelKind, target: str, token: str | None, public_url: str) -> Led:
    try:
        read = outside_urls.check(target, public_url=public_url)
    except outside_urls.NotOutside as problem:
        raise _bad(f"target: {problem.sentence}") from None
    rest = read.path if read.query is None else f"{read.path}?{read.query}"
    # This very machine was let pass, because the service itself is reached there: a deployment to try things on.
    is_local = read.is_local and outside_urls.loopback_allowed(public_url)
    if kind in PLACES and not is_local and not _is_at(PLACES[kind], read, rest):
        raise _bad(f"target: it must {PLACES[kind].told}")
    return Led(target, token, outside_urls.place(target), _end(token or "" if kind == "pagerduty" else rest))


def check_push(endpoint: str, p256dh: str, auth: str, sender_key: str, *, public_url: str) -> Led:
    """A browser's subscription as it is kept, or BadChannelTarget: keys that nobody could seal to are refused here."""
    try:
        read = outside_urls.check(endpoint, public_url=public_url)
    except outside_urls.NotOutside as problem:
        raise _bad(f"endpoint: {problem.sentence}", "endpoint") from None
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _bytes(p256dh))
    except ValueError:
        raise _bad("p256dh: this is no point of P-256.", "p256dh") from None
    if not 0 < int.from_bytes(_bytes(sender_key)) < _ORDER:
        raise _bad("senderKey: this is no private key of P-256.", "senderKey")
    rest = read.path if read.query is None else f"{read.path}?{read.query}"
    return Led(endpoint, f"{p256dh}.{auth}.{sender_key}", outside_urls.place(endpoint), _end(rest))


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _is_at(place: Place, read: WebUrl, rest: str) -> bool:
    at_host = any(read.host.endswith(host) if host.startswith(".") else read.host == host for host in place.hosts)
    # Workflows are shown with the port that https has anyway.
    return at_host and read.port in (None, 443) and place.rest.fullmatch(rest) is not None


def _end(secret: str) -> str:
    return secret[-_SHOWN:] if len(secret) >= _LONG else ""


def _bad(sentence: str, field: str = "target") -> BadChannelTarget:
    return BadChannelTarget(sentence, fields=[field])
