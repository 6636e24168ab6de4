/**
 * Solana transactions as bytes, signed by the vault's wallet; `custody-sdk/kit` and `/web3js` stand on this.
 *
 * The vault reads every instruction, and wants said what a transaction does; that is read here from its instructions.
 * Where a person decides, an approval may renew the blockhash. The message is another one then: `sign` takes it if told.
 */

import type { Signed } from "./asks.js";
import { base58, base64, type Bytes, fromBase64, joined, same, sha256, signedBy, utf8 } from "./bytes.js";
import type { Vault, Waits } from "./client.js";
import { BadArgument, NotAsked } from "./errors.js";
import type { SolanaOrder } from "./types.js";

export const MAINNET = 101;
/** What a packet of Solana holds. */
const MAX_TRANSACTION_BYTES = 1_232;
const SYSTEM = "11111111111111111111111111111111";
const TOKEN = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
const TOKENS = [TOKEN, "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"];
const ASSOCIATED = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";
const WRAPPED = "So11111111111111111111111111111111111111112";
const TRANSFER = 2, TRANSFER_CHECKED = 12;

/** Which chain, and how long a call waits for a person. */
export interface SolanaSettings extends Waits {
  /** The service's number of the chain: 101 is the main network. */
  chainId?: number;
}

/** The vault's Solana wallet. It takes a transaction and gives the signed one; it holds no key. */
export class SolanaWallet {
  readonly #vault: Vault;
  readonly #settings: SolanaSettings;

  private constructor(
    vault: Vault,
    readonly address: string,
    settings: SolanaSettings,
  ) {
    this.#vault = vault;
    this.#settings = settings;
  }

  /** Make one of a client. */
  static async of(vault: Vault, settings: SolanaSettings = {}): Promise<SolanaWallet> {
    const address = (await vault.wallet()).walletAddresses.solana;
    if (!address) throw new BadArgument(0, "no_wallet", "the agent has no Solana wallet.");
    return new SolanaWallet(vault, address, settings);
  }

  /** Sign a transaction, and have the service send it and track it. */
  async send(name: string, transaction: Uint8Array): Promise<Signed> {
    const order = await orderOf(transaction, this.address, this.#settings.chainId);
    return this.#vault.signSolana(name, { ...order, broadcast: true }, this.#settings);
  }

  /** Sign a transaction and return it; `renewed` allows another blockhash than it had. */
  async sign(name: string, transaction: Uint8Array, given: { renewed?: boolean } & Waits = {}): Promise<Bytes> {
    const order = await orderOf(transaction, this.address, this.#settings.chainId);
    const signed = await this.#vault.signSolana(name, { ...order, broadcast: false }, { ...this.#settings, ...given });
    const found = fromBase64(signed.signedTransaction);
    if (found && (await isAsked(found, transaction, this.address, given.renewed ?? false))) return found;
    throw new NotAsked("The bytes are not the transaction that was asked for.", signed.txId);
  }
}

/** A transaction, read. */
export interface ReadTransaction {
  signatures: Bytes[];
  message: Bytes;
  /** The message without its blockhash: what it does. */
  does: Bytes;
  blockhash: Bytes;
  keys: string[];
  instructions: { program: string; accounts: string[]; data: Bytes }[];
}

/** Return the order of a transaction, with whom it pays and how many lamports. */
export async function orderOf(transaction: Uint8Array, wallet: string, chainId: number = MAINNET): Promise<SolanaOrder> {
  const { instructions } = read(transaction);
  const payments = instructions.flatMap(({ program, accounts, data }) => {
    const numbers = new DataView(data.buffer, data.byteOffset, data.length);
    const moves = program === SYSTEM && data.length === 12 && numbers.getUint32(0, true) === TRANSFER;
    return moves ? [{ to: accounts[1] ?? "", lamports: numbers.getBigUint64(4, true) }] : [];
  });
  const receivers = instructions
    .filter(({ program, data }) => TOKENS.includes(program) && data[0] === TRANSFER_CHECKED)
    // Whose account it is no message says.
    .map(({ accounts }) => accounts[2] ?? "");
  const own = [wallet, await wrapped(wallet)];
  const others = payments.map(({ to }) => to).filter((to) => !own.includes(to));
  return {
    transaction: base64(transaction),
    to: [...others, ...receivers][0] ?? wallet,
    value: payments.reduce((sum, { lamports }) => sum + lamports, 0n).toString(),
    chainId,
  };
}

/** Read a transaction: legacy, or version 0 without address lookup tables. */
export function read(transaction: Uint8Array): ReadTransaction {
  const at = new Reader(transaction);
  const signatures = at.many(() => at.bytes(64));
  const start = at.place;
  const version = at.peek();
  if (version > 0x80) throw unsupported("only legacy messages and those of version 0 are signed");
  if (version === 0x80) at.byte();
  at.bytes(3);
  const keys = at.many(() => base58(at.bytes(32)));
  const hashed = at.place;
  const blockhash = at.bytes(32);
  const key = () => {
    const found = keys[at.byte()];
    if (found === undefined) throw unreadable();
    return found;
  };
  const instructions = at.many(() => {
    const program = key();
    const accounts = at.many(key);
    return { program, accounts, data: at.bytes(at.length()) };
  });
  if (version === 0x80 && at.length() > 0) {
    throw unsupported("address lookup tables are not read, so nothing with one is signed");
  }
  if (at.place !== transaction.length) throw unreadable();
  const message = joined(transaction.subarray(start));
  const does = joined(transaction.subarray(start, hashed), transaction.subarray(hashed + 32));
  return { signatures, message, does, blockhash, keys, instructions };
}

/** Say whether these bytes are what was asked for, signed by this wallet, with the other signatures as they were. */
async function isAsked(found: Bytes, asked: Uint8Array, wallet: string, renewed: boolean): Promise<boolean> {
  let one: ReadTransaction;
  const other = read(asked);
  try {
    one = read(found);
  } catch {
    return false;
  }
  const fresh = !same(one.blockhash, other.blockhash);
  const own = one.keys.indexOf(wallet);
  const signature = one.signatures[own];
  if ((fresh && !renewed) || !same(one.does, other.does) || signature === undefined) return false;
  if (one.signatures.length !== other.signatures.length) return false;
  const kept = one.signatures.every((mine, at) => {
    const theirs = other.signatures[at] ?? new Uint8Array();
    // Of a message with another blockhash nobody else's signature is one.
    return at === own || (same(mine, theirs) && !(fresh && theirs.some((byte) => byte !== 0)));
  });
  return kept && signedBy(unbase58(wallet), signature, one.message);
}

class Reader {
  place = 0;

  constructor(readonly all: Uint8Array) {
    if (all.length > MAX_TRANSACTION_BYTES) throw unreadable();
  }

  peek(): number {
    const byte = this.all[this.place];
    if (byte === undefined) throw unreadable();
    return byte;
  }

  byte(): number {
    const byte = this.peek();
    this.place += 1;
    return byte;
  }

  bytes(size: number): Bytes {
    if (this.place + size > this.all.length) throw unreadable();
    this.place += size;
    return joined(this.all.subarray(this.place - size, this.place));
  }

  length(): number {
    let found = 0;
    for (let shift = 0; shift < 21; shift += 7) {
      const byte = this.byte();
      found |= (byte & 0x7f) << shift;
      if (byte < 0x80) return found;
    }
    throw unreadable();
  }

  many<T>(one: () => T): T[] {
    return Array.from({ length: this.length() }, one);
  }
}

// ---- the wallet's own account of wrapped SOL: what goes there is paid to nobody

const P = 2n ** 255n - 19n;

async function wrapped(wallet: string): Promise<string> {
  const seeds = joined(unbase58(wallet), unbase58(TOKEN), unbase58(WRAPPED));
  for (let bump = 255; bump >= 0; bump -= 1) {
    const found = await sha256(joined(seeds, Uint8Array.of(bump), unbase58(ASSOCIATED), utf8("ProgramDerivedAddress")));
    if (!isPoint(found)) return base58(found);
  }
  throw unreadable();
}

/** Say whether bytes are a point of Ed25519's curve, as a key is and an account of a program is not. */
function isPoint(bytes: Bytes): boolean {
  const y = bytes.reduceRight((sum, byte, at) => sum * 256n + BigInt(at === 31 ? byte & 0x7f : byte), 0n) % P;
  const d = (-121665n * power(121666n, P - 2n)) % P;
  const square = ((y * y - 1n) * power(d * y * y + 1n, P - 2n)) % P;
  return power(square, (P - 1n) / 2n) <= 1n;
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let square = ((base % P) + P) % P; exponent > 0n; exponent >>= 1n, square = (square * square) % P) {
    if (exponent & 1n) result = (result * square) % P;
  }
  return result;
}

function unbase58(text: string): Bytes {
  const letters = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  let number = 0n;
  for (const letter of text) {
    const digit = letters.indexOf(letter);
    if (digit < 0) throw new BadArgument(0, "bad_address", "an address of Solana is 32 bytes in base58.");
    number = number * 58n + BigInt(digit);
  }
  const bytes = new Uint8Array(32);
  for (let at = 31; at >= 0; at -= 1, number >>= 8n) bytes[at] = Number(number & 255n);
  if (number > 0n || base58(bytes) !== text) {
    throw new BadArgument(0, "bad_address", "an address of Solana is 32 bytes in base58.");
  }
  return bytes;
}

function unreadable(): BadArgument {
  return new BadArgument(0, "bad_transaction", "these bytes are no Solana transaction.");
}

function unsupported(what: string): BadArgument {
  return new BadArgument(0, "unsupported", `${what}.`);
}
