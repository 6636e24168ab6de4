"""The answers of the DNS for a name, told apart: values, their absence, an alias, and no answer at all.

The name server is believed as the system's resolver is: an attacker between it and this process can lie.
"""

from typing import Final

import dns.asyncresolver
import dns.exception
import dns.message
import dns.name
import dns.resolver

from custody.kit.errors import Conflict, UpstreamFailed

LIFETIME_SECONDS: Final = 5.0
# Over UDP; longer answers come over TCP.
_PAYLOAD = 1232


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
        return [_printable(b"".join(record.strings)[:longest]) for record in records]

    def _resolver(self) -> dns.asyncresolver.Resolver:
        # Made for each question: the system's name servers may have changed.
        resolver = dns.asyncresolver.Resolver(configure=self._server is None)
        if self._server is not None:
            host, resolver.port = self._server
            resolver.nameservers = [host]
        resolver.use_edns(0, 0, _PAYLOAD)
        return resolver


def _printable(value: bytes) -> str:
    """A value as text; what is not printable ASCII is in no token, and can only mislead readers."""
    text = value.decode("ascii", "replace")
    return "".join(one if one.isprintable() else "\ufffd" for one in text)
