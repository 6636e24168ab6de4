/**
 * Custody's client for agents: pay, sign and wait, within rules, without a key.
 *
 *     const vault = new Vault({ url, token });
 *     const paid = await vault.pay("invoice-4711", "0x...", units("42.50", 6), "evm:8453:0x...", { waitMs: 60_000 });
 *
 * It imports nothing. `custody-sdk/provider`, `/viem`, `/ethers`, `/kit`, `/web3js` and `/x402` make existing programs use
 * it; `custody-sdk/node` makes one of the environment.
 */

export { type Amount, NATIVE, Paid, Signed, units } from "./asks.js";
export { type Chain, type Settings, Vault, VERSION, type Waits } from "./client.js";
export {
  BadArgument, Failed, NameTaken, NotAsked, NotGenuine, OutcomeUnknown, Refused, type Told, TryLater, VaultError, Waiting,
} from "./errors.js";
export { canonical, verifyReceipt } from "./receipts.js";
export type * from "./types.js";
export { verifyWebhook } from "./webhooks.js";
