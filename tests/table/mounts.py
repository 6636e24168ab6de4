"""Routes that stand at two places are one declaration and one handler: the costly laws are tried at one of them."""

from api.http.endpoint import Endpoint
from api.routes import endpoints


def each_once() -> list[Endpoint]:
    """Every declaration, where it stands first."""
    return list({endpoint.handler: endpoint for endpoint in reversed(endpoints())}.values())[::-1]


def is_list(endpoint: Endpoint) -> bool:
    """Say whether a route answers pages, other than as a file."""
    fields = getattr(endpoint.query, "__struct_fields__", ())
    return endpoint.method == "GET" and "limit" in fields and endpoint.media is None
