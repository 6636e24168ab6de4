// What this device reads of an order by itself, beside the service's words. It reads the simplest kinds alone: a payment
// of a chain's coin, and the calls `transfer` and `approve` of a token. It guards against rows that somebody changed and
// against a decoder that errs; against a service that lies it guards nobody, for this file comes from the service too.

const EXACT = new Set(["evm", "typed_data", "bitcoin", "evm_message", "solana_message", "x402", "solana_x402"]);
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const AMOUNT = /^(?:0|[1-9][0-9]{0,77})$/;
const CALLDATA = /^0x(?:[0-9a-fA-F]{2})*$/;
// A first argument of 32 bytes whose first 12 are empty, and a second one.
const TWO_WORDS = /^0x([0-9a-f]{8})0{24}([0-9a-f]{40})([0-9a-f]{64})$/;
const UNLIMITED = 2n ** 128n;

// Differing words are a reason to stop; what this device cannot read is none.
export class Differs extends Error {}

// Whether the digest could be made here; Differs if it is another one.
export async function checkDigest(item) {
  if (!EXACT.has(item.kind) || !crypto.subtle) return false;
  const text = new TextEncoder().encode(`custody-order-v1:${item.kind}:${item.order}`);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", text));
  const own = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (own === item.digest) return true;
  throw new Differs("The order that came with these words is not the one that your decision would name.");
}

// The order in one sentence, or null where this device cannot read it.
export function readOrder(kind, text) {
  if (kind !== "evm") return null;
  let order;
  try {
    order = JSON.parse(text);
  } catch {
    return null;
  }
  if (!order || !ADDRESS.test(order.to) || !AMOUNT.test(order.value)) return null;
  const [to, value, data] = [order.to.toLowerCase(), BigInt(order.value), order.data ?? "0x"];
  if (!CALLDATA.test(data)) return null;
  if (data === "0x") return { sentence: `pays ${grouped(value)} of the smallest unit of the chain's coin`, to, value };
  const call = TWO_WORDS.exec(data.toLowerCase());
  if (!call || value !== 0n) return null;
  const [, selector, party, word] = call;
  const found = { to: `0x${party}`, token: to, value: BigInt(`0x${word}`) };
  if (selector === "a9059cbb") return { ...found, sentence: `sends ${grouped(found.value)} raw units of a token` };
  if (selector !== "095ea7b3") return null;
  const unlimited = found.value >= UNLIMITED;
  const much = unlimited ? "UNLIMITED amounts" : `${grouped(found.value)} raw units`;
  return { ...found, unlimited, sentence: `lets an address spend ${much} of a token` };
}

// Raises Differs where the service's words lack the address or the amount that stands in the order itself.
export function compare(own, lines) {
  const said = lines.map((line) => line.text.toLowerCase());
  for (const address of [own.to, own.token]) {
    if (address && !said.some((text) => text.includes(address))) {
      throw new Differs(`The order names the address ${address}, and the words below do not.`);
    }
  }
  // What takes an allowance back has words without a figure.
  if (own.value === 0n) return;
  const amount = grouped(own.value);
  const unit = own.token ? "raw units" : "wei";
  const figure = own.unlimited ? /unlimited/ : new RegExp(`(?:^|[^0-9,.])${amount} ${unit}\\b`);
  if (said.some((text) => figure.test(text))) return;
  throw new Differs(`The order is for ${amount} ${unit}, and the words below say something else.`);
}

const grouped = (number) => number.toString().replace(/\B(?=(?:\d{3})+$)/g, ",");
