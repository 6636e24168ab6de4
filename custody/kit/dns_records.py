"""What the DNS says at a name, told apart: values, their absence, an alias, and no answer at all.

The name server is believed as the system's resolver is: an attacker between it and this process can lie.
"""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import dns.asyncresolver
import dns.exception
import dns.message
import dns.name
import dns.resolver

from custody.kit.environment import BadSetting, Environment
from custody.kit.errors import Conflict, UpstreamFailed

VARIABLE: Final = "SERVICE_DNS_SERVER"
LIFETIME_SECONDS: Final = 5.0
# Over UDP; longer answers come over TCP.
_PAYLOAD = 1232
_PORT = 53


class DnsUnavailable(UpstreamFailed):
    """The name server did not answer, or failed; nothing is known of the record. Retry in a minute."""


class DnsAlias(Conflict):
    """This name is an alias (CNAME), so another zone answers for it; publish a TXT record at the name itself."""


class DnsTooManyValues(Conflict):
    """This name has more than 20 TXT values; remove those that nothing needs."""


class DnsRecords:
    """Asks one name server, or those of the system."""

    def __init__(self, server: tuple[str, int] | None = None, lifetime: float = LIFETIME_SECONDS) -> None:
        self._server = server
        self._lifetime = lifetime

    async def texts(self, name: str, *, most: int, longest: int) -> list[str]:
        """The TXT values at a name, each joined from its strings and cut; none where the DNS says that there is none.

        Raises DnsAlias, DnsTooManyValues, and DnsUnavailable where nobody knows.
        """
        asked = dns.name.from_text(name)
        try:
            resolver = self._resolver()
            found = await resolver.resolve(
                asked, "TXT", lifetime=self._lifetime, search=False, raise_on_no_answer=False
            )
        except dns.resolver.NXDOMAIN as problem:
            # An alias of a name that does not exist: anyone who registers that one would answer.
            if problem.canonical_name != asked:
                raise DnsAlias(name=name) from None
            return []
        except (dns.exception.DNSException, OSError) as problem:
            raise DnsUnavailable(name=name) from problem
        if found.canonical_name != asked:
            raise DnsAlias(name=name)
        records = list(found.rrset or ())
        if len(records) > most:
            raise DnsTooManyValues(name=name)
        return [_shown(b"".join(record.strings)[:longest]) for record in records]

    def _resolver(self) -> dns.asyncresolver.Resolver:
        # Made for each question: the system's name servers may have changed.
        resolver = dns.asyncresolver.Resolver(configure=self._server is None)
        if self._server is not None:
            host, resolver.port = self._server
            resolver.nameservers = [host]
        resolver.use_edns(0, 0, _PAYLOAD)
        return resolver


def server(source: Environment) -> tuple[str, int] | None:
    """The name server that the operator names, as an address with or without a port; None: the system's."""
    value = source.get(VARIABLE, "").strip()
    if not value:
        return None
    try:
        parts = urlsplit(f"//{value}")
        if parts.hostname is None or parts.netloc != value or "@" in value or parts.port == 0:
            raise ValueError
        return str(ip_address(parts.hostname)), parts.port or _PORT
    except ValueError:
        raise BadSetting(VARIABLE, "must be an address such as 10.0.0.2, 10.0.0.2:5353 or [fd00::2]:53") from None


def _shown(value: bytes) -> str:
    """A value as text; what is not printable ASCII is in no token, and can only mislead readers."""
    text = value.decode("ascii", "replace")
    return "".join(one if one.isprintable() else "\ufffd" for one in text)
