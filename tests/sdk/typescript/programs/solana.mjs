// Transactions of @solana/kit and @solana/web3.js, signed by the vault's wallet.
import {
  AccountRole, address, appendTransactionMessageInstructions, compileTransaction, createTransactionMessage, getAddressEncoder,
  getBase64EncodedWireTransaction, pipe, setTransactionMessageFeePayer, setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash, signTransactionMessageWithSigners,
} from "@solana/kit";
import { Keypair, PublicKey, SystemProgram, Transaction, TransactionMessage, VersionedTransaction } from "@solana/web3.js";

import { vaultSigner } from "custody-sdk/kit";
import { vaultFromEnvironment } from "custody-sdk/node";
import { orderOf, SolanaWallet } from "custody-sdk/solana";
import { vaultWallet } from "custody-sdk/web3js";

const [blockhash, chain, toText] = process.argv.slice(2);
const vault = await vaultFromEnvironment();
const settings = { chainId: Number(chain) };
const to = new PublicKey(toText);
const said = {};

async function codeOf(call) {
  try {
    await call();
    return "signed";
  } catch (error) {
    return `${error.name} ${error.code}`;
  }
}

// ---- @solana/web3.js
const wallet = await vaultWallet(vault, settings);
const own = wallet.publicKey;
const pays = (lamports, fromPubkey = own) => SystemProgram.transfer({ fromPubkey, toPubkey: to, lamports });
const versioned = (payerKey, ...instructions) =>
  new VersionedTransaction(new TransactionMessage({ payerKey, recentBlockhash: blockhash, instructions }).compileToV0Message());
const order = await orderOf(versioned(own, pays(3), pays(4)).serialize(), own.toBase58(), settings.chainId);
said.order = [order.to === toText, order.value, order.chainId];
const many = await wallet.signAllTransactions([1, 2, 3, 4, 5].map((lamports) => versioned(own, pays(lamports))));
said.web3js = many.map((one) => one.signatures[0].some((byte) => byte !== 0));
const legacy = await wallet.signTransaction(new Transaction({ feePayer: own, recentBlockhash: blockhash }).add(pays(6)));
said.legacy = legacy.verifySignatures();
// One who pays the fee and signs first: the wallet's signature comes back, theirs stays.
const sponsor = Keypair.generate();
const shared = versioned(sponsor.publicKey, pays(1));
shared.sign([sponsor]);
const both = await wallet.signTransaction(shared);
said.sponsored = [Buffer.from(both.signatures[0]).equals(Buffer.from(shared.signatures[0])), both.signatures[1].some((byte) => byte !== 0)];

// ---- what is read of a transaction
const TOKEN = new PublicKey("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
const ASSOCIATED = new PublicKey("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL");
const WRAPPED = new PublicKey("So11111111111111111111111111111111111111112");
const keys = [Keypair.generate().publicKey, Keypair.generate().publicKey, to, own];
const moves = { programId: TOKEN, keys: keys.map((pubkey) => ({ pubkey, isSigner: pubkey === own, isWritable: true })), data: Buffer.from([12, 5, 0, 0, 0, 0, 0, 0, 0, 6]) };
const orderIs = async (...instructions) => (await orderOf(versioned(own, ...instructions).serialize(), own.toBase58())).to;
said.token = (await orderIs(moves)) === toText;
said.nobody = (await orderIs(SystemProgram.transfer({ fromPubkey: own, toPubkey: own, lamports: 1 }))) === own.toBase58();
// Wrapping pays nobody: for many wallets, the account is where web3.js finds it.
said.wrapped = [];
for (const key of [own, ...Array.from({ length: 20 }, () => Keypair.generate().publicKey)]) {
  const [account] = PublicKey.findProgramAddressSync([key.toBuffer(), TOKEN.toBuffer(), WRAPPED.toBuffer()], ASSOCIATED);
  const wraps = versioned(key, SystemProgram.transfer({ fromPubkey: key, toPubkey: account, lamports: 1 }), pays(1, key));
  said.wrapped.push((await orderOf(wraps.serialize(), key.toBase58())).to === toText);
}
const core = await SolanaWallet.of(vault, settings);
said.unread = await codeOf(() => core.send("payment-3", versioned(own, { programId: TOKEN, keys: [], data: Buffer.from([9]) }).serialize()));
const good = versioned(own, pays(1)).serialize();
said.unreadable = [];
for (const bytes of [new Uint8Array(), good.subarray(1), good.subarray(0, -1), Uint8Array.from([...good, 0]), new Uint8Array(2_000), Uint8Array.of(255, 255, 255, 255)]) {
  said.unreadable.push(await codeOf(() => core.sign("payment-4", bytes)));
}

// ---- @solana/kit
const signer = await vaultSigner(vault, settings);
const lifetime = { blockhash, lastValidBlockHeight: 1_000_000n };
const instruction = (lamports) => ({
  programAddress: address("11111111111111111111111111111111"),
  accounts: [{ address: signer.address, role: AccountRole.WRITABLE_SIGNER }, { address: address(toText), role: AccountRole.WRITABLE }],
  data: Uint8Array.from([2, 0, 0, 0, lamports, 0, 0, 0, 0, 0, 0, 0]),
});
const written = (lamports) =>
  pipe(
    createTransactionMessage({ version: 0 }),
    (one) => setTransactionMessageFeePayerSigner(signer, one),
    (one) => setTransactionMessageLifetimeUsingBlockhash(lifetime, one),
    (one) => appendTransactionMessageInstructions([instruction(lamports)], one),
  );
const signed = await Promise.all([11, 12, 13, 14, 15].map((lamports) => signTransactionMessageWithSigners(written(lamports))));
said.kit = signed.map((one) => VersionedTransaction.deserialize(Buffer.from(getBase64EncodedWireTransaction(one), "base64")).signatures[0].some((byte) => byte !== 0));
said.kit_lifetime = signed.every((one) => one.lifetimeConstraint.blockhash === blockhash);
said.kit_waiting = await codeOf(() => signTransactionMessageWithSigners(written(200)));
console.log(JSON.stringify(said));
