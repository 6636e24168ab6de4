"""SAML identity providers that others wrote, each as a process with a key of its own, all with the same handle.

A test tells one what to say about the person, and gets its answer to an authentication request as a browser gets it:
the address and the fields of a form. Nothing of the product is read here.
"""

import base64
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import httpx
import msgspec

from tests.outside import loopback, npm
from tests.outside.identity_providers.forms import form_in
from tests.outside.identity_providers.pairs import Algorithm, Pair, make_pair
from tests.outside.processes import running
from tests.outside.programs import XMLSEC, install

Kind = Literal["samlp", "samlify", "pysaml2"]
# The first two sign with RSA alone.
KINDS: tuple[Kind, ...] = ("samlp", "samlify", "pysaml2")
HERE = Path(__file__).parent
EMAIL_ADDRESS = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
TRANSIENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"


class Says(msgspec.Struct, frozen=True):
    """The provider's word about the person; `acs_url` and `audience` overrule the request."""

    name_id: str = "ann@people.test"
    name_id_format: str = EMAIL_ADDRESS
    attributes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    sign_assertion: bool = True
    sign_response: bool = False
    lifetime_seconds: int = 300
    # The service's certificate, as PEM; and its public key alone, which some libraries want beside it.
    encrypt_for: str | None = None
    encrypt_key: str | None = None
    acs_url: str | None = None
    audience: str | None = None


class Answer(NamedTuple):
    """The form that the provider's page posts to the service."""

    acs_url: str
    fields: dict[str, str]

    @property
    def document(self) -> bytes:
        """The response, as XML."""
        return base64.b64decode(self.fields["SAMLResponse"], validate=True)


class SamlProvider:
    """A SAML provider: its address, and what an administrator copies from it into the configuration of a tenant."""

    def __init__(self, kind: Kind, address: str, pair: Pair, entity_id: str | None, sso_url: str | None) -> None:
        self.kind = kind
        self.url = f"http://{address}"
        self.entity_id = entity_id or f"{self.url}/metadata"
        self.sso_url = sso_url or f"{self.url}/sso"
        self.pair = pair
        self.certificate = pair.certificate
        self.says()

    def says(self, *, attributes: dict[str, str | tuple[str, ...]] | None = None, **fields: object) -> None:
        """From now on say this about everybody who comes; the fields are those of `Says`, the rest is its default."""
        several = {name: (each,) if isinstance(each, str) else each for name, each in (attributes or {}).items()}
        said = Says(attributes=tuple(several.items()), **fields)  # type: ignore[arg-type]
        self._ask("PUT", "/settings", content=msgspec.json.encode(said))

    def answer(self, authn_url: str) -> Answer:
        """Follow the service's redirect, whatever host `sso_url` names, and give the form of the page."""
        form = form_in(self._ask("GET", f"/sso?{urlsplit(authn_url).query}").text)
        assert form.method == "post"
        return Answer(form.action, form.fields)

    def metadata(self) -> str:
        """Its metadata document."""
        return self._ask("GET", "/metadata").text

    def _ask(self, method: str, path: str, content: bytes | None = None) -> httpx.Response:
        with loopback.client(timeout=10) as http:
            answer = http.request(method, self.url + path, content=content)
        assert answer.is_success, f"{self.kind}: {answer.status_code} {answer.text}"
        return answer


@contextmanager
def running_saml_provider(
    kind: Kind, *, entity_id: str | None = None, sso_url: str | None = None, algorithm: Algorithm = "rsa"
) -> Iterator[SamlProvider]:
    """Start one with a new key; `entity_id` and `sso_url` are names to publish instead of its own addresses."""
    with tempfile.TemporaryDirectory(prefix="ci-") as name:
        pair = make_pair(Path(name), algorithm)
        given = {"key": str(pair.key_file), "certificate": str(pair.certificate_file), "algorithm": algorithm}
        given |= {key: value for key, value in (("entity_id", entity_id), ("sso_url", sso_url)) if value}
        with running([*_command(kind), msgspec.json.encode(given).decode()]) as address:
            yield SamlProvider(kind, address, pair, entity_id, sso_url)


def _command(kind: Kind) -> list[str | Path]:
    if kind == "pysaml2":
        return [sys.executable, "-W", "ignore", "-m", "tests.outside.identity_providers.pysaml2_idp", install(XMLSEC)]
    npm.install(HERE)
    return [shutil.which("node") or "node", "--no-deprecation", HERE / f"{kind}.mjs"]
