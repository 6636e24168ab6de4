"""Whatever strangers send is read in time that grows with its length, not with its square.

Every compiled pattern of our modules, and every pattern in one of their types, is found by walking them, so a new
one is judged without anybody thinking of it; parsers stand in a table. Four times the input may take eight times as
long at most (with a floor, below which nothing is judged): what is linear takes four times as long, a square sixteen.
"""

import contextlib
import importlib
import ipaddress
import pkgutil
import re
import statistics
import time
from collections.abc import Callable, Iterator
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import msgspec
import pytest

import api
import custody
import identity
import scheduler
import signer
from api.http import addresses, forms
from custody.chains.evm import address as evm_address
from custody.chains.evm import typed_data
from custody.chains.evm.typed_order import TypedDataField, TypedDataOrder
from custody.identity import siwe
from custody.identity.request_signature import check_times
from custody.kit import clock, json_bodies
from custody.kit.jwt import TokenKeys
from custody.policies.kinds import PolicyRule
from custody.policies.kinds.argument_conditions import ConditionConfig, conditions_on
from custody.policies.kinds.contract_allowlist import ContractAllowlistConfig
from custody.policies.types import InvalidPolicy
from identity.saml import strict_xml
from identity.saml.response import decode_response

QUARTER = 16 * 1024
# Below this nothing is judged. What is linear reads 64 KiB in far less.
FLOOR_SECONDS = 0.02
# Twice that of a linear one and half that of a square: a machine that is lent to others is no steadier.
RATIO = 8.0
COMPARISONS = 5
# Commands that a person starts, and what is judged beside the proxy.
ELSEWHERE = ("ops", "custody.credentials", "signer.__main__", "signer.verify", "api.__main__")


def modules() -> Iterator[Any]:
    for package in (api, signer, identity, scheduler, custody):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not found.name.startswith(ELSEWHERE) and not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def patterns() -> dict[str, re.Pattern[Any]]:
    """Compiled ones, and those in the bounds of types; by where they stand."""
    found: dict[str, re.Pattern[Any]] = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                found.setdefault(value.pattern if isinstance(value.pattern, str) else repr(value.pattern), value)
            for meta in getattr(value, "__metadata__", ()):
                if getattr(meta, "pattern", None):
                    found.setdefault(meta.pattern, re.compile(meta.pattern))
            assert name
    return found


def letters_of(pattern: re.Pattern[Any]) -> set[str]:
    """One character for each that the pattern names: literals, ends of ranges, and something else."""
    found: set[str] = set("a0 \n\x00")

    def walk(part: Any) -> None:
        if isinstance(part, int) and not isinstance(part, bool) and 0 < part < 0x110000:
            found.add(chr(part))
        elif isinstance(part, tuple | list | _parser.SubPattern):
            for inner in part:
                walk(inner)

    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    walk(_parser.parse(text, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags))
    return {letter for letter in found if letter.isascii()}


def seconds(work: Callable[[], object]) -> float:
    best = 1e9
    for _ in range(3):
        begun = time.thread_time()
        # A refusal is as good as an answer.
        with contextlib.suppress(Exception):
            work()
        best = min(best, time.thread_time() - begun)
    return best


def grows_with_its_square(work: Callable[[int], Callable[[], object]], length: int = QUARTER) -> bool:
    quarter, whole = work(length), work(4 * length)
    # Mostly the first look is enough; the middle one of five comparisons is not what a busy machine makes of one.
    return seconds(whole) > FLOOR_SECONDS and (
        statistics.median(seconds(whole) / seconds(quarter) for _ in range(COMPARISONS)) > RATIO
    )


FOUND = patterns()
TRUSTED = [ipaddress.ip_network("127.0.0.0/8")]


def test_the_walk_finds_patterns_of_every_process() -> None:
    assert len(FOUND) > 60
    assert {"Pattern"} == {type(pattern).__name__ for pattern in FOUND.values()}


@pytest.mark.parametrize("pattern", FOUND.values(), ids=FOUND.keys())
def test_a_pattern_takes_time_in_proportion_to_its_text(pattern: re.Pattern[Any]) -> None:
    for letter in sorted(letters_of(pattern)):
        for ending in ("", "\x00"):

            def match_of(length: int, letter: str = letter, ending: str = ending) -> Callable[[], object]:
                text: Any = letter * length + ending
                return lambda: pattern.match(text if isinstance(pattern.pattern, str) else text.encode())

            assert not grows_with_its_square(match_of), (letter, ending)


def test_the_judge_notices_a_square() -> None:
    slow = re.compile(r"\s+\n")

    # As slow at a sixth of the length, so that this test is not.
    assert grows_with_its_square(lambda length: lambda: slow.search(" " * length), QUARTER // 6)


def document(kind: str, value: str) -> TypedDataOrder:
    return TypedDataOrder(domain={}, types={"D": [TypedDataField("f", kind)]}, primary_type="D", value={"f": value})


def rules_of(kind: str, config: dict[str, Any]) -> Callable[[], object]:
    body = msgspec.json.encode([{"type": kind, "enabled": True, "config": config}])
    return lambda: [rule.config.terms() for rule in msgspec.json.decode(body, type=list[PolicyRule])]


def declared_by(abi: str, arg: str = "a", value: str = "1") -> Callable[[], object]:
    def read() -> object:
        try:
            return conditions_on(abi, [ConditionConfig(arg, "eq", value)])
        except InvalidPolicy as refused:
            return refused

    return read


LONG: dict[str, Callable[[int], Callable[[], object]]] = {
    "sign-in message, lines": lambda n: lambda: siwe.parse("\n" * n),
    "sign-in message, one line": lambda n: lambda: siwe.parse("a" * n),
    "XML, tags": lambda n: lambda: strict_xml.read(b"<" * n),
    "XML, texts": lambda n: lambda: strict_xml.read(b"<a>" + b"&amp;]" * ((n - 8) // 6) + b"</a>"),
    "XML, a value": lambda n: lambda: strict_xml.read(b"<a b='" + b"\t&#10;" * (n // 6 - 2) + b"'/>"),
    "XML, blanks": lambda n: lambda: strict_xml.read(b"<a b" + b" " * (n - 8) + b"x"),
    "XML, elements": lambda n: lambda: strict_xml.read(b"<a>" + b"<b c='d'/>" * (n // 40) + b"</a>"),
    "form value of SAML": lambda n: lambda: decode_response("AA\r\n" * (n // 4) + "!"),
    "token, dots": lambda n: lambda: TokenKeys({}).read("." * n),
    "token, head": lambda n: lambda: TokenKeys({}).read("e" * n + ".a.a"),
    "X-Forwarded-For, commas": lambda n: lambda: addresses.client_of("127.0.0.1", ["," * n], TRUSTED),
    "X-Forwarded-For, ours": lambda n: lambda: addresses.client_of("127.0.0.1", ["127.0.0.1," * (n // 10)], TRUSTED),
    "X-Forwarded-For, brackets": lambda n: lambda: addresses.client_of("127.0.0.1", ["[" * n], TRUSTED),
    "times of a request": lambda n: lambda: check_times("1" * n, "2026-" * (n // 5), clock.now()),
    "address": lambda n: lambda: evm_address.parse_address("0x" + "a" * n),
    "body, objects": lambda n: lambda: json_bodies.look_through(b"[" + b"{}," * (n // 3) + b"1]"),
    "body, deep": lambda n: lambda: json_bodies.look_through(b"[" * n + b"]" * n),
    "body, backslashes": lambda n: lambda: json_bodies.look_through(b'["' + b"\\\\" * (n // 2) + b'"]'),
    "body, twins": lambda n: lambda: json_bodies.look_through(b"{" + b'"a":1,' * (n // 6) + b'"a":1}'),
    "form, escapes": lambda n: lambda: forms.fields_of(b"a=" + b"%41" * (n // 3)),
    "form, pluses": lambda n: lambda: forms.fields_of(b"+" * n),
    "typed data, text": lambda n: lambda: typed_data.digest(document("string", "a" * (n - 500))),
    "typed data, bytes": lambda n: lambda: typed_data.digest(document("bytes", "0x" + "ab" * (n // 2 - 500))),
    "typed data, digits": lambda n: lambda: typed_data.digest(document("uint256", "1" * (n - 500))),
    "typed data, a type": lambda n: lambda: typed_data.digest(document("uint8" + "[1]" * (n // 3), "1")),
    "rules, addresses": lambda n: rules_of("approved-addresses", {"addresses": ["a" * 40] * (n // 43)}),
    "rules, one address": lambda n: rules_of("approved-addresses", {"addresses": ["1" * n]}),
    "rules, chains": lambda n: rules_of("allowed-chains", {"chains": [1] * (n // 2)}),
    "rules, one chain": lambda n: rules_of("allowed-chains", {"chains": ["solana:" + "a" * n]}),
    "rules, hours": lambda n: rules_of("time-window", {"allowedHours": [{"start": 1, "end": 2}] * (n // 21)}),
    "rules, an amount": lambda n: rules_of("spending-limit", {"maxPerDay": "1" * n}),
    "rules, a declaration": lambda n: declared_by("f(" + ",".join(f"bool a{place}" for place in range(n // 12)) + ")"),
    "rules, structs": lambda n: declared_by(
        "f(bool a)" + "".join(f"S{place}(S{place + 1} a)" for place in range(n // 16))
    ),
    "rules, arrays": lambda n: declared_by("f(bool" + "[1]" * (n // 3) + " a)"),
    "rules, a path": lambda n: declared_by("f(bool a)", "a" + "[0]" * (n // 3)),
    "rules, a number": lambda n: declared_by("f(uint256 a)", "a", "1" * n),
    "rules, selectors": lambda n: rules_of(
        "contract-allowlist", {"contracts": [{"address": "0x", "selectors": ["aabbccdd"] * (n // 11)}]}
    ),
}


@pytest.mark.parametrize("work", LONG.values(), ids=LONG.keys())
def test_a_parser_takes_time_in_proportion_to_its_text(work: Callable[[int], Callable[[], object]]) -> None:
    assert not grows_with_its_square(work)


def contracts(number: int) -> dict[str, Any]:
    cap = {"aabbccdd": {"maxNativeValueWei": "5"}}
    one = {"address": "0x" + "11" * 20, "selectors": ["aabbccdd"], "constraints": cap}
    return {"contracts": [{**one, "chainId": chain + 1} for chain in range(number)]}


def test_two_contract_lists_are_read_and_compared_in_proportion_to_their_length() -> None:
    def comparison_of(length: int) -> Callable[[], object]:
        config = msgspec.convert(contracts(length // 32), ContractAllowlistConfig)
        return lambda: config.terms().tightens(config.terms())

    assert not grows_with_its_square(comparison_of)
