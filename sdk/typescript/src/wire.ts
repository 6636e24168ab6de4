/**
 * What is sent and how an answer is read.
 *
 * Ids are looked at before a path is made of them, answers are bounded, and a request is repeated only where its key
 * makes that safe, or where it changes nothing.
 */

import { digest } from "./bytes.js";
import { AGAIN, BadArgument, errorOf, isObject, NODES_SAY, OutcomeUnknown, VaultError } from "./errors.js";
import { OPERATIONS } from "./types.js";

export const MAX_ANSWER_BYTES = 8 * 2 ** 20;
const PAUSES_MS = [250, 500, 1_000, 2_000, 4_000, 8_000];
const AGENT = /^\.*[A-Za-z0-9_\-:][A-Za-z0-9_\-.:]{0,127}$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const NAME = /^[!-~]{3,64}$/;
const TOKEN = /^[A-Za-z0-9_\-.]{1,8192}$/;

/** A request, and how the data of its answer is read. */
export interface Ask<T> {
  operation: keyof typeof OPERATIONS;
  /** Throws where the data is not what was asked for. */
  read: (data: unknown) => T;
  agent?: string;
  txId?: string;
  body?: Readonly<Record<string, unknown>>;
  query?: Readonly<Record<string, string>>;
  /** The name that makes a repetition safe; without one a change is never repeated. */
  key?: string;
}

/** What came back; `status` 0 and a word for why where nothing did. */
export interface Answer {
  status: number;
  retryAfter: number;
  said: Readonly<Record<string, unknown>>;
  absent: string;
}

/** Return the method and the path of a request, of ids that cannot lead to another one. */
export function whereTo(ask: Ask<unknown>): [method: string, path: string] {
  const [method, template] = OPERATIONS[ask.operation];
  const path = template
    .replace("{agentId}", () => encodeURIComponent(agentId(ask.agent)))
    .replace("{txId}", () => transactionId(ask.txId));
  const query = new URLSearchParams(ask.query).toString();
  return [method, query ? `${path}?${query}` : path];
}

/** Say whether a request could do anything. */
export function changes(ask: Ask<unknown>): boolean {
  return OPERATIONS[ask.operation][0] !== "GET" && ask.operation !== "simulateOrder";
}

/** The attempts of one request: when the next one is, and what came of the last. */
export class Tries {
  readonly #ends: number;
  #count = 0;

  constructor(patienceMs: number) {
    this.#ends = performance.now() + patienceMs;
  }

  /** Return the milliseconds until the next attempt, or null if this answer is the last. */
  pauseMs(ask: Ask<unknown>, answer: Answer): number | null {
    if (changes(ask) && ask.key === undefined) return null;
    const code = isObject(answer.said.data) ? String(answer.said.data.code) : "";
    const again =
      answer.status === 429 ||
      code === "idempotency_in_flight" ||
      ([0, 500, 502, 503].includes(answer.status) && !NODES_SAY.has(code));
    if (!again) return null;
    const pause = Math.max(PAUSES_MS[Math.min(this.#count, PAUSES_MS.length - 1)] ?? 0, answer.retryAfter * 1_000);
    this.#count += 1;
    return performance.now() + pause < this.#ends ? pause : null;
  }
}

/** Return what was asked for, or throw what came instead. */
export function outcome<T>(ask: Ask<T>, answer: Answer): T {
  const { said, status } = answer;
  // The name to repeat it by, where nobody chose one.
  const name = ask.body?.referenceId === undefined ? {} : { name: ask.body.referenceId };
  if (status === 0 || !("ok" in said)) {
    const why = answer.absent || "The answer is none of this service's.";
    if (changes(ask)) throw new OutcomeUnknown(status, "no_answer", `${why} ${AGAIN}`, name);
    throw new VaultError(status, "no_answer", why);
  }
  if (status !== 200 || said.ok !== true) throw errorOf(status, said, answer.retryAfter, name, changes(ask));
  try {
    return ask.read(said.data);
  } catch {
    throw new OutcomeUnknown(status, "no_answer", `The answer lacks what was asked for. ${AGAIN}`, name);
  }
}

/** Read the whole of an answer, as far as it is bounded; what is no envelope of the service's is empty. */
export async function answerOf(response: Response): Promise<Answer> {
  const retryAfter = readSeconds(response.headers.get("Retry-After") ?? "");
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const parts: string[] = [];
  let size = 0;
  // Counted after it is unpacked, so a small answer that unpacks into a large one is cut too.
  for (const reader = response.body?.getReader(); reader; ) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MAX_ANSWER_BYTES) {
      await reader.cancel();
      return { status: 0, retryAfter, said: {}, absent: `The answer is longer than ${MAX_ANSWER_BYTES} bytes.` };
    }
    try {
      parts.push(decoder.decode(value, { stream: true }));
    } catch {
      await reader.cancel();
      return { status: response.status, retryAfter, said: {}, absent: "" };
    }
  }
  return { status: response.status, retryAfter, said: envelope(parts.join("") + decoder.decode()), absent: "" };
}

function envelope(text: string): Readonly<Record<string, unknown>> {
  try {
    const found: unknown = JSON.parse(text);
    return isObject(found) && typeof found.ok === "boolean" && "data" in found ? found : {};
  } catch {
    return {};
  }
}

/** Read the header Retry-After; what is no number of seconds is none. */
export function readSeconds(text: string): number {
  return /^[0-9]{1,9}$/.test(text) ? Math.min(Number(text), 86_400) : 0;
}

/** Check the address of a service, so that a token goes nowhere in the clear. */
export function baseOf(url: string, allowHttp: boolean): string {
  const parts = URL.canParse(url) ? new URL(url) : null;
  const marked = /[?#\s\\]/.test(url) || parts?.username || parts?.password || parts?.port === "0";
  if (!parts || marked || !["http:", "https:"].includes(parts.protocol) || !parts.hostname) {
    throw new BadArgument(0, "bad_url", "url must be like https://custody.example.com, without user, query or fragment.");
  }
  const here = parts.hostname === "localhost" || /^127(?:\.[0-9]{1,3}){3}$|^\[::1\]$/.test(parts.hostname);
  if (parts.protocol === "http:" && !allowHttp && !here) {
    throw new BadArgument(0, "bad_url", "url is http to another machine, where anybody reads the token: use https.");
  }
  return parts.origin + parts.pathname.replace(/\/+$/, "");
}

/** Check a token's letters; what is wrong with it is said without it. */
export function tokenOf(text: string): string {
  const token = typeof text === "string" ? text.trim() : "";
  if (TOKEN.test(token)) return token;
  throw new BadArgument(0, "bad_token", "token must be an agent's token, as `POST /agents/{agentId}/token` gives it.");
}

/** Check an agent's id. */
export function agentId(text: unknown): string {
  if (typeof text === "string" && AGENT.test(text) && text.length <= 128) return text;
  throw new BadArgument(0, "bad_path", "agent must be an id: letters, digits, `_`, `-`, `.`, `:`, at most 128 of them.");
}

/** Check a transaction's id. */
export function transactionId(text: unknown): string {
  if (typeof text === "string" && UUID.test(text)) return text;
  throw new BadArgument(0, "bad_path", "txId must be a transaction's id: a UUID in lower case.");
}

/** Check a name, which is also the reference that people see. */
export function paymentName(name: unknown): string {
  if (typeof name === "string" && NAME.test(name)) return name;
  throw new BadArgument(
    0,
    "bad_name",
    "name must be your name for THIS payment, such as invoice-4711: 3 to 64 printable characters, no spaces. " +
      "Use it again only to repeat this same payment: then it is paid once.",
  );
}

/** Return the idempotency key of a name: the same in every client, on every machine. */
export async function keyOf(agent: string, operation: string, name: string): Promise<string> {
  return `sdk-${await digest([agent, operation, name].join("\n"))}`;
}
