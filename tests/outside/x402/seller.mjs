// A seller by x402's own packages: Express with their middleware, and a facilitator that settles on the node of the tests.
// node seller.mjs NODE_URL TOKEN KEY
import express from "express";
import { x402Facilitator } from "@x402/core/facilitator";
import {
  permit2WitnessTypes,
  PERMIT2_ADDRESS,
  toFacilitatorEvmSigner,
  uptoPermit2WitnessTypes,
  x402ExactPermit2ProxyAddress,
  x402UptoPermit2ProxyAddress,
} from "@x402/evm";
import { ExactEvmScheme as Settler } from "@x402/evm/exact/facilitator";
import { ExactEvmScheme as Seller } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import { createPublicClient, createWalletClient, defineChain, http, recoverTypedDataAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const [, , url, token, key] = process.argv;
const NETWORK = "eip155:31337";
const PAY_TO = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
const chain = defineChain({
  id: 31337,
  name: "local",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
const account = privateKeyToAccount(key);
const reads = createPublicClient({ chain, transport: http(url), pollingInterval: 50 });
const writes = createWalletClient({ account, chain, transport: http(url) });
const signer = toFacilitatorEvmSigner({
  address: account.address,
  getCode: (args) => reads.getCode(args),
  readContract: (args) => reads.readContract(args),
  verifyTypedData: (args) => reads.verifyTypedData(args),
  writeContract: (args) => writes.writeContract({ gas: 500_000n, ...args }),
  sendTransaction: (args) => writes.sendTransaction(args),
  waitForTransactionReceipt: (args) => reads.waitForTransactionReceipt(args),
});
const facilitator = new x402Facilitator().register(NETWORK, new Settler(signer));
const server = new x402ResourceServer({
  verify: (payload, offer) => facilitator.verify(payload, offer),
  settle: (payload, offer) => facilitator.settle(payload, offer),
  getSupported: async () => facilitator.getSupported(),
}).register(NETWORK, new Seller());
const price = { asset: token, amount: "60", extra: { name: "USDC", version: "2" } };
const app = express();
app.use(express.json());
app.use(
  paymentMiddleware(
    { "GET /weather": { accepts: { scheme: "exact", network: NETWORK, payTo: PAY_TO, price }, description: "Weather" } },
    server,
  ),
);
app.get("/weather", (_, response) => response.json({ weather: "dry" }));
// Whose signature it is, by the types and the proxies of the packages.
app.post("/signer", async ({ body: { payload, upto } }, response) => {
  const { from, ...message } = payload.permit2Authorization;
  const proxy = upto ? x402UptoPermit2ProxyAddress : x402ExactPermit2ProxyAddress;
  response.json({
    theirs: proxy.toLowerCase() === message.spender.toLowerCase(),
    from,
    signer: await recoverTypedDataAddress({
      domain: { name: "Permit2", chainId: 31337, verifyingContract: PERMIT2_ADDRESS },
      types: upto ? uptoPermit2WitnessTypes : permit2WitnessTypes,
      primaryType: "PermitWitnessTransferFrom",
      message,
      signature: payload.signature,
    }),
  });
});
const listening = app.listen(0, "127.0.0.1", () => console.log(`listening on 127.0.0.1:${listening.address().port}`));
