// An account and a signer ask a service that answers with bytes of its own.
import { Vault } from "custody-sdk";
import { VaultSigner } from "custody-sdk/ethers";
import { vaultAccount } from "custody-sdk/viem";

const [to, cases] = process.argv.slice(2);
const { SERVICE_URL: url, SERVICE_AGENT_TOKEN: token } = process.env;
const vault = new Vault({ url, token, agent: "buyer" });
const fields = { to, value: 5n, nonce: 7, chainId: 31337, maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 9n };

async function codeOf(call) {
  try {
    await call();
    return "signed";
  } catch (error) {
    return `${error.name} ${error.code}`;
  }
}

const said = {};
// The first answer is the wallet's.
const account = await vaultAccount(vault);
const signer = new VaultSigner(Object.create(vault, {
  wallet: { value: async () => ({ walletAddress: account.address }) },
  send: { value: (...given) => vault.send(...given) },
}));
for (const name of cases.split(",")) {
  said[name] = [
    await codeOf(() => account.signTransaction({ ...fields, type: "eip1559", gas: 21_000n })),
    await codeOf(() => signer.signTransaction({ ...fields, type: 2, gasLimit: 21_000n })),
  ];
}
console.log(JSON.stringify(said));
