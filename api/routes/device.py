"""The page where a person lets a device in: HTML and no more, what it does it asks of other routes."""

import html
from typing import Annotated, Final

import msgspec

from api.http import pages, sign_in_pages
from api.http.endpoint import Routes
from api.http.who import public
from custody.kit.answer_kinds import Document
from custody.kit.described import described

routes = Routes("/device", tag="Devices")
_PAGE: Final = sign_in_pages.compose("device", "Step 2 of 3")
_SHOWN = 32
ASSETS: Final = pages.assets("/device", pages.FOLDER / "device")


class PageQuery(msgspec.Struct, frozen=True):
    """The code that the device put into the address; the person still has to compare it."""

    user_code: Annotated[str, described("The code that the device shows, to fill in the form.")] = ""


@routes.get("", who=public, private=True, media="text/html")
async def show_device_page(query: PageQuery) -> Document:
    """Show the page where a person signs in and approves or denies a device."""
    return Document(page(query.user_code), "text/html", pages.HEADERS)


def page(user_code: str) -> str:
    """The page with a code in its first field, as text whatever it is."""
    return _PAGE.replace("{{user_code}}", html.escape(user_code[:_SHOWN]))
