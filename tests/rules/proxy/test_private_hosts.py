"""Hosts that the operator lets have a private address."""

from custody.credentials.patterns import compile_host
from proxy_addon.private_hosts import host_allowed


def test_an_operator_names_hosts_by_pattern():
    patterns = [compile_host("localhost"), compile_host("*.internal"), compile_host("db.example.com:8443")]

    assert host_allowed("localhost", patterns, port=9000)
    assert host_allowed("a.b.internal", patterns, port=443)
    assert not host_allowed("internal", patterns, port=443)
    assert not host_allowed("localhost.evil.com", patterns, port=443)
    assert host_allowed("db.example.com", patterns, port=8443)
    assert not host_allowed("db.example.com", patterns, port=443)
    assert not host_allowed("db.example.com", patterns)
    assert not host_allowed("localhost", [], port=443)
    assert host_allowed("anything.example", [compile_host("*")], port=443)
