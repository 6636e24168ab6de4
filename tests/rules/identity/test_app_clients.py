"""App clients: exact addresses, exact applications, nothing that stands for several."""

from itertools import islice

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.identity.app_clients import AppClient, InvalidAppClient, check
from tests.fixtures.each import each

GOOD_ANYWHERE = [
    "https://app.example.com",
    "https://app.example.com:8443",
    "https://localhost",
    "https://a.localhost:3000",
    "http://localhost",
    "http://localhost:3000",
    "http://app.localhost:3000",
    "http://127.0.0.1:8080",
    "http://[::1]:8080",
    "https://203.0.113.7",
    "https://[2001:db8::1]",
    "https://xn--bcher-kva.example",
    "https://a",
]
BAD_ANYWHERE = [
    "",
    "*",
    "https://*",
    "https://*.example.com",
    "https://app-*.example.com",
    "https://example.com:*",
    "app.example.com",
    "//app.example.com",
    "/cb",
    "http://app.example.com",
    "http://203.0.113.7",
    "http://localhost.evil.com",
    "http://evil-localhost",
    "http://127.0.0.1.evil.com",
    "http://0.0.0.0",
    "http://128.0.0.1",
    "HTTPS://a.com",
    "https://A.com",
    "https://a.com#f",
    "https://a.com#",
    "https://u@a.com",
    "https://u:p@a.com",
    "https://:p@a.com",
    "https://a.com\\@b.com",
    "https://",
    "https://:443",
    "https://a.com:",
    "https://a.com:0",
    "https://a.com:65536",
    "https://a.com:080",
    "https://a.com:80:80",
    "https://a..com",
    "https://a.com.",
    "https://.a.com",
    "https://-a.com",
    "https://a_b.com",
    "https://a b.com",
    " https://a.com",
    "https://a.com ",
    "https://a.com\n",
    "https://a.com\t",
    "https://a.com\x00",
    "https://b\u00fccher.example",
    "https://ex\u0430mple.com",
    "https://1",
    "https://127.1",
    "https://0x7f.0.0.1",
    "https://2130706433",
    "https://127.0.0.01",
    "https://[::1",
    "https://::1",
    "https://[1.2.3.4]",
    "https://[0:0:0:0:0:0:0:1]",
    "https://[fe80::1%25en0]",
    "https://%61.com",
    "https://a.com%00",
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc",
    "myapp://callback",
    "ftp://a.com",
    "https:a.com",
    "https:/a.com",
    "https:\\\\a.com",
    "blob:https://a.com",
    "null",
    "https://" + "a" * 64 + ".com",
    "https://" + "a." * 150 + "com",
    "https://[::1]evil.com",
    "https://a.com[::1]",
]


def client(**fields) -> AppClient:
    document = {"id": "web", "name": "Web", **fields}
    return check(msgspec.json.decode(msgspec.json.encode(document), type=AppClient))


@each("url", GOOD_ANYWHERE)
def test_an_exact_address_is_an_origin_and_a_redirect_url(url: str) -> None:
    found = client(allowedOrigins=[url], allowedRedirectUrls=[url, url + "/callback"])

    assert found.allowed_origins == (url,)
    assert url in found.allowed_redirect_urls


@each("field", ["allowedOrigins", "allowedRedirectUrls"])
@each("url", BAD_ANYWHERE)
def test_a_url_that_is_not_exact_is_refused(field: str, url: str) -> None:
    with pytest.raises(InvalidAppClient, match=rf"{field}\[1\]") as refused:
        client(**{field: ["https://good.example", url]})

    assert refused.value.context == {"fields": [field]}


@each(
    "url",
    [
        "https://a.com/",
        "https://a.com/x",
        "https://a.com?x",
        "https://a.com?",
        "https://a.com:443",
        "http://localhost:80",
    ],
)
def test_an_origin_that_no_browser_sends_is_refused(url: str) -> None:
    with pytest.raises(InvalidAppClient, match="allowedOrigins"):
        client(allowedOrigins=[url])


@each(
    "url",
    ["https://a.com/cb?x=%20y&z=@me", "https://a.com:443/", "http://localhost:3000/a/b;c=1", "https://a.com/~x//y"],
)
def test_a_redirect_url_may_have_a_path_and_a_query(url: str) -> None:
    assert url in client(allowedRedirectUrls=[url]).allowed_redirect_urls


@each("url", ["https://a.com/*", "https://a.com/cb?x=*", "https://a.com/cb#x", "https://a.com/<x>", "https://a.com/%2"])
def test_a_redirect_url_stands_for_itself_alone(url: str) -> None:
    with pytest.raises(InvalidAppClient, match=r"allowedRedirectUrls\[0\]"):
        client(allowedRedirectUrls=[url])


@given(st.text("ab.*:/@?#[]%-19\\", max_size=16))
def test_an_accepted_redirect_url_has_no_wildcard_or_user_and_is_local_or_https(rest: str) -> None:
    for scheme in ("https", "http"):
        url = f"{scheme}://{rest}"
        try:
            client(allowedRedirectUrls=[url])
        except InvalidAppClient:
            continue
        assert scheme == "https" or rest.startswith(("127.0.0.1", "[::1]", "localhost"))
        assert "*" not in url
        assert "#" not in url
        assert "\\" not in url
        assert "@" not in rest.split("/", maxsplit=1)[0].split("?", maxsplit=1)[0]


@each(
    ("field", "entry"),
    [
        ("allowedBundleIds", "app"),
        ("allowedBundleIds", "com.*"),
        ("allowedBundleIds", "com.my_app"),
        ("allowedPackageNames", "app"),
        ("allowedPackageNames", "com.*"),
        ("allowedPackageNames", "com.my-app"),
    ],
)
def test_native_ids_are_checked_and_the_value_is_named(field: str, entry: str) -> None:
    with pytest.raises(InvalidAppClient, match=field) as refused:
        client(**{field: [entry]})

    assert f"({entry})" in refused.value.message


@each(
    ("field", "entry"),
    [
        ("allowedOrigins", "https://a.com"),
        ("allowedRedirectUrls", "https://a.com/cb"),
        ("allowedBundleIds", "com.example.app"),
        ("allowedPackageNames", "com.example.app"),
    ],
)
def test_nothing_is_listed_twice(field: str, entry: str) -> None:
    with pytest.raises(InvalidAppClient, match=rf"{field}\[1\] .*twice"):
        client(**{field: [entry, entry]})


def test_every_wrong_field_is_named_at_once() -> None:
    with pytest.raises(InvalidAppClient) as refused:
        client(allowedOrigins=["x"], allowedRedirectUrls=["y"], allowedBundleIds=["a.b"], allowedPackageNames=["z"])

    assert refused.value.context == {"fields": ["allowedOrigins", "allowedRedirectUrls", "allowedPackageNames"]}


@each("url", ["https://me:hunter2@a.com/cb", "https:\\\\me:hunter2@a.com", "https://me:hunter2@" + "a" * 2000])
def test_a_password_in_an_address_is_not_repeated(url: str) -> None:
    with pytest.raises(InvalidAppClient) as refused:
        client(allowedRedirectUrls=[url])

    assert "hunter2" not in refused.value.message


@each(
    "fields",
    [
        {"id": "ab"},
        {"id": "a" * 65},
        {"id": "Web"},
        {"id": "-web"},
        {"id": "web\n"},
        {"id": "web/x"},
        {"name": ""},
        {"name": "a\nb"},
        {"environment": ""},
        {"environment": "Prod"},
        {"environment": "prod\n"},
        {"enabled": "yes"},
        {"unknown": 1},
        {"allowed_origins": []},
        {"loginMethods": {"oauth": {"googel": False}}},
        {"loginMethods": {"oauth": {"google": "no"}}},
        {"loginMethods": {"email": True}},
        {"loginMethods": None},
        {"allowedOrigins": [f"https://a.com:{port}" for port in range(1, 52)]},
        {"allowedRedirectUrls": ["https://a.com/" + "a" * 2048]},
    ],
)
def test_a_value_of_another_shape_does_not_decode(fields) -> None:
    with pytest.raises(msgspec.ValidationError):
        client(**fields)


def test_a_client_comes_back_as_it_was_sent() -> None:
    document = {
        "id": "web_1",
        "name": "Web",
        "environment": "preview",
        "enabled": False,
        "isDefault": True,
        "allowedOrigins": ["https://a.com"],
        "allowedRedirectUrls": ["https://a.com/cb"],
        "allowedBundleIds": ["com.a.b"],
        "allowedPackageNames": ["com.a.b"],
        "loginMethods": {"oauth": {"google": True, "discord": False}},
        "allowRegistration": True,
        "maxRegistered": 5,
    }

    assert msgspec.json.decode(msgspec.json.encode(client(**document))) == document


def test_fifty_entries_are_enough() -> None:
    origins = [f"https://a{number}.com" for number in range(51)]

    assert len(client(allowedOrigins=list(islice(origins, 50))).allowed_origins) == 50
    with pytest.raises(InvalidAppClient, match="at most 50"):
        check(AppClient(id="web", name="Web", allowed_origins=tuple(origins)))
