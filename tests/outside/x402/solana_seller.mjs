// A seller on Solana by x402's own packages, whose facilitator verifies and settles on the node of the tests.
// node solana_seller.mjs NODE_URL MINT KEY PAY_TO HOW: `fresh` puts a recent blockhash into the offer, `bare` does not.
import express from "express";
import { createKeyPairSignerFromPrivateKeyBytes, createSolanaRpc } from "@solana/kit";
import { x402Facilitator } from "@x402/core/facilitator";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import { toFacilitatorSvmSigner } from "@x402/svm";
import { ExactSvmScheme as Settler } from "@x402/svm/exact/facilitator";
import { ExactSvmScheme as Seller } from "@x402/svm/exact/server";

const [, , url, asset, key, payTo, how] = process.argv;
const NETWORK = "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1";
const sponsor = await createKeyPairSignerFromPrivateKeyBytes(Buffer.from(key, "hex"));
const signer = toFacilitatorSvmSigner(sponsor, { [NETWORK]: createSolanaRpc(url) });
const facilitator = new x402Facilitator().register(NETWORK, new Settler(signer));
const server = new x402ResourceServer({
  verify: (payload, offer) => facilitator.verify(payload, offer),
  settle: (payload, offer) => facilitator.settle(payload, offer),
  getSupported: async () => facilitator.getSupported(),
}).register(NETWORK, new Seller(how === "fresh" ? { rpcUrl: url } : {}));
const price = { asset, amount: "60" };
const app = express();
app.use(
  paymentMiddleware(
    { "GET /weather": { accepts: { scheme: "exact", network: NETWORK, payTo, price }, description: "Weather" } },
    server,
  ),
);
app.get("/weather", (_, response) => response.json({ weather: "dry" }));
const listening = app.listen(0, "127.0.0.1", () => console.log(`listening on 127.0.0.1:${listening.address().port}`));
