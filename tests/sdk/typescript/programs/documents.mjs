// Documents and messages, signed through the provider, an account of viem and a signer of ethers.
import { BrowserProvider, verifyMessage, verifyTypedData } from "ethers";
import { createWalletClient, custom } from "viem";

import { VaultSigner } from "custody-sdk/ethers";
import { vaultFromEnvironment } from "custody-sdk/node";
import { vaultProvider } from "custody-sdk/provider";
import { vaultAccount } from "custody-sdk/viem";

const chainId = Number(process.argv[2]);
const vault = await vaultFromEnvironment();
const provider = vaultProvider(vault, { chainId, node: "http://127.0.0.1:9" });
const account = await vaultAccount(vault);
const signer = new VaultSigner(vault);
const own = await signer.getAddress();
const wallet = createWalletClient({ account: own, transport: custom(provider) });
const browser = await new BrowserProvider(provider, chainId).getSigner();

const domain = { name: "Mail", version: "1", chainId, salt: `0x${"09".repeat(32)}` };
const types = {
  Mail: [{ name: "number", type: "uint256" }, { name: "of", type: "bytes32" }, { name: "by", type: "Person[]" }],
  Person: [{ name: "wallet", type: "address" }, { name: "raw", type: "bytes" }],
};
const message = { number: 2n ** 255n, of: `0x${"07".repeat(32)}`, by: [{ wallet: own, raw: "0x0102" }] };
const document = { domain, types, primaryType: "Mail", message };
const isOwn = (signature) => verifyTypedData(domain, types, message, signature) === own;
const said = { own };
said.documents = [
  isOwn(await wallet.signTypedData(document)), isOwn(await account.signTypedData(document)),
  isOwn(await browser.signTypedData(domain, types, message)) && isOwn(await signer.signTypedData(domain, types, message)),
];
const text = "I own this wallet.";
const bytes = Uint8Array.of(255, 0, 1);
const same = await signer.signMessage(text);
said.texts = [verifyMessage(text, same) === own, verifyMessage(text, await account.signMessage({ message: text })) === own, same === (await account.signMessage({ message: text }))];
const raw = { raw: "0xff0001" };
said.bytes = [
  verifyMessage(bytes, await signer.signMessage(bytes)) === own,
  verifyMessage(bytes, await account.signMessage({ message: raw })) === own,
  verifyMessage(bytes, await account.signMessage({ message: { raw: bytes } })) === own,
];
console.log(JSON.stringify(said));
process.exit(0);
