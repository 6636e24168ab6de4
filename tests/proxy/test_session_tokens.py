"""The proxy serves agents: a person's token opens nothing there, whatever their role."""

from contextlib import closing

from tests.fixtures.deployments import owner_of
from tests.fixtures.forgery import resigned
from tests.fixtures.people import member
from tests.fixtures.proxied import Keyless
from tests.proxy.envelope import refusal


def test_a_persons_token_is_none_for_the_proxy(routed: Keyless) -> None:
    with closing(member(routed.proxied, routed.tenant, "owner", mfa=True)) as owner:
        client = routed.gateway()
        assert client.get("/echo").status_code == 200

        answer = client.get("/echo", headers={"Authorization": f"Bearer {owner.session['token']}"})

    assert refusal(answer) == (401, "bad_token")


def test_a_persons_refresh_token_is_none_either(routed: Keyless) -> None:
    with closing(member(routed.proxied, routed.tenant, "owner")) as owner:
        answer = routed.gateway().get("/echo", headers={"Authorization": f"Bearer {owner.session['refreshToken']}"})

    assert refusal(answer) == (401, "bad_token")


async def test_a_token_of_another_issuer_is_none_even_under_our_key(routed: Keyless) -> None:
    token = routed.agent.headers["Authorization"].split()[1]
    async with owner_of(routed.proxied.database) as owner:
        made = [await resigned(routed.proxied, owner, token, **said) for said in ({}, {"iss": "https://evil.example"})]
    own, theirs = (routed.gateway(Authorization=f"Bearer {one}").get("/echo") for one in made)

    assert own.status_code == 200
    assert refusal(theirs) == (401, "bad_token")
