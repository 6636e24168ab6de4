"""The name server that the operator names."""

import pytest

from custody.kit import name_server
from custody.kit.environment import BadSetting
from tests.fixtures.each import each


@each(
    ("text", "read"),
    [
        ("", None),
        ("10.0.0.2", ("10.0.0.2", 53)),
        ("10.0.0.2:5353", ("10.0.0.2", 5353)),
        ("[fd00::2]", ("fd00::2", 53)),
        ("[fd00::2]:5353", ("fd00::2", 5353)),
    ],
)
def test_the_operator_names_a_name_server(text: str, read: tuple[str, int] | None) -> None:
    assert name_server.load({"SERVICE_DNS_SERVER": text}) == read


@each("text", ["dns.example.com", "10.0.0.2:0", "10.0.0.2:x", "fd00::2", "10.0.0.2:99999", "a@10.0.0.2", "10.0.0.2/x"])
def test_anything_else_stops_the_start(text: str) -> None:
    with pytest.raises(BadSetting, match="SERVICE_DNS_SERVER"):
        name_server.load({"SERVICE_DNS_SERVER": text})
