/**
 * Receipts, checked offline: statements of the signer about what it signed, each checked with its public key.
 *
 * The check is worth as much as the way on which the key set came: get `/.well-known/jwks.json` once, on one that you
 * trust. Votes inside are not checked; `custody receipt verify` does.
 */

import { type Bytes, fromBase64, signedBy, utf8 } from "./bytes.js";
import { isObject, NotGenuine } from "./errors.js";

const FORMAT = "custody-receipt-v1";
const DEEPEST = 64;

/**
 * Return the statement of a receipt, or throw NotGenuine.
 *
 * `answer` is what `Vault.receipt` returns, `jwks` the key set. Name the transaction that you mean: a genuine receipt of
 * another one proves nothing about yours.
 */
export async function verifyReceipt(
  answer: object,
  jwks: object,
  meant: { txId?: string; issuer?: string } = {},
): Promise<Record<string, unknown>> {
  const { receipt, kid, signature } = answer as Record<string, unknown>;
  const { keys } = jwks as Record<string, unknown>;
  const found = (Array.isArray(keys) ? keys : []).filter((one) => isObject(one) && one.kid === kid);
  const key: unknown = found[0];
  // A key of another use signs other things, which could read as a receipt.
  if (!isObject(receipt) || !isObject(key) || found.length !== 1 || key.use !== "receipt") {
    throw refused("no key of this kid that is for receipts is in the key set");
  }
  if (key.kty !== "OKP" || key.crv !== "Ed25519") throw refused("the key is none of Ed25519");
  if (!(await signedBy(bytes(key.x, 32), bytes(signature, 64), canonical(receipt)))) {
    throw refused("the signature does not fit: it was changed, or another key made it");
  }
  if (receipt.format !== FORMAT) throw refused("it is of another format");
  if (meant.txId !== undefined && receipt.txId !== meant.txId) throw refused("it is of another transaction");
  if (meant.issuer !== undefined && receipt.issuer !== meant.issuer) throw refused("it is of another issuer");
  return receipt;
}

/** Return the bytes that are signed: RFC 8785 for what receipts consist of. */
export function canonical(receipt: object): Bytes {
  return utf8(spelled(receipt, 0));
}

function spelled(value: unknown, depth: number): string {
  if (depth > DEEPEST) throw refused("it is nested too deeply");
  if (Array.isArray(value)) return `[${value.map((one) => spelled(one, depth + 1)).join(",")}]`;
  if (isObject(value)) {
    const names = Object.keys(value).sort();
    if (!names.every((name) => /^[\0-\x7f]*$/.test(name))) throw refused("it has a name that is not ASCII");
    return `{${names.map((name) => `${JSON.stringify(name)}:${spelled(value[name], depth + 1)}`).join(",")}}`;
  }
  // Half of a surrogate pair has no bytes.
  if (typeof value === "string" && /\p{Surrogate}/u.test(value)) throw refused("it has a text that is none");
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw refused("it has a number that readers round");
  if (!["string", "number", "boolean"].includes(typeof value) && value !== null) throw refused("it is no JSON");
  return JSON.stringify(value);
}

function bytes(text: unknown, size: number): Bytes {
  const found = typeof text === "string" && text.length <= 2 * size ? fromBase64(text, true) : null;
  if (found?.length !== size) throw refused("key or signature is not in base64url");
  return found;
}

function refused(why: string): NotGenuine {
  return new NotGenuine(0, "not_genuine", `The receipt proves nothing: ${why}.`);
}
