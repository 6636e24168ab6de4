"""The token is nowhere but in the requests: in no JSON, no inspection, no text and no error."""

import pytest

from tests.fixtures.callers import ADDRESS
from tests.fixtures.each import each
from tests.sdk.conftest import OddService
from tests.sdk.typescript.built import folder_of
from tests.sdk.typescript.conftest import Client, Programs, Thrown

TOKEN = "eyJ.this-is-the.token"
TX = "5a4c35e9-3be4-4fb7-a452-353dfa9b5e7d"


@each("fault", ["none", "away", "hang_up", "refused", "nonsense", "unknown"])
def test_neither_the_client_nor_what_it_throws_shows_the_token(client: Client, odd: OddService, fault: str) -> None:
    odd.asked.clear()
    odd.answers.clear()
    client.make("http://127.0.0.1:9" if fault == "away" else odd.url, TOKEN, agent="buyer", patienceMs=0)
    if fault == "none":
        odd.say(200, {"txId": TX, "signature": "0xthe-signature", "signedTransaction": "0xthe-bytes"})
        client.call("vault.pay", "invoice-1", ADDRESS, 1)
    else:
        odd.say(503 if fault == "unknown" else 403, {"code": "policy_refused", "results": []}, error="No.")
        if fault == "hang_up":
            odd.answers.clear()
            odd.hang_up()
        if fault == "nonsense":
            odd.answers.clear()
            odd.say_bytes(200, b"nonsense")
        with pytest.raises(Thrown):
            client.call("vault.pay", "invoice-1", ADDRESS, 1)

    shown = client.call("shown")

    assert TOKEN not in shown
    # What anyone could use is not shown either; the controls: much was shown, and the token was sent.
    assert not {"0xthe-signature", "0xthe-bytes"} & set(shown.replace('"', "'").split("'"))
    assert "Vault {" in shown
    sent = [
        value for _, _, headers, _ in odd.asked for name, value in headers.items() if name.lower() == "authorization"
    ]
    assert set(sent) == (set() if fault == "away" else {f"Bearer {TOKEN}"})


def test_no_wallet_of_another_library_shows_the_token(client: Client, odd: OddService) -> None:
    program = """
import { inspect } from "node:util";
import { Vault } from "custody-sdk";
import { VaultSigner } from "custody-sdk/ethers";
import { vaultSigner } from "custody-sdk/kit";
import { vaultProvider } from "custody-sdk/provider";
import { SolanaWallet } from "custody-sdk/solana";
import { vaultAccount } from "custody-sdk/viem";
import { vaultWallet } from "custody-sdk/web3js";
import { payingFetch } from "custody-sdk/x402";
const [url, token] = process.argv.slice(2);
const vault = new Vault({ url, token, agent: "buyer" });
const all = [
  vault, new VaultSigner(vault), await vaultSigner(vault), vaultProvider(vault, { chainId: 1, node: url }),
  await SolanaWallet.of(vault), await vaultAccount(vault), await vaultWallet(vault), payingFetch(vault, "quote-1"),
];
for (const one of all) console.log(inspect(one, { showHidden: true, depth: 20 }), JSON.stringify(one), String(one));
console.log(all.length);
"""
    own = "0x" + "11" * 20
    odd.say(200, {"walletAddress": own, "walletAddresses": {"evm": own, "solana": "1" * 32}})
    ended = Programs(folder_of("newest"), {"PATH": "/usr/bin:/bin"}).run(program, odd.url, TOKEN)

    assert ended.stdout.splitlines()[-1] == "8", ended.stderr
    assert TOKEN not in ended.stdout + ended.stderr
