/**
 * A signer for @solana/kit: a modifying one, for an approval may renew the blockhash, and the message is another one then.
 * A partial signer would return a signature of a message that nobody has.
 */

import {
  type Address, type Blockhash, getTransactionDecoder, getTransactionEncoder, type Transaction,
  type TransactionModifyingSigner,
} from "@solana/kit";

import { base58 } from "./bytes.js";
import type { Vault } from "./client.js";
import { nameOf } from "./orders.js";
import { read, type SolanaSettings, SolanaWallet } from "./solana.js";

type Modifies = TransactionModifyingSigner["modifyAndSignTransactions"];
// What kit itself writes where it does not know the height.
const UNKNOWN_HEIGHT = 2n ** 64n - 1n;

/** Make a signer whose wallet is in the vault. */
export async function vaultSigner(vault: Vault, settings: SolanaSettings = {}): Promise<TransactionModifyingSigner> {
  const wallet = await SolanaWallet.of(vault, settings);
  const sign = async (transaction: Transaction, signal?: AbortSignal) => {
    const before = getTransactionEncoder().encode(transaction);
    const name = await nameOf("solana", before as Uint8Array);
    const bytes = await wallet.sign(name, before as Uint8Array, { renewed: true, ...(signal ? { signal } : {}) });
    const { blockhash } = read(bytes);
    const kept = read(before as Uint8Array).blockhash.every((byte, at) => byte === blockhash[at]);
    const lifetime = { blockhash: base58(blockhash) as Blockhash, lastValidBlockHeight: UNKNOWN_HEIGHT };
    return { ...transaction, ...getTransactionDecoder().decode(bytes), ...(kept ? {} : { lifetimeConstraint: lifetime }) };
  };
  const modifyAndSignTransactions = async (
    transactions: readonly Transaction[],
    config?: { abortSignal?: AbortSignal | undefined },
  ) => Promise.all(transactions.map((one) => sign(one, config?.abortSignal)));
  return {
    address: wallet.address as Address,
    // kit marks what has a size and a lifetime, by types alone.
    modifyAndSignTransactions: modifyAndSignTransactions as unknown as Modifies,
  };
}
