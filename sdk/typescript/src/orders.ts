/** What EVM adapters share: a transaction of somebody's library becomes an order, or is refused before asking. */

import { address, type Amount, smallest } from "./asks.js";
import { digest } from "./bytes.js";
import { BadArgument, isObject, NotAsked } from "./errors.js";
import type { EvmOrder } from "./types.js";

// Everything that a type 2 transaction has, and who sends it.
const FIELDS = new Set([
  "type", "from", "to", "value", "data", "nonce", "gas", "chainId", "accessList", "maxFeePerGas", "maxPriorityFeePerGas",
]);
const NEEDED = ["nonce", "gas", "chainId", "maxFeePerGas", "maxPriorityFeePerGas"] as const;
const SAYS = `to, value, data, ${NEEDED.join(", ")}`;

/** An order with all that a transaction has. */
export type WholeOrder = Required<{ [field in keyof EvmOrder]: NonNullable<EvmOrder[field]> }>;

/** Return the order of a transaction; what an order cannot say throws before anything is sent. */
export function orderOf(given: object, own: string): EvmOrder {
  const said = Object.entries(given).filter(([, value]) => value !== undefined && value !== null);
  const fields: Record<string, unknown> = Object.fromEntries(said);
  if ("input" in fields) {
    const { input } = fields;
    delete fields.input;
    if ((fields.data ??= input) !== input) throw unsupported("data and input differ");
  }
  const extra = Object.keys(fields).filter((field) => !FIELDS.has(field));
  if (extra.length) throw unsupported(`${extra.sort().join(", ").slice(0, 200)}: only type 2 is signed, with ${SAYS}`);
  const listed = Array.isArray(fields.accessList) ? fields.accessList.length > 0 : "accessList" in fields;
  if (listed || !["2", "eip1559"].includes(text(fields.type ?? 2))) {
    throw unsupported(`only type 2 without an access list is signed, with ${SAYS}`);
  }
  if (!fields.to) throw unsupported("a transaction without `to` creates a contract, which no rule could judge");
  if (fields.from !== undefined && address(fields.from, "from").toLowerCase() !== own.toLowerCase()) {
    throw new BadArgument(0, "bad_transaction", `from is another wallet: this one is ${own}.`);
  }
  const order: EvmOrder = { to: address(fields.to), value: number(fields.value ?? 0, "value") };
  if (fields.data !== undefined && fields.data !== "" && fields.data !== "0x") order.data = hexText(fields.data);
  for (const field of NEEDED) {
    if (fields[field] === undefined) continue;
    const found = number(fields[field], field);
    // The order's own names and kinds: chain and nonce are numbers there, the rest is text.
    if (field === "chainId" || field === "nonce") order[field] = smaller(found, field);
    else order[field === "gas" ? "gasLimit" : field] = found;
  }
  return order;
}

/** Return the order of a transaction that says everything, as an account needs it. */
export function wholeOrder(given: object, own: string, chainId?: number): WholeOrder {
  const order = orderOf(given, own);
  for (const field of NEEDED) {
    const absent = order[field === "gas" ? "gasLimit" : field] === undefined;
    if (absent) throw new BadArgument(0, "bad_transaction", `${field} is missing; \`vaultProvider\` leaves it to the service.`);
  }
  if (chainId !== undefined && order.chainId !== chainId) {
    throw new BadArgument(0, "bad_transaction", `chainId is not ${chainId}.`);
  }
  return { data: "0x", ...order, broadcast: false } as WholeOrder;
}

/** Return the name of something that a library signs: the same for the same. */
export async function nameOf(kind: string, what: object | string | Uint8Array): Promise<string> {
  return `${kind}-${await digest(typeof what === "string" || what instanceof Uint8Array ? what : JSON.stringify(what))}`;
}

/** Return the text that bytes are, so that people can read it; what is no text stays bytes. */
export function readable(bytes: Uint8Array): string | Uint8Array {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return bytes;
  }
}

/** Throw unless what came back is what was asked for. */
export function insist(fits: boolean, what: string, txId: string): void {
  if (!fits) throw new NotAsked(what, txId);
}

/** Return a signature in hex, of 65 bytes. */
export function signatureOf(signed: { txId: string; signature: string | null }): `0x${string}` {
  if (/^0x[0-9a-f]{130}$/i.test(signed.signature ?? "")) return signed.signature as `0x${string}`;
  throw new NotAsked("The answer has no signature.", signed.txId);
}

function number(value: unknown, field: string): string {
  const big = typeof value === "string" && /^0x[0-9a-f]{1,64}$/i.test(value) ? BigInt(value) : value;
  return smallest(isObject(big) ? "" : (big as Amount), field);
}

function smaller(digits: string, field: string): number {
  const found = Number(digits);
  if (Number.isSafeInteger(found)) return found;
  throw new BadArgument(0, "bad_transaction", `${field} is beyond 2^53.`);
}

function text(type: unknown): string {
  return typeof type === "string" && /^0x0*[0-9a-f]$/i.test(type) ? String(Number(type)) : String(type);
}

function hexText(data: unknown): string {
  if (typeof data === "string" && /^0x(?:[0-9a-f]{2})*$/i.test(data)) return data;
  throw new BadArgument(0, "bad_transaction", "data must be 0x and pairs of hex digits.");
}

function unsupported(what: string): BadArgument {
  return new BadArgument(0, "unsupported", `${what}.`);
}
