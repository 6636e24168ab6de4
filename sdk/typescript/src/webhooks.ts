/** The receiver's side of a webhook: is this delivery from Custody, and is it fresh? */

import { fromBase64, joined, utf8 } from "./bytes.js";
import { isObject, NotGenuine } from "./errors.js";

export const MAX_WEBHOOK_BYTES = 2 ** 20;
const FRESH_SECONDS = 300;
const MOST_SIGNATURES = 16;

/**
 * Return the event of a delivery, or throw NotGenuine. Expect one more than once: note its `id`.
 *
 * `body` is the raw body as it came. Signatures are those of Standard Webhooks, and cover id and time too.
 */
export async function verifyWebhook(
  secret: string,
  headers: Headers | Readonly<Record<string, string | string[] | undefined>>,
  body: Uint8Array | string,
  now: number = Date.now() / 1_000,
): Promise<Record<string, unknown>> {
  const key = await keyOf(secret);
  const raw = typeof body === "string" ? utf8(body) : body;
  const pairs = headers instanceof Headers ? [...headers] : Object.entries(headers);
  const given = new Map(pairs.map(([name, value]) => [name.toLowerCase(), typeof value === "string" ? value : ""]));
  const delivery = given.get("webhook-id") ?? "";
  const moment = given.get("webhook-timestamp") ?? "";
  if (raw.length > MAX_WEBHOOK_BYTES || !/^[ -~]*$/.test(delivery)) throw refused("the body is too long, or its id is none");
  if (!/^[0-9]{1,12}$/.test(moment)) throw refused("webhook-timestamp is missing");
  if (!(Math.abs(now - Number(moment)) <= FRESH_SECONDS)) {
    throw refused("it is older than five minutes, or the clocks differ");
  }
  const signed = joined(utf8(`${delivery}.${moment}.`), raw);
  // During a change of the secret there is one for each.
  const found = (given.get("webhook-signature") ?? "").split(" ").slice(0, MOST_SIGNATURES);
  const fits = await Promise.all(
    found.map(async (one) => {
      const signature = one.startsWith("v1,") ? fromBase64(one.slice(3)) : null;
      return signature !== null && (await crypto.subtle.verify("HMAC", key, signature, signed));
    }),
  );
  if (!fits.includes(true)) throw refused("no signature fits: another secret, or a body that was changed on the way");
  const event = read(raw);
  if (!isObject(event)) throw refused("the body is no event");
  return event;
}

async function keyOf(secret: string): Promise<CryptoKey> {
  const key = fromBase64(typeof secret === "string" ? secret.replace(/^whsec_/, "") : null);
  // An empty secret would let everybody sign.
  if (key === null || key.length < 16) {
    const sentence = "the secret must be whsec_ and base64, as the endpoint's answer shows it.";
    throw new NotGenuine(0, "bad_secret", sentence);
  }
  return crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

function read(raw: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(raw));
  } catch {
    return null;
  }
}

function refused(why: string): NotGenuine {
  return new NotGenuine(0, "not_genuine", `The delivery is not accepted: ${why}.`);
}
