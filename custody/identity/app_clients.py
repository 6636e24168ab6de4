"""An app client: an application of a tenant that its users sign in with.

Everything listed here decides where tokens may go, so each entry is one exact value: no wildcard, no second spelling.
"""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from custody.identity.native_ids import BadBundleId, BadPackageName, bundle_id, package_name
from custody.kit.described import described
from custody.kit.errors import Invalid
from custody.kit.shapes import DisplayName
from custody.kit.web_urls import DEFAULT_PORTS, NotWebUrl, read_url

MAX_ENTRIES: Final = 50
_SHOWN: Final = 100
_CONTROL = re.compile(r"[^\x20-\x7e]")

AppClientId = Annotated[str, Meta(min_length=3, max_length=64, pattern=r"^[a-z0-9][a-z0-9_-]{2,63}\Z")]
Environment = Annotated[str, Meta(min_length=1, max_length=32, pattern=r"^[a-z][a-z0-9_-]{0,31}\Z")]
# Lengths only; `check` says what is wrong in words.
Origins = Annotated[tuple[Annotated[str, Meta(max_length=512)], ...], Meta(max_length=MAX_ENTRIES)]
RedirectUrls = Annotated[tuple[Annotated[str, Meta(max_length=2048)], ...], Meta(max_length=MAX_ENTRIES)]
NativeIds = Annotated[tuple[Annotated[str, Meta(max_length=255)], ...], Meta(max_length=MAX_ENTRIES)]
# A misspelled provider would leave the true one on; so only those there are can be named.
Registered = Annotated[int, Meta(ge=0, le=10_000_000)]
OAuthProvider = Literal["google", "discord", "twitter"]


class InvalidAppClient(Invalid):
    """The app client is not valid."""


class LoginMethods(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sign-in methods that this client enables or disables; others follow the tenant."""

    oauth: Annotated[dict[OAuthProvider, bool], described("OAuth providers, enabled or disabled by name.")] = {}


class AppClient(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """An app client as it is sent, stored and returned."""

    id: Annotated[AppClientId, described("The client's id, unique in the tenant.")]
    name: Annotated[DisplayName, described("A name for people.")]
    environment: Annotated[Environment, described("Environment of the client.")] = "production"
    enabled: Annotated[bool, described("True if the client may call.")] = True
    is_default: Annotated[bool, described("True for the tenant's default client; there is at most one.")] = False
    allowed_origins: Annotated[Origins, described("Origins of its web pages, such as `https://app.example.com`.")] = ()
    allowed_redirect_urls: Annotated[RedirectUrls, described("Addresses it may redirect to.")] = ()
    allowed_bundle_ids: Annotated[NativeIds, described("Bundle ids of its iOS applications.")] = ()
    allowed_package_names: Annotated[NativeIds, described("Package names of its Android applications.")] = ()
    login_methods: Annotated[LoginMethods, described("Sign-in methods that differ from the tenant's.")] = LoginMethods()
    allow_registration: Annotated[
        bool, described("True to make people members (role `member`) who first sign in at `/sign-in` for this client.")
    ] = False
    max_registered: Annotated[
        Registered, described("The most members of the role `member` up to which this client registers people.")
    ] = 1_000


class _Complaint(Exception):
    """A sentence about one entry, and whether the entry may be quoted."""

    def __init__(self, sentence: str, *, quotable: bool = True) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.quotable = quotable


def check(client: AppClient) -> AppClient:
    """The client as it may be stored, or InvalidAppClient naming each field that is wrong, its value and why."""
    lists: tuple[tuple[str, Sequence[str], Callable[[str], None]], ...] = (
        ("allowedOrigins", client.allowed_origins, _check_origin),
        ("allowedRedirectUrls", client.allowed_redirect_urls, _check_redirect_url),
        ("allowedBundleIds", client.allowed_bundle_ids, _check_bundle_id),
        ("allowedPackageNames", client.allowed_package_names, _check_package_name),
    )
    complaints = {name: sentence for name, entries, check_one in lists if (sentence := _first(entries, check_one))}
    if complaints:
        message = " ".join(f"{name}{sentence}" for name, sentence in complaints.items())
        raise InvalidAppClient(message, fields=list(complaints))
    return client


def is_origin(text: str) -> bool:
    """Say whether a text is an origin as browsers send it and as app clients list it."""
    try:
        _check_origin(text)
    except _Complaint:
        return False
    return True


def _first(entries: Sequence[str], check_one: Callable[[str], None]) -> str | None:
    """Find what is wrong with the first bad entry, or None."""
    if len(entries) > MAX_ENTRIES:
        return f": at most {MAX_ENTRIES} entries."
    seen = set()
    for index, entry in enumerate(entries):
        try:
            check_one(entry)
            if entry in seen:
                raise _Complaint("It is listed twice.")
        except _Complaint as problem:
            quoted = f" ({_CONTROL.sub('?', entry[:_SHOWN])})" if problem.quotable else ""
            return f"[{index}]{quoted}: {problem.sentence}"
        seen.add(entry)
    return None


def _check_origin(text: str) -> None:
    try:
        url = read_url(text)
    except NotWebUrl as problem:
        raise _Complaint(problem.sentence, quotable=problem.quotable) from None
    if url.path or url.query is not None:
        raise _Complaint("An origin has no path, not even a slash at its end, and no query.")
    # Browsers send an origin without its default port, so one written with it would never be met.
    if url.port == DEFAULT_PORTS[url.scheme]:
        raise _Complaint("Leave out the port, which is the default one.")


def _check_redirect_url(text: str) -> None:
    try:
        read_url(text)
    except NotWebUrl as problem:
        raise _Complaint(problem.sentence, quotable=problem.quotable) from None


def _check_bundle_id(text: str) -> None:
    try:
        bundle_id(text)
    except BadBundleId as problem:
        raise _Complaint(problem.message) from None


def _check_package_name(text: str) -> None:
    try:
        package_name(text)
    except BadPackageName as problem:
        raise _Complaint(problem.message) from None
