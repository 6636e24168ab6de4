// People's wallets as ethers and siwe have them: one JSON order per line in, one JSON answer per line out.
import { createInterface } from "node:readline";
import { Wallet } from "ethers";
import { SiweMessage } from "siwe";

async function sign({ key, fields }) {
  const wallet = key ? new Wallet(key) : Wallet.createRandom();
  const message = new SiweMessage({ ...fields, address: wallet.address }).prepareMessage();
  return { address: wallet.address, message, signature: await wallet.signMessage(message) };
}

// Expected may hold scheme, domain, nonce and time, each judged only where it is there.
async function verify({ message, signature, expected }) {
  const read = new SiweMessage(message);
  const verdict = await read.verify({ ...expected, signature }, { suppressExceptions: true });
  if (!verdict.success) throw verdict.error.type ?? verdict.error;
  return { address: read.address };
}

const orders = { sign, verify };

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  let answer;
  try {
    answer = await orders[order.kind](order);
  } catch (problem) {
    answer = { refused: String(problem) };
  }
  console.log(JSON.stringify(answer));
}
