"""The part that a tenant's users see: its theme, policy templates, presets of credential routes.

A theme ends up in the style sheet and the page of a stranger's browser, so each value is one that can be nothing else.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from custody.kit.described import described
from custody.kit.errors import Invalid
from custody.kit.shapes import DecimalAmount, DisplayName, Uuid
from custody.kit.web_urls import NotWebUrl, WebUrl, read_url

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
    """Colours, shape and pictures; the page chooses those that are null."""

    primary_color: Annotated[Colour | None, described("The main colour.")] = None
    accent_color: Annotated[Colour | None, described("The colour of accents.")] = None
    background_color: Annotated[Colour | None, described("The colour of the page.")] = None
    surface_color: Annotated[Colour | None, described("The colour of what lies on the page.")] = None
    text_color: Annotated[Colour | None, described("The colour of text.")] = None
    color_scheme: Annotated[
        Literal["light", "dark", "system"] | None, described("Light, dark, or as the person's system has it.")
    ] = None
    border_radius: Annotated[
        Annotated[int, Meta(ge=0, le=32)] | None, described("The radius of corners, in pixels.")
    ] = None
    font_family: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None, described("Names of fonts, with commas between.")
    ] = None
    logo_url: Annotated[Annotated[str, Meta(max_length=2048)] | None, described("The address of the logo.")] = None
    favicon_url: Annotated[Annotated[str, Meta(max_length=2048)] | None, described("The address of the icon.")] = None


class TemplateRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A policy rule of a template; evaluated like any other rule once applied."""

    id: Annotated[ItemId | None, described("The rule's id.")] = None
    type: Annotated[Word, described("The type of rule.")]
    enabled: Annotated[bool, described("True if the rule is evaluated.")] = True
    config: Annotated[dict[str, Any], described("Settings of the rule; the fields depend on `type`.")] = {}


class CustomizableField(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A field of a template that a person fills in, and its bounds."""

    path: Annotated[FieldPath, described("Path of the field in the template.")]
    label: Annotated[DisplayName, described("Its name for people.")]
    description: Annotated[Paragraph, described("Meaning of the field.")] = ""
    type: Annotated[Word, described("Type of the field's value.")]
    default: Annotated[
        bool | int | float | Line | Annotated[tuple[bool | int | float | Line, ...], Meta(max_length=100)] | None,
        described("Value until somebody fills it in."),
    ] = None
    min: Annotated[int | float | DecimalAmount | None, described("The least that may be filled in.")] = None
    max: Annotated[int | float | DecimalAmount | None, described("The most that may be filled in.")] = None


class PolicyTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A policy template: rules to start with."""

    id: Annotated[ItemId, described("The template's id.")]
    name: Annotated[DisplayName, described("A name for people.")]
    description: Annotated[Paragraph, described("Purpose of the template.")] = ""
    icon: Annotated[Line, described("A name or character to show.")] = ""
    policies: Annotated[tuple[TemplateRule, ...], Meta(max_length=50), described("The rules.")] = ()
    customizable_fields: Annotated[
        tuple[CustomizableField, ...], Meta(max_length=50), described("Fields that a person fills in.")
    ] = ()


class SecretRoutePreset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A template of a credential route, and where the credential comes from; checked when applied."""

    id: Annotated[ItemId, described("The preset's id.")]
    name: Annotated[DisplayName, described("A name for people.")]
    host_pattern: Annotated[HostText, described("The hosts.")]
    path_pattern: Annotated[Printable, described("The paths.")] = "/*"
    inject_as: Annotated[Literal["header", "query", "body"], described("Place of the credential in the request.")]
    inject_key: Annotated[KeyText, described("The name of the header, parameter or field.")]
    inject_format: Annotated[Printable, described("The inserted text, with `{value}` in it.")] = "{value}"
    provisioning: Annotated[Literal["platform", "user"], described("Party that brings the credential.")]
    platform_secret_id: Annotated[Uuid | None, described("The secret, where the platform brings it.")] = None


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
