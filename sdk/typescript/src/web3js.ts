/** A wallet for @solana/web3.js 1, in the form that Anchor and wallet adapters take. */

import { PublicKey, Transaction, VersionedTransaction } from "@solana/web3.js";

import type { Vault } from "./client.js";
import { nameOf } from "./orders.js";
import { type SolanaSettings, SolanaWallet } from "./solana.js";

/** What libraries for @solana/web3.js call a wallet. */
export interface Wallet {
  publicKey: PublicKey;
  signTransaction<T extends Transaction | VersionedTransaction>(transaction: T): Promise<T>;
  signAllTransactions<T extends Transaction | VersionedTransaction>(transactions: T[]): Promise<T[]>;
}

/** Make a wallet that is in the vault; `renewed` allows another blockhash than a transaction had, after an approval. */
export async function vaultWallet(vault: Vault, settings: SolanaSettings & { renewed?: boolean } = {}): Promise<Wallet> {
  const wallet = await SolanaWallet.of(vault, settings);
  const signTransaction = async <T extends Transaction | VersionedTransaction>(transaction: T): Promise<T> => {
    const legacy = !("version" in transaction);
    const before = legacy
      ? transaction.serialize({ requireAllSignatures: false, verifySignatures: false })
      : transaction.serialize();
    const bytes = await wallet.sign(await nameOf("solana", before), before, { renewed: settings.renewed ?? false });
    return (legacy ? Transaction.from(bytes) : VersionedTransaction.deserialize(bytes)) as T;
  };
  return {
    publicKey: new PublicKey(wallet.address),
    signTransaction,
    signAllTransactions: (transactions) => Promise.all(transactions.map((one) => signTransaction(one))),
  };
}
