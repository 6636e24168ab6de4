// A provider, an account of viem and a signer of ethers, whose node lies about everything that it is asked.
import { JsonRpcProvider } from "ethers";
import { createWalletClient, http } from "viem";

import { VaultError } from "custody-sdk";
import { VaultSigner } from "custody-sdk/ethers";
import { vaultFromEnvironment } from "custody-sdk/node";
import { vaultProvider } from "custody-sdk/provider";
import { vaultAccount } from "custody-sdk/viem";

const [node, to, chain] = process.argv.slice(2);
const chainId = Number(chain);
const vault = await vaultFromEnvironment();

async function codeOf(call) {
  try {
    await call();
    return "signed";
  } catch (error) {
    for (let one = error; one; one = one.cause) if (one instanceof VaultError) return `${one.name} ${one.code}`;
    throw error;
  }
}

const provider = vaultProvider(vault, { chainId, node, name: () => "invoice-1" });
const call = (method, ...params) => provider.request({ method, params });
const [from] = await call("eth_accounts");
const gas = await call("eth_estimateGas", { from, to, value: "0x1" });
await call("eth_sendTransaction", { from, to, value: "0x1", gas });
const [found] = await vault.find("invoice-1");
const said = { provider: (await vault.confirm(found.id)).status, chain: await call("eth_chainId"), estimated: gas };

// What viem and ethers make of a node's words: its chain, nonce, gas and fees.
const sane = { gas: 21_000n, maxFeePerGas: 10n ** 9n, maxPriorityFeePerGas: 1n };
for (const [name, known] of [["any_chain", {}], ["one_chain", { chainId }]]) {
  const account = await vaultAccount(vault, known);
  const filled = await createWalletClient({ account, transport: http(node) }).prepareTransactionRequest({ chain: null, to, value: 2n });
  said[`viem_${name}`] = [
    filled.chainId, filled.nonce,
    await codeOf(() => account.signTransaction(filled)),
    await codeOf(() => account.signTransaction({ ...filled, ...sane })),
  ];
  const signer = new VaultSigner(vault, new JsonRpcProvider(node), known);
  const asked = await signer.populateTransaction({ to, value: 3n });
  const { gas: gasLimit, ...fees } = sane;
  said[`ethers_${name}`] = [
    Number(asked.chainId), asked.nonce,
    await codeOf(() => signer.signTransaction(asked)),
    await codeOf(() => signer.signTransaction({ ...asked, gasLimit, ...fees })),
  ];
}
console.log(JSON.stringify(said));
process.exit(0);
