"""The Solana client against a node that executes the real programs."""

import msgspec
import pytest
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from custody.chains import families
from custody.chains.built_in import CHAINS
from custody.chains.rpc import BroadcastRefused, Rpc
from custody.chains.solana import rpc as solana
from custody.chains.solana.effects import check_declared, subject_of
from custody.chains.solana.message import parse
from custody.chains.solana.sign import sign
from tests.outside.solana_messages import (
    US,
    compute_limit,
    compute_price,
    create_account,
    encode,
    legacy,
    message,
    pay,
    pay_tokens,
    token_account,
)
from tests.outside.solana_node import running_solana_node

KEY = Keypair.from_seed(b"\x01" * 32)


@pytest.fixture(scope="module")
def node():
    with running_solana_node() as started:
        started.fund(str(US), 10**11)
        yield started


@pytest.fixture
def chain(node):
    devnet = next(one for one in CHAINS if one.id == 102)
    return msgspec.structs.replace(devnet, rpc_urls=(node.url,))


@pytest.fixture
async def rpc():
    async with Rpc() as client:
        yield client


@pytest.fixture
def them():
    return Keypair().pubkey()


async def judge_and_send(rpc, chain, content, to, value):
    parsed = parse(encode(content))
    judged = subject_of(parsed, str(US), chain.id, families.caip2(chain), str(to))
    check_declared(judged, str(US), str(to), value)
    prepared = await solana.prepare(rpc, chain)
    signature, raw = sign(parsed, KEY, prepared.blockhash)
    await solana.broadcast(rpc, chain, raw, signature)
    return judged, signature, raw


@pytest.mark.parametrize("build", [message, legacy])
async def test_a_judged_payment_lands_with_exactly_its_effects(rpc, chain, them, build):
    before = await solana.balance(rpc, chain, str(US))
    content = build(compute_limit(10_000), compute_price(5_000), pay(2_000_000, them))

    judged, signature, _ = await judge_and_send(rpc, chain, content, them, 2_000_000)

    spent = before - await solana.balance(rpc, chain, str(US))
    assert spent == sum(effect.amount for effect in judged.effects)
    assert await solana.balance(rpc, chain, str(them)) == 2_000_000
    status = await solana.status(rpc, chain, signature)
    assert (status.level, status.failed) == ("finalized", False)


async def test_a_token_payment_lands_at_its_declared_owner(rpc, chain, them, node):
    mint = Pubkey.from_string(node.create_mint(6))
    node.mint_to(str(mint), str(US), 100)
    before = await solana.balance(rpc, chain, str(US))
    paid_into = token_account(them, mint)
    content = message(create_account(them, mint), pay_tokens(40, paid_into, mint))

    judged, _, _ = await judge_and_send(rpc, chain, content, them, 0)

    assert node.rpc("getTokenAccountBalance", str(paid_into))["value"]["amount"] == "40"
    assert judged.effects[0].to == str(them)
    fees = sum(effect.amount for effect in judged.effects if effect.kind == "fee")
    assert before - await solana.balance(rpc, chain, str(US)) == fees


async def test_sending_the_same_bytes_again_is_a_success(rpc, chain, them):
    _, signature, raw = await judge_and_send(rpc, chain, message(pay(2_000_000, them)), them, 2_000_000)

    await solana.broadcast(rpc, chain, raw, signature)

    assert await solana.balance(rpc, chain, str(them)) == 2_000_000


async def test_an_expired_blockhash_is_refused_and_a_fresh_one_is_taken(rpc, chain, them, node):
    parsed = parse(encode(message(pay(2_000_000, them))))
    old = await solana.prepare(rpc, chain)
    node.expire_blockhash()
    signature, raw = sign(parsed, KEY, old.blockhash)

    with pytest.raises(BroadcastRefused, match="BlockhashNotFound"):
        await solana.broadcast(rpc, chain, raw, signature)
    assert await solana.height(rpc, chain) > old.last_valid_height
    signature, raw = sign(parsed, KEY, (await solana.prepare(rpc, chain)).blockhash)
    await solana.broadcast(rpc, chain, raw, signature)


async def test_a_payment_beyond_the_balance_is_refused_with_the_reason(rpc, chain, them):
    with pytest.raises(BroadcastRefused, match="insufficient lamports") as refused:
        await judge_and_send(rpc, chain, message(pay(10**15, them)), them, 10**15)
    assert refused.value.code == "broadcast_refused"


async def test_a_signature_nobody_has_seen_has_no_status(rpc, chain):
    signature, _ = sign(parse(encode(message(pay(987_654)))), KEY, None)

    assert await solana.status(rpc, chain, signature) is None
