"""The token is nowhere but in the requests, and there is no key: not in a repr, a pickle, a log or an exception."""

import copy
import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from custody_sdk import AsyncVault, OutcomeUnknown, Paid, Signed, Vault, VaultError, Waiting
from custody_sdk.eth import NoKey, VaultAccount
from custody_sdk.x402 import PayingAuth
from eth_account import Account
from eth_account.messages import SignableMessage

from tests.fixtures.callers import ADDRESS, Agent
from tests.fixtures.each import each
from tests.sdk.conftest import OddService, token_of, vault_of

TOKEN = "eyJ.this-is-the.token"
KEY_USES: dict[str, Callable[[Any], Any]] = {
    "key": lambda account: account.key,
    "bytes": bytes,
    "encrypt": lambda account: account.encrypt("password"),
    "unsafe_sign_hash": lambda account: account.unsafe_sign_hash(b"\1" * 32),
    "sign_authorization": lambda account: account.sign_authorization({"chainId": 1, "address": ADDRESS, "nonce": 0}),
    "sign_message": lambda account: account.sign_message(SignableMessage(b"\1", b"\2" * 32, b"\3" * 32)),
}


def texts_of(thing: Any) -> Iterator[str]:
    """Every text that a program shows of a thing without being told to look inside."""
    yield from (repr(thing), str(thing), f"{thing!r:>10}", json.dumps({"it": thing}, default=repr))
    for inside in [*getattr(thing, "__dict__", {}).values()]:
        yield repr(inside)


def test_no_client_and_no_part_of_one_shows_its_token() -> None:
    with Vault("https://example.com", TOKEN) as vault:
        things: list[Any] = [vault, vault._auth, PayingAuth(vault, "quote-1"), AsyncVault("https://example.com", TOKEN)]

        assert [text for thing in things for text in texts_of(thing) if TOKEN in text] == []
        # The control: it is there.
        assert vault._auth._token == TOKEN


def test_no_client_is_pickled_or_copied() -> None:
    with Vault("https://example.com", TOKEN) as vault:
        for thing in (vault, vault._auth, AsyncVault("https://example.com", TOKEN)):
            for copied in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError, match="token") as refused:
                    copied(thing)
                assert TOKEN not in str(refused.value)


def test_no_log_has_the_token_however_much_is_logged(odd: OddService, caplog: pytest.LogCaptureFixture) -> None:
    odd.say(200, {"agentId": "buyer"})
    # Something else in this process may have told them to say less.
    for library in ("httpx", "httpcore"):
        caplog.set_level(logging.DEBUG, logger=library)
    with caplog.at_level(logging.NOTSET), Vault(odd.url, TOKEN) as vault:
        vault.me()

    # The controls: it was sent, and the libraries below did log.
    assert odd.asked[0][2]["Authorization"] == f"Bearer {TOKEN}"
    assert "httpx" in {record.name for record in caplog.records}
    assert TOKEN not in "".join(f"{record.getMessage()}{record.args}" for record in caplog.records)


@each("fault", ["away", "hang_up", "longer", "refused", "nonsense"])
def test_no_exception_has_the_token_with_all_that_hangs_on_it(odd: OddService, fault: str) -> None:
    odd.answers.clear()
    odd.say(403, {"code": "policy_refused", "results": []}, error="No.")
    if fault in ("hang_up", "nonsense", "longer"):
        odd.answers.clear()
        odd.say_bytes(200, b"x" * (2**24 if fault == "longer" else 5)) if fault != "hang_up" else odd.hang_up()
    url = "http://127.0.0.1:9" if fault == "away" else odd.url
    with Vault(url, TOKEN, agent="buyer", patience=0) as vault, pytest.raises(VaultError) as caught:
        vault.pay("invoice-1", ADDRESS, 1)

    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert TOKEN not in "".join(told.format())
    assert TOKEN not in repr(pickle.dumps(caught.value)) + repr(vars(caught.value))
    # The library's own exception holds the request, and that the token.
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_an_error_comes_out_of_a_pickle_as_it_was() -> None:
    before = Waiting(202, "approval_required", "A person decides.", {"txId": "x", "approvalId": "y"})

    after = pickle.loads(pickle.dumps(before))

    assert (type(after), str(after), after.tx_id, after.data) == (Waiting, str(before), "x", before.data)
    assert str(pickle.loads(pickle.dumps(NoKey("key")))) == str(NoKey("key"))


def test_a_repr_leaves_out_whatever_anyone_could_use() -> None:
    signed = Signed("tx", "0xhash", "0xthe-signature", "0xthe-bytes")
    paid = Paid("tx", "PAYMENT-SIGNATURE", "the-payment", "evm:1:x", "1", "2027")

    assert not {"0xthe-signature", "0xthe-bytes", "the-payment"} & set(f"{signed!r} {paid!r}".split("'"))


def test_an_account_has_no_key_to_show(agent: Agent) -> None:
    with vault_of(agent) as vault:
        account = VaultAccount(vault)
        for what, use in KEY_USES.items():
            with pytest.raises(NoKey, match="never leaves the service"):
                use(account)
            # The control: an account with a key does it, or does it for want of a better argument.
            if what in ("key", "bytes"):
                assert len(use(Account.create())) == 32
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                copied(account)

        assert [text for text in texts_of(account) if token_of(agent) in text] == []
        assert account.address == agent.evm_address == vault.wallet()["walletAddress"]
        assert agent.ok("GET", f"/vault/{agent.id}/history") == []


async def test_the_client_that_is_awaited_keeps_its_exceptions_clean() -> None:
    async with AsyncVault("http://127.0.0.1:9", TOKEN, agent="buyer", patience=0) as vault:
        with pytest.raises(OutcomeUnknown) as caught:
            await vault.pay("invoice-1", ADDRESS, 1)

    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert TOKEN not in "".join(told.format())
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
