"""The programs of the pages on sign-on, run against the service: an administrator's, and a client's."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from tests.fixtures.eventually import eventually
from tests.fixtures.pages import Reader, only, programs_of
from tests.fixtures.people import Person
from tests.fixtures.saml_sign_on import SamlFlow, SamlTenant
from tests.fixtures.server import Service, free_ports
from tests.fixtures.sign_on import redirect_params, verified_domain
from tests.outside import loopback
from tests.outside.dns_server import DnsServer
from tests.outside.oidc_server import running_oidc_server
from tests.outside.saml_answers import key
from tests.routes.tenants.domains import fresh_domain

SET_UP, CLIENTS = "docs/sign-on.md", "docs/web-applications.md"


def test_every_program_of_the_pages_is_known_here() -> None:
    # The two at the end are for a Windows server.
    assert [language for language, _ in programs_of(SET_UP)] == ["sh"] * 6 + ["powershell"] * 2
    # The two for a page in a browser are read by people.
    assert [language for language, _ in programs_of(CLIENTS)] == ["js", "js", "python"]


def test_an_administrator_sets_sign_on_up_with_the_commands_of_the_page(
    tmp_path: Path, service: Service, as_owner: Person, dns_server: DnsServer
) -> None:
    reader = Reader(tmp_path, service, SESSION=as_owner.session["token"])
    (tmp_path / "idp.pem").write_text(key("rsa", "of the provider").certificate)
    domain = fresh_domain()
    prefix = as_owner.ok("GET", f"/tenants/{as_owner.tenant}/oidc-providers")["secretVariablePrefix"]
    with running_oidc_server() as issuer:
        places = {
            "https://custody.example.com": service.url,
            'https://idp.acme.example",': f'{issuer.issuer}",',
            "SERVICE_TENANT_OIDC_SECRET_ACME_": prefix,
            "/tenants/acme": f"/tenants/{as_owner.tenant}",
            "acme.example": domain,
        }
        begin, prove, show, saml, oidc, attempt = (here(block, places) for block in only(programs_of(SET_UP), "sh"))
        reader.paste(begin)
        add, verify = prove.splitlines()
        record = json.loads(reader.paste(add))
        dns_server.txt(record["name"], record["value"])

        assert reader.paste(verify) == '"verified"\n'
        assert f"/auth/saml/{as_owner.tenant}/acs" in reader.paste(show)
        assert json.loads(reader.paste(saml))["data"]["enabled"] is False
        assert json.loads(reader.paste(oidc))["data"]["providers"][0]["id"] == "main"
    assert reader.paste(attempt).startswith(f"http://localhost:{service.port}/auth/saml/{as_owner.tenant}/login?test=")


def here(block: str, places: dict[str, str]) -> str:
    for usual, place in places.items():
        block = block.replace(usual, place)
    return block


@pytest.fixture
def saml(service: Service, as_owner: Person, dns_server: DnsServer) -> SamlTenant:
    """A tenant whose people sign in by SAML."""
    made = SamlTenant(service, as_owner, verified_domain(as_owner, dns_server))
    assert made.put().is_success
    return made


def test_a_program_signs_somebody_in_with_a_browser_beside_it(tmp_path: Path, saml: SamlTenant) -> None:
    """The browser is the test: it takes the address that the program opens, and answers as the provider does."""
    [program] = only(programs_of(CLIENTS), "python")
    [port] = free_ports(1)
    redirect = f"http://127.0.0.1:{port}/signed-in"
    saml.owner.ok("POST", f"/tenants/{saml.tenant}/app-clients", default_client(redirect))
    usual = {"8765": str(port), "/saml/acme/": f"/saml/{saml.tenant}/"}
    program = here(program, {"https://custody.example.com": f"http://localhost:{saml.service.port}", **usual})
    opened, mark = tmp_path / "opened", tmp_path / "browser"
    mark.write_text(f'#!/bin/sh\nprintf %s "$1" > "{opened}.new" && mv "{opened}.new" "{opened}"\n')
    mark.chmod(0o700)

    running = subprocess.Popen(
        [sys.executable, "-c", program],
        env={"PATH": "/usr/bin:/bin", "BROWSER": f"{mark} %s"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        eventually(opened.exists)
        email = saml.address()
        back = sign_in_at_the_provider(saml, opened.read_text(), email)
        with loopback.client() as browser:
            assert browser.get(back).text == "You can close this window."
        ended, _ = running.communicate(timeout=60)
    finally:
        running.kill()
        running.wait()

    assert ended == f"{saml.tenant} {email}\n"


def default_client(redirect: str) -> dict[str, object]:
    return {"id": "program", "name": "A program", "isDefault": True, "allowedRedirectUrls": [redirect]}


def sign_in_at_the_provider(saml: SamlTenant, address: str, email: str) -> str:
    """Walk from the address that was opened to the one where the browser ends."""
    with closing(SamlFlow(saml, **dict(parse_qsl(urlsplit(address).query)))) as flow:
        answer: httpx.Response = flow.arrive(name_id=email)
    assert "code" in redirect_params(answer)
    return str(answer.headers["location"])
