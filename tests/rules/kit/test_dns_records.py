"""Look-ups of TXT records in the DNS, asked of a name server on loopback."""

from collections.abc import Iterator

import pytest

from custody.kit.dns_records import DnsAlias, DnsRecords, DnsTooManyValues, DnsUnavailable
from tests.outside.dns_server import DnsServer, running_dns_server

NAME = "_service-sso.people.test"


@pytest.fixture
def server() -> Iterator[DnsServer]:
    with running_dns_server() as started:
        yield started


async def ask(server: DnsServer, seconds: float = 5.0) -> list[str]:
    return await DnsRecords((server.host, server.port), seconds).texts(NAME, most=20, longest=255)


async def test_values_are_joined_from_their_strings(server: DnsServer) -> None:
    server.txt(NAME, "one", '"two"', (b"thr", b"ee"))

    assert sorted(await ask(server)) == ['"two"', "one", "three"]


async def test_a_value_is_cut_and_shown_as_printable_text(server: DnsServer) -> None:
    server.txt(NAME, "x" * 600, (b"a\x00\x1b\xff\nb",))

    assert sorted(await ask(server)) == ["a\ufffd\ufffd\ufffd\ufffdb", "x" * 255]


async def test_a_name_that_is_not_there_and_one_without_records_have_none(server: DnsServer) -> None:
    assert await ask(server) == []

    server.txt(NAME)

    assert await ask(server) == []


@pytest.mark.parametrize("count", [20, 21])
async def test_there_may_be_twenty_values(server: DnsServer, count: int) -> None:
    server.txt(NAME, *(f"value-{number}" for number in range(count)))

    if count == 20:
        assert len(await ask(server)) == 20
        return
    with pytest.raises(DnsTooManyValues):
        await ask(server)


@pytest.mark.parametrize("known", [True, False])
async def test_an_alias_is_refused_whether_its_target_is_there_or_not(server: DnsServer, known: bool) -> None:
    server.alias(NAME, "elsewhere.test")
    if known:
        server.txt("elsewhere.test", "theirs")

    with pytest.raises(DnsAlias):
        await ask(server)


@pytest.mark.parametrize("rcode", ["SERVFAIL", "REFUSED", "FORMERR"])
async def test_a_server_that_fails_says_nothing(server: DnsServer, rcode: str) -> None:
    server.fails(NAME, rcode)

    with pytest.raises(DnsUnavailable):
        await ask(server, 1.0)


async def test_a_server_that_is_silent_says_nothing(server: DnsServer) -> None:
    server.silent(NAME)

    with pytest.raises(DnsUnavailable):
        await ask(server, 0.3)


async def test_an_answer_of_nearly_64_kib_is_read_and_cut(server: DnsServer) -> None:
    server.txt(NAME, *(f"{number:03}" + "x" * 3200 for number in range(20)))

    found = await ask(server)

    assert len(found) == 20
    assert {len(one) for one in found} == {255}


async def test_an_answer_that_never_comes_whole_says_nothing(server: DnsServer) -> None:
    server.txt(NAME, "x" * 5000, only_udp=True)

    with pytest.raises(DnsUnavailable):
        await ask(server, 0.5)
