"""The check whether we may go to an address that somebody else names, as far as the address alone tells.

What its name resolves to is looked at for each connection, for it may change (`custody/kit/outside.py`); here is
refused what is wrong in any case.
"""

from custody.kit import addresses
from custody.kit.web_urls import NotWebUrl, WebUrl, read_url

# Below these, names mean something inside one network only.
_INSIDE = ("local", "internal", "localdomain", "lan", "home.arpa")


class NotOutside(Exception):
    """A problem with an address, in a sentence; the address is never repeated, for it may carry a password."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def check(url: str, *, public_url: str) -> WebUrl:
    """Read an https address with a public host, without user, password and fragment; or NotOutside.

    This very machine, by https or http, is allowed only where the service itself is reached on loopback.
    """
    try:
        read = read_url(url)
    except NotWebUrl as problem:
        raise NotOutside(problem.sentence) from None
    if _is_local(read):
        if loopback_allowed(public_url):
            return read
        raise NotOutside("The host is this machine.")
    if read.scheme != "https":
        raise NotOutside("It must begin with https://.")
    _check_host(read.host)
    return read


def place(url: str) -> str:
    """Host and port of an address that was checked: where it leads, without what may be a token."""
    read = read_url(url)
    return read.host if read.port is None else f"{read.host}:{read.port}"


def loopback_allowed(public_url: str) -> bool:
    """Say whether this deployment is itself reached on loopback, so that others may be there too."""
    try:
        return _is_local(read_url(public_url))
    except NotWebUrl:
        return False


def _check_host(host: str) -> None:
    if _is_address(host):
        if addresses.refusal(host.strip("[]")) is not None:
            raise NotOutside("The host is a private or loopback address, or one of a cloud's own services.")
    elif "." not in host or host.endswith(tuple(f".{end}" for end in _INSIDE)):
        raise NotOutside("The host is a name that resolves only inside a private network.")


def _is_local(url: WebUrl) -> bool:
    if _is_address(url.host):
        return addresses.refusal(url.host.strip("[]")) == "loopback"
    return url.is_local


def _is_address(host: str) -> bool:
    # What ends in digits was read as an address already, in its one short form.
    return host.startswith("[") or host.rpartition(".")[2].isdigit()
