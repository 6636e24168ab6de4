"""A theme: nothing in it can be code, lead elsewhere, or end the declaration it is put into."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.identity.theme import InvalidTheme, PolicyTemplate, SecretRoutePreset, Theme, check
from tests.fixtures.each import each


def theme(**fields) -> Theme:
    return check(msgspec.json.decode(msgspec.json.encode(fields), type=Theme))


def test_a_full_theme_comes_back_as_it_was_sent() -> None:
    document = {
        "primaryColor": "#A0b1C2",
        "accentColor": "#000000",
        "backgroundColor": "#ffffff",
        "surfaceColor": "#123456",
        "textColor": "#654321",
        "colorScheme": "system",
        "borderRadius": 32,
        "fontFamily": "Inter, 'Open Sans', sans-serif",
        "logoUrl": "https://cdn.example.com/a/logo.png",
        "faviconUrl": "https://cdn.example.com/favicon.ico",
    }

    assert msgspec.to_builtins(theme(**document)) == document


def test_an_empty_address_clears_the_saved_one() -> None:
    assert theme(logoUrl="", faviconUrl="") == Theme()


@each(
    ("field", "value"),
    [
        ("primaryColor", "#fff"),
        ("primaryColor", "red"),
        ("primaryColor", "123456"),
        ("primaryColor", "#12345g"),
        ("textColor", "#123456\n"),
        ("textColor", "#1234567"),
        ("textColor", ""),
        ("colorScheme", "blue"),
        ("borderRadius", -1),
        ("borderRadius", 33),
        ("borderRadius", "4"),
        ("borderRadius", 1.5),
        ("fontFamily", ""),
        ("fontFamily", "a" * 201),
        ("logoUrl", "https://a.com/" + "a" * 2048 + ".png"),
        ("unknown", 1),
        ("primary_color", "#000000"),
    ],
)
def test_a_value_of_another_shape_does_not_decode(field: str, value: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        theme(**{field: value})


@each(
    "family",
    [
        "Inter",
        "system-ui",
        "-apple-system, BlinkMacSystemFont",
        '"Segoe UI",Roboto',
        "'Exo 2' , serif",
        "Open Sans",
        "_x",
    ],
)
def test_names_of_fonts_pass(family: str) -> None:
    assert theme(fontFamily=family).font_family == family


@each(
    "family",
    [
        "a;b",
        "a}b",
        "a{",
        "url(x)",
        "a/*",
        "a\\9",
        "a@b",
        "<a>",
        "'a",
        "a'",
        "\"a'",
        "'a'b",
        "a,,b",
        ",a",
        "a,",
        " ",
        "a\nb",
        "a\tb",
        "\u00e4",
        "1a",
        "a:b",
        "expression(1)",
        "a!important",
        "var(--x)",
        "a\n",
        "'a\n'",
        '""',
    ],
)
def test_a_value_that_could_escape_its_css_declaration_is_refused(family: str) -> None:
    with pytest.raises(InvalidTheme, match="fontFamily") as refused:
        theme(fontFamily=family)

    assert refused.value.context == {"fields": ["fontFamily"]}


@given(st.text("ab1 ,'\"-_;:{}()/*\\<\n", max_size=20).filter(bool))
def test_a_font_family_that_passes_has_closed_quotes_and_no_other_sign(family: str) -> None:
    try:
        theme(fontFamily=family)
    except InvalidTheme:
        return
    assert set(family) <= set("ab1 ,'\"-_")
    assert family.count("'") % 2 == family.count('"') % 2 == 0


@each(
    "base",
    [
        "https://cdn.example.com/x",
        "http://localhost/x",
        "http://localhost:3000/x",
        "http://127.0.0.1:80/x",
        "http://a.b.localhost/x",
    ],
)
def test_pictures_come_over_https_or_from_this_machine(base: str) -> None:
    theme(logoUrl=base + ".png", faviconUrl=base + ".ico")
    theme(logoUrl=base + ".PNG", faviconUrl=base + ".png")


@each("field", ["logoUrl", "faviconUrl"])
@each(
    "url",
    [
        "javascript:alert(1)//x.png",
        "data:image/png;base64,x.png",
        "blob:https://a.com/x.png",
        "file:///x.png",
        "/x.png",
        "x.png",
        "//a.com/x.png",
        "http://a.com/x.png",
        "http://localhost.a.com/x.png",
        "http://127.0.0.2/x.png",
        "http://[::1]/x.png",
        "https://u@a.com/x.png",
        "https://u:p@a.com/x.png",
        "https://a.com/x.svg",
        "https://a.com/x",
        "https://a.com/x.png/y",
        "https://a.com/x?y=.png",
        "https://a.com/x#.png",
        "https://a.com/x.png?v=1",
        "https://a.com/x.png#f",
        "https://a.com",
        "https://a.png",
        "https://a.com/x.png\n",
        " https://a.com/x.png",
        "https://a.com\\x.png",
        'https://a.com/"x.png',
        "HTTPS://a.com/x.png",
        "https://*.a.com/x.png",
    ],
)
def test_no_other_picture_is_taken(field: str, url: str) -> None:
    with pytest.raises(InvalidTheme, match=field):
        theme(**{field: url})


def test_a_logo_is_no_icon() -> None:
    with pytest.raises(InvalidTheme, match=r"logoUrl: The address must end in \.png\."):
        theme(logoUrl="https://a.com/x.ico")


TEMPLATE = {
    "id": "careful",
    "name": "Careful",
    "description": "Little a day.",
    "icon": "shield",
    "policies": [{"id": None, "type": "spending-limit", "enabled": True, "config": {"maxPerDay": "1"}}],
    "customizableFields": [
        {
            "path": "policies[0].config.maxPerDay",
            "label": "A day",
            "description": "",
            "type": "amount",
            "default": "1",
            "min": "0",
            "max": 5,
        },
    ],
}
PRESET = {
    "id": "openai",
    "name": "OpenAI",
    "hostPattern": "api.openai.com",
    "pathPattern": "/*",
    "injectAs": "header",
    "injectKey": "authorization",
    "injectFormat": "Bearer {value}",
    "provisioning": "platform",
    "platformSecretId": "5b0f4bd0-0000-4000-8000-000000000000",
}


@each(("document", "kind"), [(TEMPLATE, PolicyTemplate), (PRESET, SecretRoutePreset)])
def test_templates_and_presets_come_back_as_they_were_sent(document, kind) -> None:
    assert msgspec.json.decode(msgspec.json.encode(msgspec.convert(document, kind))) == document


@each(
    ("kind", "document", "change"),
    [
        (PolicyTemplate, TEMPLATE, {"id": "a b"}),
        (PolicyTemplate, TEMPLATE, {"name": "a" * 201}),
        (PolicyTemplate, TEMPLATE, {"policies": [TEMPLATE["policies"][0]] * 51}),
        (PolicyTemplate, TEMPLATE, {"extra": 1}),
        (PolicyTemplate, TEMPLATE, {"description": "a" * 1001}),
        (PolicyTemplate, TEMPLATE, {"customizableFields": [{"path": "a b"}]}),
        (SecretRoutePreset, PRESET, {"provisioning": "nobody"}),
        (SecretRoutePreset, PRESET, {"injectAs": "cookie"}),
        (SecretRoutePreset, PRESET, {"hostPattern": "a" * 261}),
        (SecretRoutePreset, PRESET, {"platformSecretId": "x"}),
        (SecretRoutePreset, PRESET, {"injectKey": "a\nb"}),
        (SecretRoutePreset, PRESET, {"injectFormat": "{value}\n"}),
    ],
)
def test_templates_and_presets_have_bounds(kind, document, change) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**document, **change}, kind)
