// Judges of Bitcoin: one JSON case per line in, one JSON verdict per line out. They share no code with ours.
import { createInterface } from "node:readline";
import { Transaction as Scure } from "@scure/btc-signer";
import { initEccLib, Psbt, Transaction } from "bitcoinjs-lib";
import { ECPairFactory } from "ecpair";
import * as ecc from "tiny-secp256k1";

initEccLib(ecc);
const ECPair = ECPairFactory(ecc);
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const LAX = { allowUnknownOutputs: true, allowUnknownInputs: true, disableScriptCheck: true, allowLegacyWitnessUtxo: true };

// What each makes of a PSBT that we signed and did not finish, and of one that we finished.
function finished({ signed, final }) {
  const theirs = Psbt.fromBase64(signed, { maximumFeeRate: 1e9 });
  theirs.setMaximumFeeRate(1e9);
  theirs.finalizeAllInputs();
  const byBitcoinjs = theirs.extractTransaction(true);
  const scure = Scure.fromPSBT(Buffer.from(signed, "base64"), LAX);
  scure.finalize();
  const again = Psbt.fromBase64(final).extractTransaction(true);
  return {
    bitcoinjs: {
      raw: byBitcoinjs.toHex(), txid: byBitcoinjs.getId(), vsize: byBitcoinjs.virtualSize(), fee: Number(theirs.getFee()),
    },
    scure: { raw: hex(scure.extract()), txid: scure.id, vsize: scure.vsize, fee: Number(scure.fee) },
    extracted: again.toHex(),
    read: Transaction.fromHex(byBitcoinjs.toHex()).getId(),
  };
}

// Signs both halves of a transaction that was told one lie in each of two sessions.
function believed({ halves, key }) {
  const pair = ECPair.fromPrivateKey(Buffer.from(key, "hex"));
  return halves.map((half, place) => {
    const psbt = Psbt.fromBase64(half);
    psbt.signInput(place, pair);
    return psbt.data.inputs[place].partialSig.length;
  });
}

const CASES = { finished, believed };
for await (const line of createInterface({ input: process.stdin })) {
  const { kind, ...given } = JSON.parse(line);
  let said;
  try {
    said = CASES[kind](given);
  } catch (problem) {
    said = { problem: String(problem?.stack ?? problem) };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
