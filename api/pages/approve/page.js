// The page where a person decides about what waits. It never votes: keys for votes belong to the console's own origin.
// The fragment names an organisation and an approval; no server is sent it. Nothing is stored, and what was shown goes
// when the sign-in ends.

import {
  Problem,
  askPasskey,
  at,
  attempt,
  call,
  cameBack,
  here,
  named,
  offer,
  on,
  prepare,
  say,
  show,
  signOut,
  time,
  whileSignedIn,
} from "../sign-in/sign-in.js";
import { address, element, fill, line, plain, row, section, until } from "./drawing.js";
import { Differs, checkDigest, compare, readOrder } from "./own-reading.js";
import { drawTelling, offerTelling } from "./telling.js";

const PAGE = 50;
const LOOK_AGAIN = 10_000;
// A finger that was on its way to something else must not decide.
const UNTIL_ENABLED = 800;
const LINK = /^([A-Za-z0-9_\-.:]{1,64})\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const DECIDERS = ["owner", "admin"];
const WORDS = {
  not_a_member: "You are no member of the organisation that the link names. Sign in again to see what waits in your own.",
  approval_absent: "There is no such item in this organisation. The link may be old.",
  approval_changed: "The order is another one by now. Read it again.",
  approval_resolved: "Somebody else has decided meanwhile. Nothing of yours was sent on.",
  approval_expired: "It expired before you decided.",
  intent_not_pending: "Somebody else has decided meanwhile. Nothing of yours was sent on.",
  quorum_needed: "Named people vote on this, in the console. It was not approved.",
};
// After these the item is read again, for it is not what it was.
const MOVED = ["approval_changed", "approval_resolved", "approval_expired", "intent_not_pending", "quorum_needed"];
const DECIDED = { approved: "Approved", rejected: "Denied", expired: "Expired, undecided" };
const PROPOSED = {
  transfer: "Proposes a payment",
  wallet_action: "Proposes an action of a wallet",
  rpc: "Proposes a question to a node",
  policy_update: "Proposes to replace all rules",
  policy_rule_create: "Proposes a new rule",
  policy_rule_update: "Proposes to change a rule",
  policy_rule_delete: "Proposes to delete a rule",
  quorum_update: "Proposes to change a key quorum",
  wallet_update: "Proposes new names of an agent",
};

const back = cameBack();
let link = LINK.exec(back ? back.kept : location.hash.slice(1));
if (location.hash) history.replaceState(null, "", location.pathname);

let shown = PAGE;
// What is open: its path, its digest, and what may be done with it.
let item = null;
let ready = null;
let endSeen = false;
let asked = null;
// A decision whose answer was lost is sent again under the key that it had, so that it is carried out once.
const keys = new Map();

prepare("Sign in to decide what waits", begin, WORDS, () => (link ? link[0] : ""), () => link?.[1]);
document.querySelector("main").addEventListener("refused", (event) => {
  if (event.detail === "not_a_member") link = null;
});

async function begin() {
  const session = await whileSignedIn(() => call("GET", "auth/session"));
  here.tenant = session.tenant;
  const choices = session.memberships.map((one) => {
    const choice = element("option", "", named({ id: one.tenantId, name: plain(one.name) }));
    choice.value = one.tenantId;
    choice.selected = one.tenantId === session.tenant.id;
    return choice;
  });
  fill("tenant", ...choices);
  at("tenant-choice").hidden = choices.length < 2;
  at("one-tenant").hidden = choices.length > 1;
  at("one-tenant").textContent = `${plain(named(session.tenant))}. You are signed in as ${plain(here.person)}.`;
  at("role-hint").hidden = DECIDERS.includes(session.tenant.role);
  at("role-hint").textContent = `Your role here, ${session.tenant.role}, may read this. An owner or admin decides.`;
  const wanted = link?.[2];
  link = null;
  if (wanted) return open(`approvals/${wanted}`);
  return list();
}

// ---- the list

async function fetchList() {
  const approvals = call("GET", `approvals/words?limit=${shown}`);
  const proposals = call("GET", `intents?status=pending&limit=${PAGE}`);
  const found = await Promise.all([approvals, proposals]);
  return [found[0], found[1].intents];
}

async function list() {
  forget();
  drawList(await whileSignedIn(fetchList));
  await drawTelling(DECIDERS.includes(here.tenant.role));
  show("list-step");
}

function drawList([approvals, intents]) {
  const many = approvals.length + intents.length;
  const more = approvals.length === shown;
  at("list-title").textContent = many ? `${many}${more ? " or more" : ""} wait${many === 1 ? "s" : ""} for a decision` : "Nothing waits";
  fill("waiting", ...approvals.map(approvalRow));
  fill("proposed", ...intents.map(intentRow));
  at("proposals").hidden = !intents.length;
  at("more").hidden = !more || shown >= 100;
}

function approvalRow(one) {
  const who = [one.agentName || one.agentId, until(one.expiresAt)];
  if (one.byVotes) who.push("by votes");
  return row({ what: one.short, grave: one.danger?.replace(/^! /, ""), who: who.join(" \u00b7 ") }, () =>
    attempt(() => open(`approvals/${one.id}`)),
  );
}

function intentRow(one) {
  const who = [one.agentId, `by ${proposer(one)}`, until(one.expiresAt)].filter(Boolean);
  return row({ what: PROPOSED[one.intentType] ?? one.intentType, who: who.join(" \u00b7 ") }, () =>
    attempt(() => open(`intents/${one.id}`)),
  );
}

const proposer = (one) => one.createdByDisplayName || one.createdBy;

on("reload", "click", list);
on("more", "click", () => {
  shown = 100;
  return list();
});
on("leave", "click", async () => {
  await signOut();
  clear();
  await offer();
  say("You are signed out.");
});
on("tenant", "change", async () => {
  const session = await whileSignedIn(() => call("POST", "auth/session/tenant", { tenantId: at("tenant").value }));
  here.token = session.token;
  shown = PAGE;
  await begin();
});

// ---- one item

async function open(path) {
  const read = path.startsWith("approvals/") ? `${path}/words` : path;
  const found = await whileSignedIn(() => call("GET", read));
  await draw(path, found);
  show("item-step");
  scrollTo(0, 0);
}

async function draw(path, found) {
  forget();
  const isIntent = path.startsWith("intents/");
  item = { path, digest: found.digest, status: found.status, isIntent, byVotes: Boolean(found.votes), stop: "" };
  await (isIntent ? drawIntent(found) : drawApproval(found));
  const waits = found.status === "pending";
  at("item-state").textContent = waits ? `Waits, ${until(found.expiresAt)}` : "Decided";
  at("stop").hidden = !item.stop;
  at("stop-text").textContent = plain(item.stop);
  at("decide").hidden = !waits;
  at("approve").hidden = isIntent || item.byVotes;
  at("deny").textContent = isIntent ? "Reject" : "Deny";
  item.warned = at("dangers").children.length > 0;
  at("heeded-label").hidden = !item.warned || isIntent || item.byVotes;
  at("heeded").checked = false;
  at("reason").value = "";
  gate(waits);
}

async function drawApproval(found) {
  const asks = found.votes ? "It waits for votes" : "Approve this?";
  at("item-title").textContent = found.status === "pending" ? asks : plain(found.short);
  const dangers = [...found.danger];
  if (!found.complete) dangers.unshift({ text: "! Not all of it can be shown here.", tone: "bad" });
  const grave = dangers.some((one) => one.tone === "bad");
  fill("dangers", ...dangers.map((one) => element("li", one.tone === "bad" ? "bad" : "", one.text.replace(/^! /, ""))));
  fill("lines", ...found.lines.map(line));
  fill(
    "sections",
    section("Rules", found.rules),
    section("Limits", found.limits.length ? found.limits : [{ text: "No rolling limit of this agent is known." }]),
    section("Before", found.before),
    section("Exact values", found.details, { open: grave, exact: true }),
  );
  await readHere(found);
  const votes = found.votes;
  const decided = found.status === "pending" ? votes && byVotes(votes) : outcome(found);
  tell(decided, found.status === "approved");
}

async function readHere(found) {
  const own = at("own-reading");
  own.hidden = false;
  own.className = "own alone";
  try {
    const same = await checkDigest(found);
    const read = same ? readOrder(found.kind, found.order) : null;
    if (read) {
      compare(read, found.lines);
      own.className = "own agrees";
      own.replaceChildren(`Read on this device too: it ${read.sentence}${read.to ? ", for" : ""}`, address(read.to), "as the words above say.");
    } else {
      own.textContent = same
        ? "This device cannot read this kind of order: the words above are the service's alone. It made the order's digest itself, so your decision is about this order and no other."
        : "This device can neither read this kind of order nor make its digest: all of it is the service's word.";
    }
  } catch (problem) {
    if (!(problem instanceof Differs)) throw problem;
    item.stop = `${problem.message} Approve nothing here, and tell the operator of this service.`;
    own.hidden = true;
  }
}

function drawIntent(found) {
  at("item-title").textContent = found.status === "pending" ? "Reject this proposal?" : "A proposal";
  fill("dangers");
  const about = [
    { text: `${PROPOSED[found.intentType] ?? found.intentType}.` },
    ...(found.agentId ? [{ text: `For agent ${found.agentId}.` }] : []),
    { text: `Proposed by ${proposer(found)}, ${time(found.createdAt)}.` },
  ];
  const payload = element("pre");
  payload.textContent = JSON.stringify(found.payload, null, 2).split("\n").map(plain).join("\n");
  fill("lines", ...about.map(line), payload);
  fill("sections");
  at("own-reading").hidden = true;
  tell(found.status === "pending" ? "" : `It is ${found.status}.`, false);
}

function byVotes(votes) {
  const given = `${votes.have} of ${votes.need} votes`;
  return `Named people vote on this in the console, each with a key of their own: ${given}. Here it can only be denied.`;
}

function outcome(found) {
  const who = found.resolvedByName ? ` by ${found.resolvedByName}` : found.resolvedBy === "agent" ? " by its agent" : "";
  return `${DECIDED[found.status] ?? found.status}${who}${found.resolvedAt ? `, ${time(found.resolvedAt)}` : ""}.`;
}

function tell(text, good) {
  at("decided").hidden = !text;
  at("decided").className = good ? "decided good" : "decided";
  at("decided").textContent = plain(text);
}

// ---- when a decision may be pressed

const end = new IntersectionObserver(
  (seen) => {
    if (seen.some((one) => one.isIntersecting)) endSeen = true;
    update();
  },
  { threshold: 1 },
);

function gate(waits) {
  endSeen = false;
  ready = null;
  update();
  end.disconnect();
  if (!waits) return;
  end.observe(at("deny"));
  const mine = item;
  setTimeout(() => {
    if (item !== mine) return;
    ready = mine;
    update();
  }, UNTIL_ENABLED);
}

function update() {
  const may = item !== null && ready === item && endSeen && item.status === "pending";
  at("deny").disabled = !may;
  at("approve").disabled = !may || item.isIntent || item.byVotes || Boolean(item.stop) || (item.warned && !at("heeded").checked);
}

at("heeded").addEventListener("change", update);

function forget() {
  item = null;
  update();
}

// Nothing of an organisation stays on the screen of somebody who is not signed in.
function clear() {
  forget();
  asked = null;
  for (const id of ["waiting", "proposed", "lines", "sections", "dangers", "tenant"]) fill(id);
  for (const id of ["own-reading", "decided", "one-tenant", "list-title", "item-title", "stop-text"]) at(id).textContent = "";
  at("reason").value = "";
}

on("back", "click", list);

// ---- deciding

on("approve", "click", () => decide("approve", { digest: item.digest }));
on("deny", "click", () => {
  const reason = at("reason").value.trim();
  return decide(item.isIntent ? "reject" : "deny", { digest: item.digest, ...(reason ? { reason } : {}) });
});

async function decide(way, body) {
  if (way === "approve" ? at("approve").disabled : at("deny").disabled) return;
  const name = JSON.stringify([item.path, way, body]);
  if (!keys.has(name)) keys.set(name, random());
  asked = { item: item.path, path: `${item.path}/${way}`, body, name, key: keys.get(name), way };
  await send();
}

// What is no decision is sent the same way: a second factor may be asked for in between.
async function order(method, path, body, settle, undo) {
  asked = { method, path, body, key: random(), way: "tell", settle, undo };
  await send();
}

// With a token of a touch for this item, or else with that of the sign-in.
async function send(token) {
  const mine = asked;
  const method = mine.method ?? "POST";
  const headers = { ...(method === "GET" ? {} : { "Idempotency-Key": mine.key }), ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let answer;
  try {
    answer = await whileSignedIn(() => call(method, mine.path, mine.body, { headers }));
  } catch (problem) {
    if (problem.code === "mfa_required") return askFactor(problem.data);
    if (mine.undo) await mine.undo();
    if (!here.token) {
      link = mine.item?.startsWith("approvals/") ? LINK.exec(`${here.tenant.id}/${mine.item.slice(10)}`) : null;
      clear();
      throw problem;
    }
    if (MOVED.includes(problem.code)) {
      keys.delete(mine.name);
      await open(mine.item);
    }
    if (mine.settle) {
      await list();
      throw problem;
    }
    if (problem.status === 0 || problem.status >= 500) {
      throw new Problem(`${problem.message} It is not known whether your decision arrived. Press again: it is sent as the same decision and carried out once.`);
    }
    throw problem;
  }
  keys.delete(mine.name);
  asked = null;
  if (mine.settle) {
    await list();
    return mine.settle(answer);
  }
  await open(mine.item);
  say({ approve: answer.txHash ? "Approved and signed." : "Approved.", deny: "Denied.", reject: "Rejected." }[mine.way]);
}

const random = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

// ---- a second factor, when the one of the sign-in is none or too old

function askFactor(data) {
  const methods = data.methods ?? [];
  if (!methods.length) throw new Problem("You have no second factor yet. Add a passkey or an authenticator in the console, then decide.");
  const passkey = methods.includes("passkey") && "credentials" in navigator;
  const code = methods.includes("totp") || methods.includes("recovery");
  if (!passkey && !code) throw new Problem("Your second factor does not work here. Decide in the console.");
  at("step-up-passkey").hidden = !passkey;
  at("step-up-form").hidden = !code;
  const lasts = patience(data.maxAgeSeconds);
  at("step-up-what").textContent =
    asked.way === "approve" && passkey
      ? `Your passkey is asked for this one item. A code counts for ${lasts}.`
      : `What you show counts for ${lasts}.`;
  at("step-up-code").value = "";
  say("");
  show("step-up-step");
}

const patience = (seconds) => (seconds >= 120 ? `${Math.round(seconds / 60)} minutes` : `${seconds ?? 300} seconds`);

async function steppedUp(path, body) {
  // Named here, so that evidence which is refused does not pass for a sign-in that has ended.
  const headers = { Authorization: `Bearer ${here.token}` };
  const session = await call("POST", path, body, { headers }).catch(notByMail);
  here.token = session.token;
  await send();
}

// The shared sentence is about a code that came by mail.
function notByMail(problem) {
  if (problem.code !== "code_invalid") throw problem;
  throw new Problem("This code is wrong, too old or used already. Take the next one.", problem.code);
}

// For approving one item the touch is for that item alone: who sees it on its way can do this one thing by it.
async function touched() {
  const about = { approvalId: asked.item.slice("approvals/".length), digest: asked.body.digest };
  const options = await whileSignedIn(() => call("POST", "auth/mfa/passkey/item/options", about));
  const credential = await askPasskey(options, "use a code");
  const headers = { Authorization: `Bearer ${here.token}` };
  const found = await call("POST", "auth/mfa/passkey/item", { ...about, credential }, { headers });
  await send(found.token);
}

on("step-up-passkey", "click", async () => {
  if (asked.way === "approve") return touched();
  const options = await whileSignedIn(() => call("POST", "auth/mfa/passkey/options", {}));
  await steppedUp("auth/mfa/passkey/step-up", { credential: await askPasskey(options, "use a code") });
});

on("step-up-form", "submit", () => {
  const code = at("step-up-code").value.trim();
  const digits = code.replace(/\s+/g, "");
  if (!code) throw new Problem("Write the code first.");
  const kind = /^[0-9]{6}$/.test(digits) ? "totp" : "recovery-codes";
  return steppedUp(`auth/mfa/${kind}/step-up`, { code: kind === "totp" ? digits : code });
});

on("step-up-back", "click", async () => {
  const { item: path, undo } = asked;
  asked = null;
  if (undo) await undo();
  return path ? open(path) : list();
});

// ---- what others do meanwhile

const main = document.querySelector("main");
const isBusy = () => main.hasAttribute("aria-busy");
const shows = (id) => !at(id).hidden;

async function lookAgain() {
  if (document.hidden || !here.token || isBusy()) return;
  try {
    if (shows("list-step")) {
      const found = await fetchList();
      if (shows("list-step") && !isBusy() && here.token) drawList(found);
    } else if (shows("item-step") && item?.status === "pending") {
      await compareWith(item);
    }
  } catch (problem) {
    if (here.token) return;
    await attempt(async () => {
      clear();
      await offer();
      throw new Problem("Your sign-in has ended. Sign in again.");
    });
  }
}

async function compareWith(mine) {
  const found = await call("GET", mine.path);
  if (item !== mine || isBusy()) return;
  if (found.status === mine.status && found.digest === mine.digest) return;
  await attempt(async () => {
    await open(mine.path);
    say(found.status === mine.status ? "The order is another one by now." : "Somebody has decided meanwhile.");
  });
}

setInterval(lookAgain, LOOK_AGAIN);
document.addEventListener("visibilitychange", lookAgain);
addEventListener("online", lookAgain);
// A page that the browser kept while it was away shows nothing of before: the sign-in ended when it was left.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  clear();
  attempt(offer);
});
addEventListener("pagehide", clear);
addEventListener("hashchange", () => {
  const found = LINK.exec(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
  if (!found) return;
  link = found;
  if (!here.token) return;
  attempt(async () => {
    if (here.tenant.id !== found[1]) {
      const session = await whileSignedIn(() => call("POST", "auth/session/tenant", { tenantId: found[1] }));
      here.token = session.token;
    }
    await begin();
  });
});

// ---- the worker, which shows pushes; the page does all else without it

const WORKER = new URL("worker.js", import.meta.url).href;

async function register() {
  if (!("serviceWorker" in navigator)) return;
  const policy = window.trustedTypes?.createPolicy("custody-worker", {
    createScriptURL: (url) => {
      if (url === WORKER) return url;
      throw new TypeError("another worker");
    },
  });
  return navigator.serviceWorker.register(policy ? policy.createScriptURL(WORKER) : WORKER).catch(() => undefined);
}

register().then((made) => offerTelling(made, order));
if (back) back.finish();
else attempt(offer);
