"""The pages on which people sign in, as documents: what they are made of and what guards them."""

import re

import pytest

from tests.fixtures.callers import Client

ASSETS = {
    "/sign-in/page.css": "text/css; charset=utf-8",
    "/sign-in/sign-in.js": "text/javascript; charset=utf-8",
    "/sign-in/checksum.js": "text/javascript; charset=utf-8",
    "/device/page.js": "text/javascript; charset=utf-8",
    "/invitation/page.js": "text/javascript; charset=utf-8",
    "/approve/page.css": "text/css; charset=utf-8",
    "/approve/page.js": "text/javascript; charset=utf-8",
    "/approve/drawing.js": "text/javascript; charset=utf-8",
    "/approve/own-reading.js": "text/javascript; charset=utf-8",
    "/approve/worker.js": "text/javascript; charset=utf-8",
    "/approve/app.webmanifest": "application/manifest+json",
    "/approve/icon-180.png": "image/png",
    "/approve/icon-192.png": "image/png",
    "/approve/icon-512.png": "image/png",
}
PAGES = ("/device", "/invitation", "/approve")
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
WITH_A_WORKER = {"trusted-types": "custody-worker", "manifest-src": "'self'"}


@pytest.mark.parametrize(("path", "kind"), [*((page, "text/html; charset=utf-8") for page in PAGES), *ASSETS.items()])
def test_the_page_and_its_parts_are_guarded(as_nobody: Client, path: str, kind: str) -> None:
    answer = as_nobody.get(path)

    headers = answer.headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert (answer.status_code, headers["Content-Type"]) == (200, kind)
    assert policy == POLICY | (WITH_A_WORKER if path == "/approve" else {})
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Permissions-Policy"] == "publickey-credentials-get=(self)"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in headers
    assert headers["X-Request-Id"]


@pytest.mark.parametrize("path", PAGES)
def test_the_page_has_nothing_inline_and_nothing_from_elsewhere(as_nobody: Client, path: str) -> None:
    page = as_nobody.get(path).text

    assert re.findall(r"<script\b[^>]*>[^<]", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:|https?:|//", page) == []
    assert "{{" not in page
    assert {f"/{path}" for path in re.findall(r'(?:src|href)="([^"]*)"', page)} <= set(ASSETS)


@pytest.mark.parametrize("path", [*PAGES, *ASSETS])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_wrong_method_is_refused_with_the_envelope(as_nobody: Client, path: str, method: str) -> None:
    answer = as_nobody.request(method, path)

    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert answer.json()["data"]["code"] == "wrong_method"


@pytest.mark.parametrize(
    "path",
    ["/device/", "/device/page.html", "/device/%252e%252e", "/device/nothing.js", "/sign-in/", "/sign-in/made.html"],
)
def test_there_is_nothing_else_below(as_nobody: Client, path: str) -> None:
    assert as_nobody.get(path).status_code == 404


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("BCDF-GH34", "BCDF-GH34"),
        ('"><script>alert(1)</script>', "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("' onfocus='x", "&#x27; onfocus=&#x27;x"),
        ("{{user_code}}", "{{user_code}}"),
        ("x" * 1000, "x" * 32),
    ],
)
def test_a_code_in_the_address_fills_the_first_field_as_text(as_nobody: Client, given: str, shown: str) -> None:
    page = as_nobody.get("/device", params={"user_code": given}).text

    assert f'class="code" value="{shown}" maxlength' in page
    assert page.count("<script") == 1


def test_the_contract_lists_the_page_as_html(as_nobody: Client) -> None:
    paths = as_nobody.get("/openapi.json").json()["paths"]

    assert set(paths["/device"]["get"]["responses"]["200"]["content"]) == {"text/html"}
    headers = [one["name"] for one in paths["/auth/device/token"]["post"]["parameters"] if one["in"] == "header"]
    assert headers == ["X-Service-Native-Bundle-Id", "X-Service-Native-Package-Name"]
