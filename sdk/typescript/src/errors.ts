/**
 * What a call can end in besides what was asked for. Each error says `code: sentence`; programs look at `code`.
 *
 * `Waiting` and `Refused` are answers, not failures. After `OutcomeUnknown` nobody knows whether the thing was done: the
 * same call with the same name finds out, and does it at most once.
 */

/** What an error tells programs. */
export type Told = Readonly<Record<string, unknown>>;

// Beside a 403 these are the rules' word on an order; the other codes are about the caller.
const FINAL = new Set(["policy_refused", "payment_refused", "approval_denied", "withdrawn"]);
// A node said no, or cannot be asked: nothing is under way.
export const NODES_SAY: ReadonlySet<string> = new Set([
  "insufficient_funds", "estimate_failed", "rpc_refused", "rpc_unavailable", "broadcast_refused",
]);
const NAMES = new Set(["idempotency_mismatch", "reference_taken"]);
const TAKEN = "The name is that of another payment. A new payment needs a new name; a repeated one must be equal.";
const LONGEST_SENTENCE = 2_000;
export const AGAIN = "Nobody knows whether it happened: call again with the same name, and it happens once at most.";

/** A call that did not do what was asked. `status` is that of HTTP, 0 without an answer; `data` is for programs. */
export class VaultError extends Error {
  override readonly name: string = "VaultError";

  constructor(
    readonly status: number,
    readonly code: string,
    readonly sentence: string,
    readonly data: Told = {},
  ) {
    super(`${code}: ${sentence}`);
  }

  /** What the rules that did not pass say. */
  get reasons(): string[] {
    const results = Array.isArray(this.data.results) ? this.data.results : [];
    return results.filter((one) => isObject(one) && !one.passed).map((one) => String(one.reason));
  }
}

/** An argument is wrong; with status 0 nothing was sent. */
export class BadArgument extends VaultError {
  override readonly name = "BadArgument";
}

/** The rules, a person or a freeze refuse it: final. A variation of it is not the cure, the reasons are. */
export class Refused extends VaultError {
  override readonly name = "Refused";
}

/** A person decides: `wait(error.txId)`, or come back with `resume`. Another name would be another payment. */
export class Waiting extends VaultError {
  override readonly name = "Waiting";

  /** The transaction that waits. */
  get txId(): string {
    return String(this.data.txId);
  }

  /** What the person decides on. */
  get approvalId(): string {
    return String(this.data.approvalId ?? "");
  }
}

/** It was signed, and the chain did not or will not execute it. */
export class Failed extends VaultError {
  override readonly name = "Failed";
}

/** The name is that of another payment. */
export class NameTaken extends VaultError {
  override readonly name = "NameTaken";
}

/** Too much for now; `retryAfter` says in how many seconds there is a chance. */
export class TryLater extends VaultError {
  override readonly name = "TryLater";

  /** Seconds to wait. */
  get retryAfter(): number {
    return Number(this.data.retryAfter ?? 1);
  }
}

/** No answer, or one that says that nobody knows. The same call with the same name (`data.name`) finds out. */
export class OutcomeUnknown extends VaultError {
  override readonly name = "OutcomeUnknown";
}

/** What came back is not what was asked for: it was thrown away, and not used. */
export class NotAsked extends VaultError {
  override readonly name = "NotAsked";

  constructor(what: string, txId?: string) {
    super(200, "not_asked", what, txId === undefined ? {} : { txId });
  }
}

/** It was not made by whom it should be, or not now: answer 401, and use nothing of it. */
export class NotGenuine extends VaultError {
  override readonly name = "NotGenuine";
}

/** Return the error that an answer is; `changes` says whether the request could have done anything. */
export function errorOf(status: number, said: Told, retryAfter: number, name: Told, changes: boolean): VaultError {
  const data = isObject(said.data) ? said.data : {};
  const code = String(data.code ?? `http_${status}`).slice(0, 100);
  const sentence = String(said.error || "No reason was given.").slice(0, LONGEST_SENTENCE);
  if (status === 202) return new Waiting(status, code, sentence, data);
  if (status === 429) return new TryLater(status, code, sentence, { ...data, retryAfter });
  if (NAMES.has(code)) return new NameTaken(status, code, TAKEN, data);
  if (status === 423 || (status === 403 && FINAL.has(code))) {
    const reasons = new VaultError(status, code, "", data).reasons.join("; ");
    return new Refused(status, code, reasons || sentence, data);
  }
  if (status === 400 || status === 413 || status === 415) return new BadArgument(status, code, sentence, data);
  if (changes && (code === "idempotency_in_flight" || (status >= 500 && !NODES_SAY.has(code)))) {
    return new OutcomeUnknown(status, code, `${sentence} ${AGAIN}`, { ...data, ...name });
  }
  return new VaultError(status, code, sentence, data);
}

/** Say whether a value is an object with names. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
