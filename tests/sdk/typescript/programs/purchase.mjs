// A call is bought by the client's own payer, and by x402's own client with the vault's account.
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { registerExactEvmScheme } from "@x402/evm/exact/client";

import { vaultFromEnvironment } from "custody-sdk/node";
import { vaultAccount } from "custody-sdk/viem";
import { payingFetch } from "custody-sdk/x402";

const [url] = process.argv.slice(2);
const vault = await vaultFromEnvironment();
const said = { unpaid: (await fetch(url)).status };
const first = await payingFetch(vault, "quote-1")(url);
said.paid = [first.status, await first.json()];
// The same name is the same payment, which this seller has taken already.
said.again = (await payingFetch(vault, "quote-1")(url)).status;
const client = new x402Client();
registerExactEvmScheme(client, { signer: await vaultAccount(vault) });
// Newer ones pay no token that they do not know, unless they are told.
client.setSpendControls?.({ allowedAssets: true });
const theirs = await wrapFetchWithPayment(fetch, client)(url, {});
said.theirs = [theirs.status, await theirs.json()];
console.log(JSON.stringify(said));
