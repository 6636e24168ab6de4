// Independent judges of what we signed: one JSON case per line in, one JSON verdict per line out.
import { createInterface } from "node:readline";
import solana from "@solana/web3.js";
import { Transaction, verifyMessage as ethersVerify, verifyTypedData } from "ethers";
import nacl from "tweetnacl";
import { SiweMessage } from "siwe";
import {
  keccak256, parseTransaction, recoverMessageAddress, recoverTransactionAddress, recoverTypedDataAddress, verifyMessage,
} from "viem";
import { createSiweMessage } from "viem/siwe";

const text = (number) => (number ?? 0).toString();

function byEthers({ raw }) {
  const read = Transaction.from(raw);
  return {
    signer: read.from, hash: read.hash, type: read.type, chainId: text(read.chainId), nonce: read.nonce,
    gas: text(read.gasLimit), maxFee: text(read.gasPrice ?? read.maxFeePerGas),
    priorityFee: text(read.maxPriorityFeePerGas), to: read.to.toLowerCase(), value: text(read.value), data: read.data,
  };
}

async function byViem({ raw }) {
  const read = parseTransaction(raw);
  return {
    signer: await recoverTransactionAddress({ serializedTransaction: raw }), hash: keccak256(raw),
    type: read.type === "eip1559" ? 2 : 0, chainId: text(read.chainId), nonce: read.nonce ?? 0, gas: text(read.gas),
    maxFee: text(read.gasPrice ?? read.maxFeePerGas), priorityFee: text(read.maxPriorityFeePerGas),
    to: read.to.toLowerCase(), value: text(read.value), data: read.data ?? "0x",
  };
}

async function typedData({ domain, types, primaryType, value, signature }) {
  const fields = ["name", "version", "chainId", "verifyingContract", "salt"].filter((field) => field in domain);
  const kinds = { chainId: "uint256", verifyingContract: "address", salt: "bytes32" };
  const declared = fields.map((name) => ({ name, type: kinds[name] ?? "string" }));
  return {
    ethers: verifyTypedData(domain, types, value, signature),
    viem: await recoverTypedDataAddress({
      domain, types: { EIP712Domain: declared, ...types }, primaryType, message: value, signature,
    }),
  };
}

function solanaTransaction({ raw, publicKey }) {
  const key = new solana.PublicKey(publicKey);
  const read = solana.VersionedTransaction.deserialize(Buffer.from(raw, "base64"));
  const { staticAccountKeys: keys, header } = read.message;
  const position = keys.slice(0, header.numRequiredSignatures).findIndex((each) => each.equals(key));
  const signature = read.signatures[position];
  return {
    verified: position >= 0 && nacl.sign.detached.verify(read.message.serialize(), signature, key.toBytes()),
    signature: position >= 0 ? Buffer.from(signature).toString("hex") : null,
    payer: keys[0].toBase58(),
    blockhash: read.message.recentBlockhash,
    programs: read.message.compiledInstructions.map((each) => keys[each.programIdIndex].toBase58()),
  };
}

async function message({ text, raw, signature, address }) {
  const message = raw === undefined ? text : { raw };
  return {
    ethers: ethersVerify(raw === undefined ? text : Buffer.from(raw.slice(2), "hex"), signature),
    viem: await recoverMessageAddress({ message, signature }),
    verified: await verifyMessage({ address, message, signature }),
  };
}

function solanaMessage({ raw, signature, publicKey }) {
  const key = new solana.PublicKey(publicKey).toBytes();
  return { verified: nacl.sign.detached.verify(Buffer.from(raw, "hex"), Buffer.from(signature, "hex"), key) };
}

async function signIn({ text, signature, time }) {
  const { success, data } = await new SiweMessage(text).verify({ signature, time }, { suppressExceptions: true });
  return { success, domain: data.domain, address: data.address };
}

function written({ fields }) {
  const dates = ["issuedAt", "expirationTime", "notBefore"].filter((name) => name in fields);
  const forViem = { ...fields, ...Object.fromEntries(dates.map((name) => [name, new Date(fields[name])])) };
  return { siwe: new SiweMessage(fields).prepareMessage(), viem: createSiweMessage(forViem) };
}

const judges = {
  transaction: async (it) => ({ ethers: byEthers(it), viem: await byViem(it) }),
  typed_data: typedData,
  message,
  solana_message: solanaMessage,
  sign_in: signIn,
  write: written,
  solana: solanaTransaction,
};

for await (const line of createInterface({ input: process.stdin })) {
  const it = JSON.parse(line);
  let verdict;
  try {
    verdict = await judges[it.kind](it);
  } catch (problem) {
    verdict = { refused: String(problem) };
  }
  console.log(JSON.stringify(verdict));
}
