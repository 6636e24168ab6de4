/** Bytes and their spellings, with what every browser and Node has. */

/** Bytes of this program's own memory, as WebCrypto takes them. */
export type Bytes = Uint8Array<ArrayBuffer>;

const LETTERS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** Return the bytes of a text. */
export function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

/** Join bytes. */
export function joined(...parts: Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Say whether two are the same bytes. */
export function same(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

/** Return bytes in hex, without 0x. */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Return bytes in base64. */
export function base64(bytes: Uint8Array): string {
  const parts = [];
  for (let at = 0; at < bytes.length; at += 8192) parts.push(String.fromCharCode(...bytes.subarray(at, at + 8192)));
  return btoa(parts.join(""));
}

/** Read base64, or base64url without its padding: the one spelling that bytes have; anything else is null. */
export function fromBase64(text: unknown, url = false): Bytes | null {
  if (typeof text !== "string" || (url && /[+/=]/.test(text))) return null;
  const plain = url ? text.replaceAll("-", "+").replaceAll("_", "/") : text;
  try {
    const bytes = Uint8Array.from(atob(plain), (letter) => letter.charCodeAt(0));
    return base64(bytes).replace(url ? /=+$/ : /$^/, "") === plain ? bytes : null;
  } catch {
    return null;
  }
}

/** Return bytes in base58, as Solana spells addresses. */
export function base58(bytes: Uint8Array): string {
  let number = BigInt(`0x${hex(bytes) || "0"}`);
  let text = "";
  for (; number > 0n; number /= 58n) text = LETTERS.charAt(Number(number % 58n)) + text;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return "1".repeat(zeros < 0 ? bytes.length : zeros) + text;
}

/** Return the SHA-256 of bytes. */
export async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** Return a short name of a text or of bytes: the same for the same. */
export async function digest(what: string | Uint8Array): Promise<string> {
  return hex(await sha256(typeof what === "string" ? utf8(what) : joined(what))).slice(0, 48);
}

/** Say whether a signature of Ed25519 is of these bytes. */
export async function signedBy(key: Bytes, signature: Bytes, message: Bytes): Promise<boolean> {
  try {
    const imported = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", imported, signature, message);
  } catch (failure) {
    // A runtime without Ed25519 must not read as a wrong signature.
    if (failure instanceof Error && failure.name === "NotSupportedError") throw failure;
    return false;
  }
}
