"""The list of ways of signing in that are on."""

from tests.fixtures.callers import Client


def test_anybody_is_told_which_ways_of_signing_in_are_on(as_nobody: Client) -> None:
    found = as_nobody.ok("GET", "/auth/providers")

    assert [one["id"] for one in found["methods"]] == ["siwe", "email", "passkey", "device"]
    assert {one["id"] for one in found["methods"] if one["enabled"]} >= {"siwe", "passkey", "device"}
    assert found["oauth"] == ["discord", "google", "twitter"]


def test_a_deployment_that_sends_no_mail_says_so(as_nobody: Client) -> None:
    (email,) = [one for one in as_nobody.ok("GET", "/auth/providers")["methods"] if one["id"] == "email"]

    sent = as_nobody.post("/auth/email/send", json={"email": "somebody@example.com"})

    assert email["enabled"] is (sent.status_code != 503)
