/**
 * Paying what servers demand by x402.
 *
 *     const answer = await payingFetch(vault, "quote-4711")("https://...");   // asks, pays within the rules, asks again
 *
 * The vault builds the payment itself from the demand, so neither a server nor this program chooses nonce and validity.
 * For x402's own clients (`@x402/fetch`) there is `custody-sdk/viem`: its account is what they take.
 */

import type { Vault, Waits } from "./client.js";

export const MAX_DEMAND_CHARACTERS = 21_848;

/**
 * Return a `fetch` that pays a 402 of version 2 once, under a name for this purchase, and sends the request again.
 *
 * A second 402 is handed back as it came: nothing is paid twice. What waits for a person throws Waiting; with the same
 * name it goes on from there. A demand of version 1 is in the body: hand it to `Vault.payDemand`.
 */
export function payingFetch(
  vault: Vault,
  name: string,
  given: Waits & { fetch?: typeof fetch } = {},
): (input: string | URL | Request, init?: RequestInit) => Promise<Response> {
  const ask = given.fetch ?? ((...said: Parameters<typeof fetch>) => fetch(...said));
  return async (input, init) => {
    const request = new Request(input, init);
    const response = await ask(request.clone());
    const demand = demandOf(request, response);
    if (demand === null) return response;
    await response.body?.cancel();
    const waits = { waitMs: given.waitMs ?? 0, signal: given.signal ?? request.signal };
    const paid = await vault.payDemand(name, demand, { resource: resourceOf(request), ...waits });
    const headers = new Headers(request.headers);
    headers.set(paid.header, paid.value);
    // A redirect would carry the payment to somebody else.
    return ask(new Request(request, { headers, redirect: "manual" }));
  };
}

/** Return what is demanded for this request; of another host than was asked nothing is paid. */
function demandOf(request: Request, response: Response): string | null {
  const found = response.headers.get("PAYMENT-REQUIRED") ?? "";
  const elsewhere = response.url !== "" && new URL(response.url).origin !== new URL(request.url).origin;
  if (response.status !== 402 || elsewhere || found.length > MAX_DEMAND_CHARACTERS) return null;
  // Two of them come joined by a comma, which base64 has not.
  if (!/^[A-Za-z0-9+/_-]+=*$/.test(found)) return null;
  return request.headers.has("PAYMENT-SIGNATURE") || request.headers.has("X-PAYMENT") ? null : found;
}

/** Return the address for people who decide, without what may be a secret in it. */
function resourceOf(request: Request): string | undefined {
  const { origin, pathname } = new URL(request.url);
  return origin.length + pathname.length <= 2_048 ? origin + pathname : undefined;
}
