// The client, as a test drives it: a line names a method of the vault, or a function, with what it is given.
import { createInterface } from "node:readline";
import { inspect } from "node:util";

import * as sdk from "custody-sdk";
import { vaultFromEnvironment } from "custody-sdk/node";

const KINDS = {
  bytes: (hex) => Uint8Array.from(Buffer.from(hex, "hex")),
  bigint: (digits) => BigInt(digits),
  number: (text) => Number(text),
};
// What JSON does not know comes as { "$": kind, value }.
const revive = (_, one) => (one !== null && typeof one === "object" && "$" in one ? KINDS[one.$](one.value) : one);
const show = (one) => {
  if (typeof one === "bigint") return one.toString();
  if (one instanceof Uint8Array) return Buffer.from(one).toString("hex");
  if (one instanceof sdk.Signed) return { ...one, signature: one.signature, signedTransaction: one.signedTransaction };
  if (one instanceof sdk.Paid) return { ...one, headers: one.headers };
  return one ?? null;
};

let vault;
const shown = [];

async function call(what, given) {
  if (what === "new") vault = new sdk.Vault(given[0]);
  else if (what === "environment") vault = await vaultFromEnvironment(...given);
  else if (what === "all") return Promise.all(given.map(([one, words]) => told(one, words)));
  else if (what === "abort") return vault.pay(...given, "evm:native", { waitMs: 60_000, signal: AbortSignal.timeout(1_000) });
  else if (what === "set") Object.assign(process.env, given[0]);
  else if (what === "shown") return shown.join("\n");
  else if (what.startsWith("vault.")) return vault[what.slice("vault.".length)](...given);
  else return sdk[what](...given);
}

async function told(what, given) {
  try {
    const value = await call(what, given);
    if (what !== "shown") note(value);
    return { value: show(value) };
  } catch (error) {
    note(error);
    const { name, status, code, message, data, reasons, txId, approvalId, retryAfter } = error;
    return { error: { name, status, code, message, data, reasons, txId, approvalId, retryAfter } };
  }
}

/** Keep whatever programs show of a thing without being told to look inside. */
function note(thing) {
  for (const one of [thing, vault]) {
    shown.push(inspect(one, { showHidden: true, depth: 20, getters: false }), String(one));
    shown.push(JSON.stringify(one, (_, value) => (typeof value === "bigint" ? "" : value)) ?? "");
    if (one instanceof Error) shown.push(String(one.stack), inspect(one.cause, { showHidden: true, depth: 20 }));
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await told(...JSON.parse(line, revive)))}\n`);
}
