// The client for TypeScript beside fetch: prints times of pairs, as `bench.clients` asks.
import { createInterface } from "node:readline";

import { Vault } from "custody-sdk";

const [url, token, agent, tx] = process.argv.slice(1);
const vault = new Vault({ url, token, agent });
const headers = { Authorization: `Bearer ${token}` };
const bare = async () => (await fetch(`${url}/vault/${agent}/transactions/${tx}`, { headers })).json();

async function took(call) {
  const began = performance.now();
  await call();
  return performance.now() - began;
}

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const pairs = [];
  for (let left = Number(line); left > 0; left--) pairs.push([await took(bare), await took(() => vault.transaction(tx))]);
  console.log(JSON.stringify({ TypeScript: pairs }));
}
