"""Everything that leans on the inside of mitmproxy, and nothing else.

Its classes are extended where mitmproxy asks for it (`next_layer`, layers, connection handlers) and tightened where its
habits are not safe for a proxy that holds credentials (docs/proxy.md lists them). The version is pinned exactly;
tests/proxy/test_mitmproxy_contract.py says what we rely on and fails on the first upgrade that breaks it.
"""
