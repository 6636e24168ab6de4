"""Calls that must not pass in a test, though nothing of it but its calls is looked at."""
# mypy: warn-unused-ignores

from api.http.endpoint import Routes
from custody.kit.addresses import refusal


def test_what_nobody_annotated_is_read(found):
    routes = Routes("/mistakes")  # type: ignore[call-arg]
    routes.get("", who=found, privat=True)  # type: ignore[call-arg]
    refusal()  # type: ignore[call-arg]
    # What a test gives may be of any type: it is often meant to be wrong.
    return refusal(7) + len(found.other)
