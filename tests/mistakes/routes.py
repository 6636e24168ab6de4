"""Options of a route that must not pass."""

from api.http.endpoint import Routes
from api.http.who import public

routes = Routes("/mistakes", tag="Mistakes")

routes.get("", who=public, privat=True)  # type: ignore[call-arg]
routes.get("", who=public, private="no")  # type: ignore[arg-type]
routes.get("", who="public")  # type: ignore[arg-type]
routes.get("")  # type: ignore[call-arg]
