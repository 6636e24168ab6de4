"""The proxy serves agents: a person's token opens nothing there, whatever their role."""

from contextlib import closing

from tests.fixtures.deployments import owner_of
from tests.fixtures.forgery import sign_again
from tests.fixtures.people import member
from tests.fixtures.proxied import Keyless
from tests.proxy.envelope import refusal


def test_a_persons_token_is_none_for_the_proxy(with_route: Keyless) -> None:
    with closing(member(with_route.proxied, with_route.tenant, "owner", mfa=True)) as owner:
        client = with_route.gateway()
        assert client.get("/echo").status_code == 200

        answer = client.get("/echo", headers={"Authorization": f"Bearer {owner.session['token']}"})

    assert refusal(answer) == (401, "bad_token")


def test_a_persons_refresh_token_is_none_either(with_route: Keyless) -> None:
    with closing(member(with_route.proxied, with_route.tenant, "owner")) as owner:
        answer = with_route.gateway().get("/echo", headers={"Authorization": f"Bearer {owner.session['refreshToken']}"})

    assert refusal(answer) == (401, "bad_token")


async def test_a_token_of_another_issuer_is_none_even_under_our_key(with_route: Keyless) -> None:
    token = with_route.agent.headers["Authorization"].split()[1]
    async with owner_of(with_route.proxied.database) as owner:
        made = [
            await sign_again(with_route.proxied, owner, token, **said) for said in ({}, {"iss": "https://evil.example"})
        ]
    own, theirs = (with_route.gateway(Authorization=f"Bearer {one}").get("/echo") for one in made)

    assert own.status_code == 200
    assert refusal(theirs) == (401, "bad_token")
