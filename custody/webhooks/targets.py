"""Where a webhook may go, as far as its address alone tells.

What a name resolves to is looked at with each delivery, for it may change; here is refused what is wrong in any case.
"""

from custody.identity.web_urls import NotWebUrl, WebUrl, read_url
from custody.kit import addresses
from custody.kit.errors import Invalid

# Below these, names mean something inside one network only.
_INSIDE = ("local", "internal", "localdomain", "lan", "home.arpa")
_ADDRESS_REFUSED = "The host is a private or loopback address, or one of a cloud's own services."


class BadWebhookUrl(Invalid):
    """The webhook URL must be https and public, without user, password or fragment."""


def check(url: str, *, public_url: str) -> str:
    """The address as it is kept, or BadWebhookUrl; it is never repeated, for it may carry a password.

    This very machine, by https or http, is a target only where the service itself is reached on loopback.
    """
    try:
        read = read_url(url)
    except NotWebUrl as problem:
        raise _refused(problem.sentence) from None
    local = _is_local(read)
    if local and loopback_allowed(public_url):
        return url
    if local:
        raise _refused("The host is this machine.")
    if read.scheme != "https":
        raise _refused("It must begin with https://.")
    _check_host(read.host)
    return url


def place(url: str) -> str:
    """Host and port of an address that was checked: where it leads, without what may be a token."""
    read = read_url(url)
    return read.host if read.port is None else f"{read.host}:{read.port}"


def loopback_allowed(public_url: str) -> bool:
    """Whether this deployment is itself reached on loopback, so that its receivers may be there too."""
    try:
        return _is_local(read_url(public_url))
    except NotWebUrl:
        return False


def _check_host(host: str) -> None:
    if _is_address(host):
        if addresses.refusal(host.strip("[]")) is not None:
            raise _refused(_ADDRESS_REFUSED)
    elif "." not in host or host.endswith(tuple(f".{end}" for end in _INSIDE)):
        raise _refused("The host is a name that resolves only inside a private network.")


def _is_local(url: WebUrl) -> bool:
    if _is_address(url.host):
        return addresses.refusal(url.host.strip("[]")) == "loopback"
    return url.is_local


def _is_address(host: str) -> bool:
    # What ends in digits was read as an address already, in its one short form.
    return host.startswith("[") or host.rpartition(".")[2].isdigit()


def _refused(sentence: str) -> BadWebhookUrl:
    return BadWebhookUrl(f"url: {sentence}", fields=["url"])
