// An application whose users have wallets: everything that it knows of Custody stands in these three lines.
import { custody } from "../custody.js";

const { service, tenant, client } = await (await fetch("settings.json")).json();
const shop = custody({ service, tenant, client });

const at = (id) => document.getElementById(id);
const say = (text) => (at("said").textContent = text);
// What the tenant's rules leave to its people is answered with this status.
const told = (answer, text) => (answer.status === "pending_approval" ? "Somebody has to decide about this." : text);

async function attempt(act) {
  try {
    say((await act()) ?? "");
  } catch (problem) {
    // The tenant says what needs a second factor, and for how long one counts. It is shown where people sign in.
    say(problem.code === "mfa_required" ? "Sign in again, with a passkey." : problem.message);
  }
  // The session may have ended meanwhile.
  at("outside").hidden = Boolean(shop.user);
  at("inside").hidden = !shop.user;
}

async function show() {
  const user = await shop.restore();
  if (!user) return;
  at("who").textContent = user.email ?? user.walletAddress ?? user.id;
  at("address").textContent = (await shop.wallet()).walletAddresses.evm;
}

at("sign-in").addEventListener("click", () => attempt(() => shop.signIn()));
at("factor").addEventListener("click", () => attempt(() => shop.signIn()));
at("sign-out").addEventListener("click", () => attempt(() => shop.signOut()));
at("hello").addEventListener("click", () =>
  attempt(async () => {
    const signed = await shop.signMessage("Hello from the shop");
    return told(signed, `Signed: ${signed.signature}`);
  }),
);
at("pay").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    const paid = await shop.sign({ to: at("to").value, value: at("value").value });
    return told(paid, `Paid: ${paid.txHash}`);
  });
});

await attempt(show);
