"""The permitted targets of webhooks, as far as an address alone tells."""

from custody.kit import outside_urls
from custody.kit.errors import Invalid


class BadWebhookUrl(Invalid):
    """The webhook URL must be https and public, without user, password or fragment."""


def check(url: str, *, public_url: str) -> str:
    """The address as it is kept, or BadWebhookUrl."""
    try:
        outside_urls.check(url, public_url=public_url)
    except outside_urls.NotOutside as problem:
        raise BadWebhookUrl(f"url: {problem.sentence}", fields=["url"]) from None
    return url
