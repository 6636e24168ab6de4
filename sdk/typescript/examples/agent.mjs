// Pay an invoice: `node agent.mjs invoice-4711 0x1111...1111 42.50` (the agent's token in SERVICE_AGENT_TOKEN_FILE).
import { Refused, units, Waiting } from "custody-sdk";
import { vaultFromEnvironment } from "custody-sdk/node";

const [name, to, amount] = process.argv.slice(2);
const { ASSET, WAIT = "60" } = process.env;
const vault = await vaultFromEnvironment();
try {
  const paid = await vault.pay(name, to, units(amount, 6), ASSET, { waitMs: Number(WAIT) * 1000 });
  console.log((await vault.confirm(paid.txId)).status);
} catch (error) {
  if (error instanceof Waiting) console.log("a person decides:", error.approvalId);
  else if (error instanceof Refused) console.error(`not paid: ${error.message}`), (process.exitCode = 1);
  else throw error;
}
