/** The requests of the client, one function for each: what an argument must be, and what the answer becomes. */

import { base64, hex } from "./bytes.js";
import { BadArgument, Failed, isObject, Refused, Waiting } from "./errors.js";
import type * as types from "./types.js";
import { type Ask, keyOf, paymentName, transactionId } from "./wire.js";

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const ASSET = /^evm:([1-9][0-9]{0,15}):(0x[0-9a-fA-F]{40})$/;
const TRANSFER = "0xa9059cbb";
const DEEPEST = 64;
export const NATIVE = "evm:native";

/** A number without loss: what is beyond 2^53 is a bigint or a text. */
export type Amount = bigint | number | string;

/** What was signed. The hash is there where a chain knows it, the bytes where the service did not send them. */
export class Signed {
  // Anyone who holds these can use them, so they are shown only when asked for.
  readonly #signature: string | null;
  readonly #signedTransaction: string | null;

  constructor(
    readonly txId: string,
    readonly txHash: string | null,
    signature: string | null,
    signedTransaction: string | null,
  ) {
    this.#signature = signature;
    this.#signedTransaction = signedTransaction;
  }

  /** The signature, of a message or document. */
  get signature(): string | null {
    return this.#signature;
  }

  /** The transaction with its signature, where the service did not send it. */
  get signedTransaction(): string | null {
    return this.#signedTransaction;
  }
}

/** A payment by x402: send the request again with this header. */
export class Paid {
  readonly #value: string;

  constructor(
    readonly txId: string,
    readonly header: string,
    value: string,
    readonly asset: string,
    readonly amount: string,
    readonly expiresAt: string,
  ) {
    this.#value = value;
  }

  /** The header's value. */
  get value(): string {
    return this.#value;
  }

  /** The header as an object. */
  get headers(): Record<string, string> {
    return { [this.header]: this.#value };
  }
}

/** Return an amount of whole coins in smallest units: `units("42.50", 6)` is 42500000n. Never rounds. */
export function units(amount: string, decimals: number): bigint {
  const found = typeof amount === "string" && amount.length <= 200 ? /^([0-9]+)(?:\.([0-9]+))?$/.exec(amount) : null;
  const part = (found?.[2] ?? "").replace(/0+$/, "");
  const whole = found && part.length <= decimals ? BigInt((found[1] ?? "") + part.padEnd(decimals, "0")) : -1n;
  if (whole >= 0n && whole < 2n ** 256n) return whole;
  throw new BadArgument(0, "bad_amount", `amount must be a text such as '42.50', with at most ${decimals} places.`);
}

/** Check an amount in smallest units, and return it as it is sent. */
export function smallest(amount: Amount, name = "amount"): string {
  const exact = typeof amount !== "number" || Number.isSafeInteger(amount);
  const text = String(amount);
  if (exact && /^[0-9]{1,78}$/.test(text) && BigInt(text) < 2n ** 256n) return BigInt(text).toString();
  const cure = "such as 42500000n for 42.50 USDC; see `units`. A number beyond 2^53 is not exact: give a bigint.";
  throw new BadArgument(0, "bad_amount", `${name} must be whole smallest units, ${cure}`);
}

/** Check an EVM address. */
export function address(text: unknown, name = "to"): string {
  if (typeof text === "string" && ADDRESS.test(text)) return text;
  throw new BadArgument(0, "bad_address", `${name} must be an EVM address: 0x and 40 hex digits.`);
}

/** Return a value as JSON that every reader reads alike: large integers as text, bytes as hex. */
export function plain(value: unknown, depth = 0): unknown {
  if (depth > DEEPEST) throw new BadArgument(0, "bad_document", `the document is nested more than ${DEEPEST} deep.`);
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "bigint") {
    const safe = value <= Number.MAX_SAFE_INTEGER && value >= -Number.MAX_SAFE_INTEGER;
    return safe ? Number(value) : value.toString();
  }
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  if (value instanceof Uint8Array) return `0x${hex(value)}`;
  if (Array.isArray(value)) return value.map((one) => plain(one, depth + 1));
  if (Object.prototype.toString.call(value) === "[object Object]" && isObject(value)) {
    const said = Object.entries(value).filter(([, one]) => one !== undefined);
    return Object.fromEntries(said.map(([name, one]) => [name, plain(one, depth + 1)]));
  }
  const what = typeof value === "number" ? "number that is not exact (give a bigint or a text)" : typeof value;
  throw new BadArgument(0, "bad_document", `the document has a ${what}, which JSON does not know exactly.`);
}

/** Return the order that pays `amount` of an asset. */
export function transfer(to: string, amount: Amount, asset: string, chainId?: number): types.EvmOrder {
  const sent = smallest(amount);
  address(to);
  if (asset === NATIVE) return { to, value: sent, ...(chainId === undefined ? {} : { chainId }) };
  const [, chain, token] = ASSET.exec(asset) ?? [];
  if (chain === undefined || token === undefined) {
    const sentence = "asset must be evm:native or evm:<chainId>:<0x token>. Solana: custody-sdk/solana.";
    throw new BadArgument(0, "bad_asset", sentence);
  }
  if (chainId !== undefined && chainId !== Number(chain)) {
    throw new BadArgument(0, "bad_asset", `chainId is ${chainId}, and asset is on chain ${chain}.`);
  }
  const words = [to.slice(2).toLowerCase(), BigInt(sent).toString(16)].map((word) => word.padStart(64, "0"));
  return { to: token, value: "0", data: TRANSFER + words.join(""), chainId: Number(chain) };
}

/** Ask for a signature, under a name. */
export async function sign(
  agent: string,
  operation: "signEvmTransaction" | "signTypedData" | "signMessage" | "signSolanaTransaction",
  name: string,
  body: object,
): Promise<Ask<Signed>> {
  return { operation, read: signed, agent, ...(await named(agent, operation, name, body)) };
}

/** Ask for the signature of an EIP-712 document. */
export function typedData(agent: string, name: string, document: object): Promise<Ask<Signed>> {
  const known = ["domain", "types", "primaryType", "message"];
  const extra = Object.keys(document).filter((one) => !known.includes(one));
  if (extra.length) {
    const said = extra.sort().join(", ").slice(0, 200);
    throw new BadArgument(0, "bad_document", `the document has fields that nobody reads: ${said}.`);
  }
  const fields = Object.entries(document).map(([field, one]) => [field, plain(one)]);
  return sign(agent, "signTypedData", name, Object.fromEntries(fields));
}

/** Ask for the signature of a message: a text, or bytes. */
export function message(agent: string, name: string, said: string | Uint8Array, family: string): Promise<Ask<Signed>> {
  const bytes = (raw: Uint8Array) => (family === "evm" ? `0x${hex(raw)}` : base64(raw));
  const body = typeof said === "string" ? { message: said } : { raw: bytes(said) };
  return sign(agent, "signMessage", name, { chainFamily: family, ...body });
}

/** Ask for the signatures of a PSBT. */
export async function psbt(agent: string, name: string, order: types.PsbtOrder): Promise<Ask<types.PsbtSigned>> {
  const operation = "signBitcoinPsbt";
  return { operation, read: shown<types.PsbtSigned>, agent, ...(await named(agent, operation, name, order)) };
}

/** Ask for the payment of a demand by x402. */
export async function demand(
  agent: string,
  name: string,
  asked: object | string,
  resource?: string,
): Promise<Ask<Paid>> {
  const body = {
    demand: typeof asked === "string" ? asked : plain(asked),
    referenceId: paymentName(name),
    ...(resource === undefined ? {} : { resource }),
  };
  return { operation: "payDemand", read: paid, agent, body, key: await keyOf(agent, "payDemand", name) };
}

/** Ask what would become of an order now. */
export function simulation(agent: string, kind: string, request: object): Ask<types.Simulated> {
  return { operation: "simulateOrder", read: shown<types.Simulated>, agent, body: { kind, request: plain(request) } };
}

/** Ask to take back an order that waits. */
export async function withdrawal(agent: string, txId: string): Promise<Ask<types.Withdrawn>> {
  const key = await keyOf(agent, "withdrawTransaction", transactionId(txId));
  return { operation: "withdrawTransaction", read: shown<types.Withdrawn>, agent, txId, body: {}, key };
}

/** Return what a transaction came to; throws while a person decides, and where it was refused. */
export function decided(found: types.Transaction): Signed {
  const txId = String(found.id);
  if (found.status === "pending_approval") {
    throw new Waiting(202, "approval_required", "A person decides; nothing needs to be sent again.", { txId });
  }
  if (found.status === "rejected") {
    const why = found.reason || found.statusDetail || "Refused.";
    throw new Refused(403, found.statusDetail || "approval_denied", why, { txId });
  }
  return new Signed(txId, found.txHash, found.signature ?? null, found.signedTransaction ?? null);
}

/** Say whether the chain has executed it; throws where it never will. */
export function settled(found: types.Transaction): boolean {
  decided(found);
  if (found.status === "failed") {
    throw new Failed(200, "failed", found.statusDetail || "The chain did not execute it.", { txId: found.id });
  }
  return found.status === "confirmed";
}

/** Read an object. */
export function shown<T>(data: unknown): T {
  if (!isObject(data)) throw new TypeError();
  return data as T;
}

async function named(agent: string, operation: string, name: string, body: object) {
  const sent: Record<string, unknown> = { ...body, referenceId: paymentName(name) };
  return { body: sent, key: await keyOf(agent, operation, name) };
}

function signed(data: unknown): Signed {
  const found = shown<Record<string, unknown>>(data);
  const [hash, signature, bytes] = [found.txHash, found.signature, found.signedTransaction].map(textOrNull);
  if (!(hash || signature || bytes)) throw new TypeError();
  return new Signed(transactionId(found.txId), hash ?? null, signature ?? null, bytes ?? null);
}

function paid(data: unknown): Paid {
  const { txId, header, value, asset, amount, expiresAt } = shown<Record<string, unknown>>(data);
  const texts = [txId, header, value, asset, amount, expiresAt].map((one) => {
    if (typeof one !== "string" || !one) throw new TypeError();
    return one;
  }) as [string, string, string, string, string, string];
  // What the header is called is decided here: an answer must not name `Authorization`.
  if (!["PAYMENT-SIGNATURE", "X-PAYMENT"].includes(texts[1])) throw new TypeError();
  return new Paid(...texts);
}

function textOrNull(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "string") throw new TypeError();
  return value;
}
