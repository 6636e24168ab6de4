/** The client. It holds a token and shows it to nobody: it is in no JSON, no log and no error. */

import * as asks from "./asks.js";
import { type Amount, NATIVE, type Paid, type Signed } from "./asks.js";
import { VaultError, Waiting } from "./errors.js";
import type * as types from "./types.js";
import {
  agentId, type Answer, answerOf, type Ask, baseOf, outcome, paymentName, tokenOf, transactionId, Tries, whereTo,
} from "./wire.js";

export const VERSION = "1.0.0";
const LOOKS_MS = [500, 500, 1_000, 1_000, 2_000, 3_000];

/** How a client is made. */
export interface Settings {
  /** The service's address. */
  url: string;
  /** The agent's token; it goes to this address alone. */
  token: string;
  /** The agent's id; without it the service is asked. */
  agent?: string;
  /** For how long a request is repeated where that is safe: 30 s. */
  patienceMs?: number;
  /** How long one request may take: 60 s. */
  timeoutMs?: number;
  /** Allow http to another machine, where anybody between reads the token. */
  allowHttp?: boolean;
  /** A `fetch` of your own, for a proxy or certificates. It sees the token. */
  fetch?: typeof fetch;
}

/** How long a call waits for a person, and what ends it. */
export interface Waits {
  /** 0 unless it is said: what waits for a person throws `Waiting`. */
  waitMs?: number;
  /** Ends the call; an order that was made stays. */
  signal?: AbortSignal | undefined;
}

/** A payment's chain, where the asset does not say it. */
export interface Chain {
  chainId?: number;
}

/** An agent's wallet, by its token. */
export class Vault {
  readonly url: string;
  readonly #token: string;
  readonly #fetch: typeof fetch;
  readonly #patienceMs: number;
  readonly #timeoutMs: number;
  #agent: Promise<string> | null;

  constructor(settings: Settings) {
    this.url = baseOf(settings.url, settings.allowHttp ?? false);
    this.#token = tokenOf(settings.token);
    this.#agent = settings.agent === undefined ? null : Promise.resolve(agentId(settings.agent));
    this.#fetch = settings.fetch ?? ((...given) => fetch(...given));
    this.#patienceMs = settings.patienceMs ?? 30_000;
    this.#timeoutMs = settings.timeoutMs ?? 60_000;
  }

  /** Return the agent's id: the service says it, once. */
  async agent(): Promise<string> {
    this.#agent ??= this.me().then((me) => agentId(me.agentId));
    try {
      return await this.#agent;
    } catch (failure) {
      this.#agent = null;
      throw failure;
    }
  }

  // ---- orders; each under a name of yours for THIS one: repeated under the same name within a day, it is made once

  /** Pay on an EVM chain, in smallest units. Throws Refused, and Waiting where nobody decided within `waitMs`. */
  async pay(name: string, to: string, amount: Amount, asset: string = NATIVE, given: Waits & Chain = {}): Promise<Signed> {
    return this.send(name, asks.transfer(to, amount, asset, given.chainId), given);
  }

  /** Sign an EVM transaction, and send it unless `broadcast` is false; leave nonce and fees to the service. */
  async send(name: string, order: types.EvmOrder, given: Waits = {}): Promise<Signed> {
    return this.#decided(await asks.sign(await this.agent(), "signEvmTransaction", name, order), given);
  }

  /** Sign an EIP-712 document: `domain`, `types`, `primaryType`, `message`. */
  async signTypedData(name: string, document: object, given: Waits = {}): Promise<Signed> {
    return this.#decided(await asks.typedData(await this.agent(), name, document), given);
  }

  /** Sign a message as wallets do, by the wallet of a family. */
  async signMessage(
    name: string,
    message: string | Uint8Array,
    family: "evm" | "solana" = "evm",
    given: Waits = {},
  ): Promise<Signed> {
    return this.#decided(await asks.message(await this.agent(), name, message, family), given);
  }

  /** Sign a Solana transaction; `custody-sdk/solana` makes the order of a transaction. */
  async signSolana(name: string, order: types.SolanaOrder, given: Waits = {}): Promise<Signed> {
    return this.#decided(await asks.sign(await this.agent(), "signSolanaTransaction", name, order), given);
  }

  /** Sign a PSBT. */
  async signPsbt(name: string, order: types.PsbtOrder): Promise<types.PsbtSigned> {
    return this.#call(await asks.psbt(await this.agent(), name, order));
  }

  /** Pay what a server or a tool demands by x402; send your request again with `headers` of the answer. */
  async payDemand(
    name: string,
    demand: object | string,
    given: Waits & { resource?: string | undefined } = {},
  ): Promise<Paid> {
    const ask = await asks.demand(await this.agent(), name, demand, given.resource);
    try {
      return await this.#call(ask, given.signal);
    } catch (failure) {
      if (!(failure instanceof Waiting) || !given.waitMs) throw failure;
      await this.wait(failure.txId, given.waitMs, given.signal);
    }
    // The key tells what became of it.
    return this.#call(ask, given.signal);
  }

  /** Take back an order of this agent that waits for a person. */
  async withdraw(txId: string): Promise<types.Withdrawn> {
    return this.#call(await asks.withdrawal(await this.agent(), transactionId(txId)));
  }

  // ---- what became of them

  /** Return what an order came to, as the first call would have, or throw as it would: Waiting, Refused. */
  async resume(txId: string): Promise<Signed> {
    return asks.decided(await this.transaction(txId));
  }

  /** Wait for a person. Waiting when the time is over: wait again, or tell the user, and never pay again. */
  async wait(txId: string, ms = 300_000, signal?: AbortSignal): Promise<Signed> {
    const ends = performance.now() + ms;
    for (const pause of pausesMs()) {
      try {
        return asks.decided(await this.#transaction(txId, signal));
      } catch (failure) {
        if (!(failure instanceof Waiting) || performance.now() + pause > ends) throw failure;
      }
      await paused(pause, signal);
    }
    throw new Error("unreachable");
  }

  /** Wait for the chain, and for a person before it. Failed where the chain did not execute it. */
  async confirm(txId: string, ms = 300_000, signal?: AbortSignal): Promise<types.Transaction> {
    const ends = performance.now() + ms;
    for (const pause of pausesMs()) {
      const found = await this.#transaction(txId, signal);
      const waiting = found.status === "pending_approval";
      if (!waiting && asks.settled(found)) return found;
      if (performance.now() + pause > ends) {
        asks.settled(found);
        throw new VaultError(200, "not_confirmed_yet", `It is ${found.status}; look again later.`, { txId });
      }
      await paused(pause, signal);
    }
    throw new Error("unreachable");
  }

  /** Tell what would become of a payment now. Nothing is signed or reserved. */
  async check(to: string, amount: Amount, asset: string = NATIVE, given: Chain = {}): Promise<types.Simulated> {
    return this.simulate("evm", asks.transfer(to, amount, asset, given.chainId));
  }

  /** Tell what would become of an order now: `evm`, `typed_data`, `message`, `solana`, `transfer`, `bitcoin`. */
  async simulate(kind: string, request: object): Promise<types.Simulated> {
    return this.#call(asks.simulation(await this.agent(), kind, request));
  }

  /** Return a transaction. */
  async transaction(txId: string): Promise<types.Transaction> {
    return this.#transaction(txId);
  }

  /** Return the transactions with a name, newest first, however old they are. */
  async find(name: string): Promise<types.ListedTransaction[]> {
    const query = { referenceId: paymentName(name) };
    const read = (data: unknown) => list<types.ListedTransaction>(asks.shown<types.TransactionPage>(data).transactions);
    return this.#call({ operation: "listTransactions", read, agent: await this.agent(), query });
  }

  /** Return the receipt of what was signed; `verifyReceipt` checks one. */
  async receipt(txId: string): Promise<types.Receipt> {
    transactionId(txId);
    return this.#call({ operation: "getReceipt", read: asks.shown<types.Receipt>, agent: await this.agent(), txId });
  }

  // ---- whose token it is, and what it may do

  /** Tell whose token it is, and until when. */
  async me(): Promise<types.Me> {
    return this.#call({ operation: "getMe", read: asks.shown<types.Me> });
  }

  /** Return the agent and its addresses. */
  async wallet(): Promise<types.Agent> {
    return this.#call({ operation: "getAgent", read: asks.shown<types.Agent>, agent: await this.agent() });
  }

  /** Return the wallet's coins on a chain. */
  async balance(chainId?: number): Promise<types.AgentBalance> {
    const ask = { operation: "getBalance", read: asks.shown<types.AgentBalance>, query: onChain(chainId) } as const;
    return this.#call({ ...ask, agent: await this.agent() });
  }

  /** Return the wallet's tokens on a chain. */
  async tokens(chainId?: number): Promise<types.AgentTokens> {
    const ask = { operation: "listTokenBalances", read: asks.shown<types.AgentTokens>, query: onChain(chainId) } as const;
    return this.#call({ ...ask, agent: await this.agent() });
  }

  /** Return the APIs that may be called through the proxy. */
  async apis(): Promise<types.CallableApi[]> {
    return this.#call({ operation: "listCallableApis", read: list<types.CallableApi>, agent: await this.agent() });
  }

  /** Return what is left of each limit, and what waits. */
  async dashboard(): Promise<types.Dashboard> {
    return this.#call({ operation: "getDashboard", read: asks.shown<types.Dashboard>, agent: await this.agent() });
  }

  // ---- how a request is made

  async #transaction(txId: string, signal?: AbortSignal): Promise<types.Transaction> {
    transactionId(txId);
    const read = asks.shown<types.Transaction>;
    return this.#call({ operation: "getTransaction", read, agent: await this.agent(), txId }, signal);
  }

  async #decided(ask: Ask<Signed>, { waitMs, signal }: Waits): Promise<Signed> {
    try {
      return await this.#call(ask, signal);
    } catch (failure) {
      if (!(failure instanceof Waiting) || !waitMs) throw failure;
      return this.wait(failure.txId, waitMs, signal);
    }
  }

  async #call<T>(ask: Ask<T>, signal?: AbortSignal): Promise<T> {
    const tries = new Tries(this.#patienceMs);
    for (;;) {
      const answer = await this.#once(ask, signal);
      const pause = tries.pauseMs(ask, answer);
      if (pause === null) return outcome(ask, answer);
      await paused(pause, signal);
    }
  }

  async #once(ask: Ask<unknown>, signal?: AbortSignal): Promise<Answer> {
    const [method, path] = whereTo(ask);
    const limit = AbortSignal.timeout(this.#timeoutMs);
    try {
      const response = await this.#fetch(this.url + path, {
        method,
        headers: {
          Accept: "application/json",
          Authorization: `Bearer ${this.#token}`,
          ...(ask.body === undefined ? {} : { "Content-Type": "application/json" }),
          ...(ask.key === undefined ? {} : { "Idempotency-Key": ask.key }),
        },
        body: ask.body === undefined ? null : JSON.stringify(ask.body),
        // A redirect could carry the token to somebody else.
        redirect: "manual",
        credentials: "omit",
        cache: "no-store",
        referrerPolicy: "no-referrer",
        signal: signal ? AbortSignal.any([limit, signal]) : limit,
      });
      return await answerOf(response);
    } catch {
      // The failure itself is not kept: what hangs on it is not ours to show.
      signal?.throwIfAborted();
      const why = limit.aborted ? "The answer did not end in time." : "The service did not answer.";
      return { status: 0, retryAfter: 0, said: {}, absent: why };
    }
  }
}

function onChain(chainId?: number): Record<string, string> {
  return chainId === undefined ? {} : { chainId: asks.smallest(chainId, "chainId") };
}

function list<T>(data: unknown): T[] {
  if (!Array.isArray(data)) throw new TypeError();
  return data;
}

function* pausesMs(): Generator<number, never> {
  yield* LOOKS_MS;
  for (;;) yield LOOKS_MS.at(-1) ?? 3_000;
}

function paused(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}
