"""E-mail domains that a tenant proves to be its own: how one is written, and the DNS record that proves it.

The record counts, because only those who run a zone can publish it. The names refused here are a net for mistakes, and
no list of them is complete: without the Public Suffix List nobody knows every name below which strangers register.
"""

import re
from typing import Annotated, Final, Literal

import msgspec

from custody.identity.addresses import DOMAIN
from custody.kit.described import described
from custody.kit.errors import Invalid

RECORD_LABEL: Final = "_service-sso"
TOKEN_PREFIX: Final = "custody-sso-"  # noqa: S105 - how the published text begins
# A name in the DNS has 253 characters, that of the record included.
MAX_CHARACTERS: Final = 253 - len(RECORD_LABEL) - 1
# Of the TXT values at one name.
MAX_VALUES: Final = 20
# Characters kept of one: what is longer is nobody's token, and is only shown.
MAX_VALUE: Final = 255
_DOMAIN = re.compile(rf"{DOMAIN}\Z")
# Names below which registries let anybody register, as far as people write them by mistake.
_SUFFIXES: Final = """
ac.uk co.uk gov.uk ltd.uk me.uk net.uk org.uk plc.uk co.at or.at com.au net.au org.au com.br net.br org.br
com.cn net.cn org.cn co.id co.il org.il co.in net.in org.in co.jp ne.jp or.jp co.ke co.kr or.kr com.mx com.my
com.ng co.nz net.nz org.nz com.pl com.sg com.tr com.tw com.ua com.vn co.za org.za github.io gitlab.io
herokuapp.com netlify.app pages.dev vercel.app web.app workers.dev
"""
# Where anybody gets an address: nobody's colleagues.
_SHARED: Final = """
126.com 163.com aol.com fastmail.com gmail.com gmx.at gmx.ch gmx.com gmx.de gmx.net googlemail.com hey.com
hotmail.com icloud.com live.com mac.com mail.com mail.ru me.com msn.com outlook.com pm.me proton.me
protonmail.com qq.com tuta.com tutanota.com web.de yahoo.com yandex.com yandex.ru ymail.com zoho.com
"""
# Why `ssoRequired` counts for nobody, although the domain is there.
NotCounting = Literal["not_required", "domain_pending", "no_provider"]


class BadDomain(Invalid):
    """domain must be a registered name in ASCII with at least one dot, such as example.com or xn--bcher-kva.example."""


class SignOnMethod(msgspec.Struct, frozen=True, omit_defaults=True):
    """One way to sign on; `url` lacks what the client adds, its redirect URL and its challenge."""

    type: Annotated[Literal["saml", "oidc"], described("The protocol.")]
    url: Annotated[str, described("Start URL; add `redirect_uri`, `code_challenge` and the like.", format="uri")]
    id: Annotated[str | None, described("The provider's id, of OIDC alone.")] = None


def check(text: str) -> str:
    """The domain in lower case, or BadDomain. It is what stands behind the `@` of addresses that can sign in."""
    domain = text.lower()
    if len(domain) > MAX_CHARACTERS:
        raise BadDomain(
            f"domain has at most {MAX_CHARACTERS} characters: {RECORD_LABEL} stands before it.", fields=["domain"]
        )
    if not _DOMAIN.match(domain):
        raise BadDomain(fields=["domain"])
    if domain in _SUFFIXES.split():
        raise BadDomain(f"domain: below {domain} anybody registers names; give your own below it.", fields=["domain"])
    if domain in _SHARED.split():
        raise BadDomain(f"domain: anybody gets an address at {domain}; give a domain of your own.", fields=["domain"])
    return domain


def record_name(domain: str) -> str:
    """Name where the TXT record stands."""
    return f"{RECORD_LABEL}.{domain}"


def domain_of(address: str) -> str:
    """The domain of a normalised address."""
    return address.rpartition("@")[2]


def why_not_counting(*, required: bool, verified: bool, provided: bool) -> NotCounting | None:
    """Why nobody is made to sign on, or None where they are."""
    if not required:
        return "not_required"
    if not verified:
        return "domain_pending"
    return None if provided else "no_provider"


def methods(public_url: str, tenant: str, *, saml: bool, oidc: list[str]) -> list[SignOnMethod]:
    """The ways to sign on to a tenant, from its enabled providers."""
    found = [SignOnMethod("saml", f"{public_url}/auth/saml/{tenant}/login")] if saml else []
    return [*found, *(SignOnMethod("oidc", f"{public_url}/auth/oidc/{tenant}~{one}/authorize", one) for one in oidc)]
