"""The name server of the tests, asked by dnspython's resolver."""

from collections.abc import Iterator

import dns.asyncresolver
import dns.resolver
import pytest

from tests.outside.dns_server import DnsServer, Query, running_dns_server

NAME = "_service-sso.people.test"


@pytest.fixture
def server() -> Iterator[DnsServer]:
    with running_dns_server() as started:
        yield started


async def ask(server: DnsServer, name: str = NAME, seconds: float = 60) -> dns.resolver.Answer:
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers, resolver.port = [server.host], server.port
    return await resolver.resolve(name, "TXT", lifetime=seconds)


def texts(found: dns.resolver.Answer) -> list[bytes]:
    return [b"".join(record.strings) for record in found]


async def test_records_are_found_under_a_name_in_any_case(server: DnsServer) -> None:
    server.txt(NAME, "one", '"two"', (b"thr", b"ee"), "x" * 300)

    found = await ask(server, "_SERVICE-sso.People.Test.")

    assert sorted(texts(found)) == [b'"two"', b"one", b"three", b"x" * 300]
    assert sorted(len(record.strings) for record in found) == [1, 1, 2, 2]
    assert found.canonical_name == found.qname
    assert server.questions_for(NAME) == [Query(NAME, "TXT", "udp")]


async def test_many_values_are_kept_apart(server: DnsServer) -> None:
    server.txt(NAME, *(f"value-{number}" for number in range(21)))

    assert len(await ask(server)) == 21


async def test_new_records_replace_the_old(server: DnsServer) -> None:
    server.txt(NAME, "old")
    server.txt(NAME, "new")

    assert texts(await ask(server)) == [b"new"]

    server.forget(NAME)

    with pytest.raises(dns.resolver.NXDOMAIN):
        await ask(server)


async def test_a_name_without_records_has_no_answer(server: DnsServer) -> None:
    server.txt(NAME)

    with pytest.raises(dns.resolver.NoAnswer):
        await ask(server)


@pytest.mark.parametrize("rcode", ["SERVFAIL", "REFUSED", "FORMERR"])
async def test_a_server_that_fails(server: DnsServer, rcode: str) -> None:
    server.fails(NAME, rcode)

    with pytest.raises(dns.resolver.NoNameservers, match=rcode):
        await ask(server)


async def test_a_server_that_is_silent(server: DnsServer) -> None:
    server.silent(NAME)

    with pytest.raises(dns.resolver.LifetimeTimeout):
        await ask(server, seconds=0.3)


async def test_an_alias_is_followed_and_seen(server: DnsServer) -> None:
    server.alias(NAME, "elsewhere.test")
    server.txt("elsewhere.test", "theirs")

    found = await ask(server)

    assert texts(found) == [b"theirs"]
    assert found.canonical_name.to_text() == "elsewhere.test."


@pytest.mark.parametrize("to", ["nowhere.test", NAME])
async def test_an_alias_of_nothing_and_of_itself_has_no_answer(server: DnsServer, to: str) -> None:
    server.alias(NAME, to)

    with pytest.raises((dns.resolver.NoAnswer, dns.resolver.NXDOMAIN, dns.resolver.NoNameservers)):
        await ask(server)


async def test_an_answer_of_nearly_64_kib_comes_over_tcp(server: DnsServer) -> None:
    server.txt(NAME, *(f"{number:03}" + "x" * 1250 for number in range(51)))

    found = await ask(server)

    assert sum(map(len, texts(found))) == 51 * 1253
    assert [query.transport for query in server.questions_for(NAME)] == ["udp", "tcp"]


async def test_an_answer_that_is_cut_and_never_comes_whole(server: DnsServer) -> None:
    server.txt(NAME, "x" * 5000, only_udp=True)

    with pytest.raises(dns.resolver.LifetimeTimeout):
        await ask(server, seconds=0.5)
