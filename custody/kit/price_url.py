"""The address of the operator's endpoint that issues prices."""

from collections.abc import Mapping
from typing import Final

from custody.kit import environment as read
from custody.kit.environment import BadSetting
from custody.kit.outside_urls import loopback_allowed
from custody.kit.web_urls import NotWebUrl, read_url

VARIABLE: Final = "SERVICE_PRICES_URL"


def load(environment: Mapping[str, str]) -> str | None:
    """Read it; None where there is none. Its value is never repeated, for it may carry a password."""
    url = environment.get(VARIABLE, "").strip()
    if not url:
        return None
    try:
        found = read_url(url)
    except NotWebUrl as problem:
        raise BadSetting(VARIABLE, f"is no address that prices can come from: {problem.sentence}") from None
    if found.scheme != "https" and not loopback_allowed(read.public_url(environment)):
        raise BadSetting(VARIABLE, "must begin with https:// where SERVICE_PUBLIC_URL is not on loopback")
    return url
