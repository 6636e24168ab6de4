// A client that pays by x402's own packages, from a key of its own: at the newest and the lowest version that are tried.
// node payer.mjs KEY
import express from "express";
import { registerExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { registerExactEvmScheme as registerLowest } from "lowest-x402-evm/exact/client";
import { wrapFetchWithPayment as wrapLowest } from "lowest-x402-fetch";
import { privateKeyToAccount } from "viem/accounts";

const signer = privateKeyToAccount(process.argv[2]);
// Their own bounds are put aside: what holds is what the proxy leaves them to pay.
const client = (register) => register(new x402Client().setSpendControls(false), { signer });
const VERSIONS = {
  newest: [wrapFetchWithPayment, client(registerExactEvmScheme)],
  lowest: [wrapLowest, client(registerLowest)],
};
const app = express();
app.use(express.json());
app.post("/", async ({ body: { url, headers, version } }, response) => {
  // How many requests left, and how many of them with a payment of its own.
  const sent = { requests: 0, payments: 0 };
  const counting = async (input, init) => {
    const request = new Request(input, init);
    sent.requests += 1;
    sent.payments += request.headers.has("PAYMENT-SIGNATURE") || request.headers.has("X-PAYMENT") ? 1 : 0;
    return fetch(request);
  };
  const [wrap, paying] = VERSIONS[version];
  try {
    const answer = await wrap(counting, paying)(url, { headers });
    response.json({ ...sent, status: answer.status, paid: answer.headers.get("X-Service-Payment") });
  } catch (problem) {
    response.json({ ...sent, problem: problem.message });
  }
});
const listening = app.listen(0, "127.0.0.1", () => console.log(`listening on 127.0.0.1:${listening.address().port}`));
