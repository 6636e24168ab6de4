// viem and ethers pay by the vault: by a provider, several at once, and by an account and a signer.
import { BrowserProvider, JsonRpcProvider, NonceManager } from "ethers";
import { createPublicClient, createWalletClient, custom, defineChain, http, publicActions } from "viem";
import { createNonceManager, jsonRpc } from "viem/nonce";

import { VaultError } from "custody-sdk";
import { VaultSigner } from "custody-sdk/ethers";
import { vaultFromEnvironment } from "custody-sdk/node";
import { vaultProvider } from "custody-sdk/provider";
import { vaultAccount } from "custody-sdk/viem";

const [node, to, chain] = process.argv.slice(2);
const chainId = Number(chain);
const vault = await vaultFromEnvironment();
const local = defineChain({
  id: chainId, name: "local", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [node] } },
});
const reader = createPublicClient({ chain: local, transport: http(node), pollingInterval: 200 });
const five = (one) => Promise.all([1, 2, 3, 4, 5].map(one));
const mined = async (hashes) => Promise.all(hashes.map(async (hash) => (await reader.waitForTransactionReceipt({ hash })).status));

/** What a call ended in: the code that its library shows, and ours. */
async function codeOf(call) {
  try {
    await call();
    return "sent";
  } catch (error) {
    const all = [];
    for (let one = error; one && all.length < 9; one = one.cause ?? one.error ?? one.info?.error) all.push(one);
    const ours = all.find((one) => one instanceof VaultError)?.code ?? all.find((one) => one.data?.code)?.data.code;
    const numbers = all.map((one) => one.code).filter((one) => Number.isInteger(one));
    return [error.name === "Error" ? error.code : error.name, numbers.at(-1) ?? null, ours ?? null];
  }
}

const provider = vaultProvider(vault, { chainId, node });
const said = { chain: await provider.request({ method: "eth_chainId" }) };

// ---- the provider, in viem
const [own] = await provider.request({ method: "eth_requestAccounts" });
const wallet = createWalletClient({ account: own, chain: local, transport: custom(provider) }).extend(publicActions);
said.own = own;
said.viem = await mined(await five(() => wallet.sendTransaction({ to, value: 1n })));
const hostile = {
  refused: { to, value: 500n }, waiting: { to, value: 50n }, creation: { data: "0x00", gas: 100_000n },
  legacy: { to, value: 1n, gasPrice: 1n, type: "legacy" }, listed: { to, value: 1n, accessList: [{ address: to, storageKeys: [] }] },
};
said.viem_ends = Object.fromEntries(
  await Promise.all(Object.entries(hostile).map(async ([name, one]) => [name, await codeOf(() => wallet.sendTransaction(one))])),
);
said.raw = {};
for (const [name, method, params] of [
  ["other_from", "eth_sendTransaction", [{ from: to, to, value: "0x1" }]],
  ["other_chain", "eth_sendTransaction", [{ from: own, to, value: "0x1", chainId: "0x1" }]],
  ["blobs", "eth_sendTransaction", [{ from: own, to, value: "0x1", blobVersionedHashes: ["0x01"] }]],
  ["handed_over", "eth_sendTransaction", [{ from: own, to, value: "0x1", authorizationList: [{}] }]],
  ["personal_sign", "personal_sign", ["0x01", own]],
  ["eth_sign", "eth_sign", [own, "0x01"]],
  ["eth_signTransaction", "eth_signTransaction", [{ from: own, to, value: "0x1" }]],
  ["wallet_sendCalls", "wallet_sendCalls", [{}]],
  ["others_document", "eth_signTypedData_v4", [to, "{}"]],
  ["nothing", "eth_sendTransaction", []],
]) {
  said.raw[name] = await codeOf(() => provider.request({ method, params }));
}
said.node = BigInt(await provider.request({ method: "eth_blockNumber" })) > 0n;

// ---- the provider, in ethers
const browser = new BrowserProvider(provider, undefined, { pollingInterval: 200 });
const signer = await browser.getSigner();
const sent = await five(() => signer.sendTransaction({ to, value: 1n }));
said.ethers = (await Promise.all(sent.map((one) => one.wait()))).map((one) => one.status);
const ethersEnds = { refused: { to, value: 500n, gasLimit: 21_000n }, waiting: { to, value: 50n, gasLimit: 21_000n } };
said.ethers_ends = {};
for (const [name, one] of Object.entries(ethersEnds)) said.ethers_ends[name] = await codeOf(() => signer.sendTransaction(one));
said.ethers_ends.message = await codeOf(() => signer.signMessage("hello"));

// ---- an account of viem
const account = await vaultAccount(vault);
const direct = createWalletClient({ account, chain: local, transport: http(node) });
said.account = await mined([await direct.sendTransaction({ to, value: 2n }), await direct.sendTransaction({ to, value: 2n })]);
const counted = { ...account, nonceManager: createNonceManager({ source: jsonRpc() }) };
const many = createWalletClient({ account: counted, chain: local, transport: http(node) });
said.counted = await mined(await five(() => many.sendTransaction({ to, value: 2n })));
const whole = { to, value: 1n, nonce: 900, gas: 21_000n, chainId, maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n };
said.account_ends = {
  refused: await codeOf(() => direct.sendTransaction({ to, value: 500n })),
  waiting: await codeOf(() => account.signTransaction({ ...whole, value: 50n })),
  other_from: await codeOf(() => account.signTransaction({ ...whole, from: to })),
  creation: await codeOf(() => account.signTransaction({ ...whole, to: undefined, data: "0x00" })),
  blobs: await codeOf(() => account.signTransaction({ ...whole, type: "eip4844", blobs: ["0x01"], maxFeePerBlobGas: 1n })),
  handed_over: await codeOf(() => account.signTransaction({ ...whole, type: "eip7702", authorizationList: [] })),
  legacy: await codeOf(() => account.signTransaction({ ...whole, type: "legacy" })),
  listed: await codeOf(() => account.signTransaction({ ...whole, accessList: [{ address: to, storageKeys: [] }] })),
  no_nonce: await codeOf(() => account.signTransaction({ ...whole, nonce: undefined })),
  hash: await codeOf(() => account.sign({ hash: `0x${"01".repeat(32)}` })),
  authorization: await codeOf(() => account.signAuthorization({ address: to, chainId, nonce: 0 })),
};

// ---- a signer of ethers
// Answers are kept for no time: a nonce from before the last payment would be one too small.
const read = new JsonRpcProvider(node, chainId, { pollingInterval: 200, staticNetwork: true, cacheTimeout: -1 });
const one = new VaultSigner(vault, read);
said.signer = (await (await one.sendTransaction({ to, value: 3n })).wait()).status;
const manager = new NonceManager(one);
const managed = await five(() => manager.sendTransaction({ to, value: 3n, gasLimit: 21_000n }));
said.managed = (await Promise.all(managed.map((each) => each.wait()))).map((each) => each.status);
const { gas: gasLimit, ...fields } = whole;
said.signer_ends = {
  refused: await codeOf(() => one.sendTransaction({ to, value: 500n, gasLimit })),
  waiting: await codeOf(() => one.sendTransaction({ to, value: 50n, gasLimit })),
  other_from: await codeOf(() => one.signTransaction({ ...fields, gasLimit, from: to })),
  creation: await codeOf(() => one.signTransaction({ ...fields, gasLimit, to: null, data: "0x00" })),
  blobs: await codeOf(() => one.signTransaction({ ...fields, gasLimit, type: 3, blobVersionedHashes: [`0x01${"00".repeat(31)}`] })),
  handed_over: await codeOf(() => one.signTransaction({ ...fields, gasLimit, type: 4 })),
  legacy: await codeOf(() => one.signTransaction({ ...fields, gasLimit, type: 0 })),
  listed: await codeOf(() => one.signTransaction({ ...fields, gasLimit, accessList: [[to, []]] })),
  no_nonce: await codeOf(() => one.signTransaction({ ...fields, gasLimit, nonce: undefined })),
};
console.log(JSON.stringify(said));
process.exit(0);
