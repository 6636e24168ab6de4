/**
 * A provider (EIP-1193) whose wallet is in the vault: viem's `custom`, ethers' `BrowserProvider`, and whatever takes a
 * browser's wallet.
 *
 * The service chooses nonce and fees, so many payments at once are all mined, and what waits for a person is paid when
 * they say so. The chain is the one that is given here: what a node says of itself moves no payment to another.
 */

import type { Vault, Waits } from "./client.js";
import { BadArgument, isObject, Refused, VaultError, Waiting } from "./errors.js";
import { orderOf, signatureOf } from "./orders.js";
import { MAX_ANSWER_BYTES } from "./wire.js";

/** Anything that answers calls of JSON-RPC. */
export interface Provider {
  request(call: { method: string; params?: unknown }): Promise<unknown>;
}

/** How a provider is made. */
export interface ProviderSettings extends Waits {
  /** The chain that is paid on. */
  chainId: number;
  /** Who answers what reads the chain: a node's address, or a provider. It never gets the token. */
  node: string | Provider;
  /** Names a payment or a document; without it each call is one of its own. */
  name?: (method: string, what: object) => string;
  /** How long the node may take: 30 s. */
  nodeMs?: number;
}

// Methods that a node or another wallet would answer with a key of its own.
const OF_KEYS = /^(personal_|wallet_|eth_sign|eth_sendBundle)/;
const REFUSED = 4001, UNSUPPORTED = 4200, WAITING = -32002, OTHER = -32000;

/** What a provider throws: a number for libraries; `data.code` is the service's word, `cause` its error. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";

  constructor(
    readonly code: number,
    message: string,
    readonly data: unknown,
    cause?: Error,
  ) {
    super(message, cause ? { cause } : {});
  }
}

/** Make a provider of a client. */
export function vaultProvider(vault: Vault, settings: ProviderSettings): Provider {
  const { chainId, node } = settings;
  if (!Number.isSafeInteger(chainId) || chainId < 1) throw new BadArgument(0, "bad_chain", "chainId must be a chain's number.");
  const beside = typeof node === "string" ? nodeAt(node, settings.nodeMs ?? 30_000) : node;
  let own: Promise<string> | undefined;
  const address = () => {
    own ??= vault.wallet().then((wallet) => wallet.walletAddress);
    return own.catch((failure) => {
      own = undefined;
      throw failure;
    });
  };
  const waits = { waitMs: settings.waitMs ?? 0, signal: settings.signal };
  // One for each call: libraries repeat no call that failed with a code of ours.
  const name = (method: string, what: object) => settings.name?.(method, what) ?? `rpc-${crypto.randomUUID()}`;

  const answers: Record<string, (params: readonly unknown[]) => Promise<unknown>> = {
    eth_chainId: async () => `0x${chainId.toString(16)}`,
    net_version: async () => String(chainId),
    eth_accounts: async () => [await address()],
    eth_requestAccounts: async () => [await address()],
    async eth_sendTransaction([given]) {
      // Libraries ask a node for the gas where nobody said it; the service estimates by itself.
      const { gas: _, ...fields } = isObject(given) ? given : {};
      const order = { ...orderOf(fields, await address()), broadcast: true };
      if ((order.chainId ??= chainId) !== chainId) throw new BadArgument(0, "bad_transaction", `chainId is not ${chainId}.`);
      const signed = await vault.send(name("eth_sendTransaction", order), order, waits);
      return signed.txHash;
    },
    async eth_signTypedData_v4([from, given]) {
      const document: unknown = typeof given === "string" ? parsed(given) : given;
      if (String(from).toLowerCase() !== (await address()).toLowerCase() || !isObject(document)) {
        throw new BadArgument(0, "bad_document", "eth_signTypedData_v4 wants this wallet's address and a document.");
      }
      const signed = await vault.signTypedData(name("eth_signTypedData_v4", document), document, waits);
      return signatureOf(signed);
    },
  };

  return {
    async request({ method, params }) {
      try {
        const answer = Object.hasOwn(answers, method) ? answers[method] : undefined;
        if (answer) return await answer(Array.isArray(params) ? params : []);
        if (OF_KEYS.test(method)) throw new BadArgument(0, "unsupported", `${method} is not supported.`);
      } catch (failure) {
        throw asProviderError(failure);
      }
      return beside.request({ method, params });
    },
  };
}

/** Return the error that libraries know by its number. */
function asProviderError(failure: unknown): unknown {
  // A number on everything: what has none, viem calls again, which would be another payment.
  if (!(failure instanceof VaultError)) return new ProviderError(OTHER, String(failure), { code: "stopped" });
  let code = OTHER;
  if (failure instanceof Refused) code = REFUSED;
  else if (failure instanceof Waiting) code = WAITING;
  else if (failure.code === "unsupported") code = UNSUPPORTED;
  return new ProviderError(code, failure.message, { ...failure.data, code: failure.code }, failure);
}

function nodeAt(url: string, ms: number): Provider {
  return {
    async request({ method, params }) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: params ?? [] });
      let said: unknown;
      try {
        const response = await fetch(url, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body,
          redirect: "error",
          credentials: "omit",
          signal: AbortSignal.timeout(ms),
        });
        said = parsed(await bounded(response));
      } catch {
        // Addresses of nodes have keys in them.
        throw new ProviderError(OTHER, "rpc_unavailable: The node did not answer.", { code: "rpc_unavailable" });
      }
      const { error, result } = isObject(said) ? said : {};
      if (isObject(error)) throw new ProviderError(Number(error.code) || OTHER, String(error.message), error.data);
      return result;
    },
  };
}

async function bounded(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for (const reader = response.body?.getReader(); reader; ) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MAX_ANSWER_BYTES) {
      await reader.cancel();
      return "";
    }
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
