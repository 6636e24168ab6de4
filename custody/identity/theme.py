"""What a tenant's users see: its theme, policy templates, presets of credential routes. Spec 2/2.2, decisions 9.

A theme ends up in the style sheet and the page of a stranger's browser, so each value is one that can be nothing else.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from custody.identity.web_urls import NotWebUrl, WebUrl, read_url
from custody.kit.errors import Invalid
from custody.kit.shapes import DecimalAmount, DisplayName, Uuid

Colour = Annotated[str, Meta(min_length=7, max_length=7, pattern=r"^#[0-9a-fA-F]{6}\Z")]
ItemId = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_\-.:]+\Z")]
Line = Annotated[str, Meta(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*\Z")]
Paragraph = Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*\Z")]
# `config.maxPerDay`, `config.allowedHours[0].start`
FieldPath = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.\[\]]+\Z")]
Word = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9-]*\Z")]
HostText = Annotated[str, Meta(min_length=1, max_length=260, pattern=r"^[\x21-\x7e]+\Z")]
KeyText = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[\x20-\x7e]+\Z")]
Printable = Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"^[\x20-\x7e]+\Z")]

_LOGO: Final = (".png",)
_FAVICON: Final = (".ico", ".png")
_LOCAL: Final = "It must begin with https://; http:// is only for localhost, *.localhost and 127.0.0.1."
# One family: a word or several, or the same in quotes. Nothing in it can end a declaration or begin a comment.
_FAMILY = re.compile(r"(?:[A-Za-z_-][A-Za-z0-9_-]*(?: [A-Za-z0-9_-]+)*|\"[A-Za-z0-9 _.-]+\"|'[A-Za-z0-9 _.-]+')\Z")


class InvalidTheme(Invalid):
    """The theme is not valid."""


class Theme(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True, omit_defaults=True):
    """Colours, shape and pictures; what is None is for the page to choose."""

    primary_color: Colour | None = None
    accent_color: Colour | None = None
    background_color: Colour | None = None
    surface_color: Colour | None = None
    text_color: Colour | None = None
    color_scheme: Literal["light", "dark", "system"] | None = None
    border_radius: Annotated[int, Meta(ge=0, le=32)] | None = None
    font_family: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    logo_url: Annotated[str, Meta(max_length=2048)] | None = None
    favicon_url: Annotated[str, Meta(max_length=2048)] | None = None


class TemplateRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A policy rule of a template; judged like any other rule when somebody applies it."""

    id: ItemId | None = None
    type: Word
    enabled: bool = True
    config: dict[str, Any] = {}


class CustomizableField(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A place in a template's rules that a person fills in, and between which bounds."""

    path: FieldPath
    label: DisplayName
    description: Paragraph = ""
    type: Word
    default: (
        bool | int | float | Line | Annotated[tuple[bool | int | float | Line, ...], Meta(max_length=100)] | None
    ) = None
    min: int | float | DecimalAmount | None = None
    max: int | float | DecimalAmount | None = None


class PolicyTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Rules to begin with, put in place by one click."""

    id: ItemId
    name: DisplayName
    description: Paragraph = ""
    icon: Line = ""
    policies: Annotated[tuple[TemplateRule, ...], Meta(max_length=50)] = ()
    customizable_fields: Annotated[tuple[CustomizableField, ...], Meta(max_length=50)] = ()


class SecretRoutePreset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A credential route to begin with, and who brings the credential; checked as a route when one is made of it."""

    id: ItemId
    name: DisplayName
    host_pattern: HostText
    path_pattern: Printable = "/*"
    inject_as: Literal["header", "query", "body"]
    inject_key: KeyText
    inject_format: Printable = "{value}"
    provisioning: Literal["platform", "user"]
    platform_secret_id: Uuid | None = None


PolicyTemplates = Annotated[tuple[PolicyTemplate, ...], Meta(max_length=50)]
SecretRoutePresets = Annotated[tuple[SecretRoutePreset, ...], Meta(max_length=50)]


class _Complaint(Exception):
    """A sentence about one field."""


def check(theme: Theme) -> Theme:
    """The theme as it is stored, or InvalidTheme naming each field that is wrong and why.

    An empty address clears the saved one, and is stored as none.
    """
    complaints: dict[str, str] = {}

    def read(name: str, text: str | None, reader: Callable[[str], None]) -> None:
        try:
            if text:
                reader(text)
        except _Complaint as problem:
            complaints[name] = str(problem)

    read("fontFamily", theme.font_family, _check_font_family)
    read("logoUrl", theme.logo_url, lambda text: _check_picture(text, _LOGO))
    read("faviconUrl", theme.favicon_url, lambda text: _check_picture(text, _FAVICON))
    if complaints:
        message = " ".join(f"{name}: {sentence}" for name, sentence in complaints.items())
        raise InvalidTheme(message, fields=list(complaints))
    return msgspec.structs.replace(theme, logo_url=theme.logo_url or None, favicon_url=theme.favicon_url or None)


def _check_font_family(text: str) -> None:
    if not all(_FAMILY.match(family.strip(" ")) for family in text.split(",")):
        raise _Complaint("Write names of fonts with commas between them; quotes only around a whole name.")


def _check_picture(text: str, endings: tuple[str, ...]) -> None:
    try:
        url = read_url(text)
    except NotWebUrl as problem:
        raise _Complaint(problem.sentence) from None
    if url.scheme == "http" and not _is_local(url):
        raise _Complaint(_LOCAL)
    if url.query is not None or not url.path.lower().endswith(endings):
        raise _Complaint(f"The address must end in {' or '.join(endings)}.")


def _is_local(url: WebUrl) -> bool:
    return url.is_local and not url.host.startswith("[")
