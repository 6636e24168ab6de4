"""The addresses that people may go to who sign in at a provider without naming a tenant."""

from collections.abc import Mapping
from typing import Final

from custody.kit.environment import BadSetting
from custody.kit.web_urls import NotWebUrl, read_url

NAME: Final = "SERVICE_LOGIN_REDIRECT_URLS"


def load(source: Mapping[str, str]) -> tuple[str, ...]:
    """Exact addresses, with commas between them."""
    found = tuple(filter(None, (part.strip() for part in source.get(NAME, "").split(","))))
    for address in found:
        try:
            read_url(address)
        except NotWebUrl as problem:
            raise BadSetting(NAME, f"an address cannot be used: {problem.sentence}") from None
    return found
