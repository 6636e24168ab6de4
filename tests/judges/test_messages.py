"""Messages that we sign, held against the libraries that sites verify them with; and theirs, read by us."""

import base64
import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from coincurve import PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from solders.keypair import Keypair
from solders.signature import Signature

from custody.chains.evm.address import address_of
from custody.chains.message_reading import read
from signer.orders.message import EVM_MESSAGE, SOLANA_MESSAGE, MessageFinal
from tests.judges import npm

pytestmark = pytest.mark.skipif(npm.missing() is not None, reason=npm.missing() or "")

KEY, WALLET = PrivateKey(random.Random(27).randbytes(32)), Keypair.from_seed(b"\x27" * 32)
US = address_of(KEY.public_key.format(compressed=False))
TEXTS = ["hello", "", "Grüße, 世界 🎉", "a\0b", "\ufeffBOM\r\n", "x" * 16_384, "0x" + "ab" * 32, "٣"]


@pytest.fixture(scope="session", autouse=True)
def _judges() -> None:
    npm.install()


def ask(script: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    node = shutil.which("node")
    assert node is not None
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    folder = Path(__file__).parent
    done = subprocess.run(
        [node, script], cwd=folder, input=lines, stdout=subprocess.PIPE, text=True, timeout=120, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def sign(content: bytes) -> str:
    return EVM_MESSAGE.sign(MessageFinal(content=content), KEY).signature


def test_ethers_and_viem_recover_the_signer_of_our_messages() -> None:
    texts = [text for text in TEXTS if text]
    cases = [{"kind": "message", "text": text, "signature": sign(text.encode()), "address": US} for text in texts]
    raw = [random.Random(n).randbytes(n) for n in (1, 31, 33, 64, 16_384)]
    cases += [{"kind": "message", "raw": "0x" + one.hex(), "signature": sign(one), "address": US} for one in raw]

    assert ask("judge.mjs", cases) == [{"ethers": US, "viem": US, "verified": True}] * len(cases)


def test_a_changed_message_recovers_to_somebody_else() -> None:
    (verdict,) = ask("judge.mjs", [{"kind": "message", "text": "b", "signature": sign(b"a"), "address": US}])

    assert verdict["verified"] is False
    assert US not in (verdict["ethers"], verdict["viem"])


def test_tweetnacl_verifies_our_messages_of_solana() -> None:
    contents = [text.encode() for text in TEXTS if text] + [b"\xff\xfe", random.Random(1).randbytes(64)]
    cases = []
    for content in contents:
        made = SOLANA_MESSAGE.sign(MessageFinal(content=content), WALLET).signature
        of = {"signature": bytes(Signature.from_string(made)).hex(), "publicKey": str(WALLET.pubkey())}
        cases += [{"kind": "solana_message", "raw": one.hex(), **of} for one in (content, content + b"!")]

    assert [one["verified"] for one in ask("judge.mjs", cases)] == [True, False] * len(contents)


def test_sign_ins_of_siwe_and_viem_are_read_and_siwe_takes_our_signature() -> None:
    fields = {"domain": "app.example.com", "address": US, "uri": "https://app.example.com/in", "version": "1",
              "chainId": 8453, "nonce": "32891756abcDEF", "issuedAt": "2026-01-01T12:00:00.000Z"}  # fmt: skip
    more = {"statement": "Sign in to Example.", "expirationTime": "2026-01-01T13:00:00.000Z", "requestId": "r-1",
            "notBefore": "2026-01-01T11:00:00.000Z", "resources": ["https://app.example.com/a"]}  # fmt: skip
    asks = [{"kind": "write", "fields": one} for one in (fields, fields | more)]

    written = [text for verdict in ask("judge.mjs", asks) for text in (verdict["siwe"], verdict["viem"])]

    assert len(written) == 4
    for text in written:
        said = read("evm", text, None).sign_in
        assert said is not None, text
        assert (said.domain, said.address, said.uri, said.chain) == (
            "app.example.com", US, "https://app.example.com/in", "eip155:8453",
        )  # fmt: skip
    time = "2026-01-01T12:30:00.000Z"
    cases = [{"kind": "sign_in", "text": text, "signature": sign(text.encode()), "time": time} for text in written]
    taken = {"success": True, "domain": "app.example.com", "address": US}
    assert ask("judge.mjs", cases) == [taken] * len(cases)


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=1, max_size=200))
def test_our_own_check_takes_what_we_sign_and_nothing_else(content: bytes) -> None:
    signature = sign(content)
    bare = SOLANA_MESSAGE.sign(MessageFinal(content=content), WALLET).signature

    assert EVM_MESSAGE.verify(content, signature, US)
    assert not EVM_MESSAGE.verify(content + b"!", signature, US)
    assert SOLANA_MESSAGE.verify(content, bare, str(WALLET.pubkey()))
    assert not SOLANA_MESSAGE.verify(base64.b64encode(content), bare, str(WALLET.pubkey()))
