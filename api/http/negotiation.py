"""The form of an answer that a caller prefers, where a route has several: `format` says it, else the header Accept."""

from api.http.endpoint import Endpoint

# What a route's `format` calls each media type.
FORMATS = {"application/json": "json", "text/csv": "csv", "application/x-ndjson": "ndjson"}


def preference(endpoint: Endpoint, accept: str) -> str | None:
    """The format that Accept names, or None where it leaves the choice to the route, or knows none of its forms."""
    if endpoint.media_too is None or not accept:
        return None
    usual = endpoint.media or "application/json"
    wanted = dict(_parse(part) for part in accept.split(","))

    def weight(media: str) -> float:
        return wanted.get(media, wanted.get(f"{media.partition('/')[0]}/*", wanted.get("*/*", 0.0)))

    # What the route gives of itself wins where a caller likes both alike.
    return FORMATS[endpoint.media_too] if weight(endpoint.media_too) > weight(usual) else None


def _parse(part: str) -> tuple[str, float]:
    media, *parameters = (piece.strip().lower() for piece in part.split(";"))
    weight = next((one.removeprefix("q=") for one in parameters if one.startswith("q=")), "1")
    try:
        return media, min(max(float(weight), 0.0), 1.0)
    except ValueError:
        return media, 1.0
