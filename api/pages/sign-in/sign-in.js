// What the pages share on which people sign in. The access token lives in `here` and nowhere else: no cookie and no
// storage, so no other site can make this browser act for the person, and nothing is left when the page is closed. Only
// while the browser is away at an identity provider does the tab's own storage hold what the way back needs.
// Everything that comes from outside is shown as text.

import { checksum } from "./checksum.js";

const BASE = new URL("../", import.meta.url);
const WORDS = {
  code_invalid: "This code is wrong or too old. Look at the newest e-mail, or ask for another code.",
  siwe_chain_unknown:
    "Your wallet is set to a network that this service does not know. Switch its network and try again.",
  not_signed_in: "The identity provider signed nobody in. Try again, or sign in in another way.",
  sso_required:
    "Your organisation wants you to sign in with it: write your address and press \u201cSign in with your organisation\u201d.",
  internal: "Internal error; the operator can find the cause by the request id. Try again.",
};

export const at = (id) => document.getElementById(id);
const main = document.querySelector("main");
const steps = Array.from(document.querySelectorAll("section"));

export const here = { token: null, person: "", tenant: null };
const AWAY = "custody.sign-on";
const PROVIDERS = ["google", "discord", "twitter"];
let methods = null;
let providers = [];
let busy = false;
let purpose = "Sign in";
let next = null;

let kept = () => "";
let inTenant = () => undefined;
// Of a page for an app client: what goes with each sign-in, and with the way to one of the three providers.
let forClient = { body: {}, provider: {} };

// What a wallet shows the person, where it goes on after the sign-in, sentences for codes of this page's own, what of
// the page must be known again when the browser comes back from an identity provider, and the organisation to sign in
// to; without one it is the person's own.
export function prepare(what, then, words, keep, where = () => undefined, client = forClient) {
  purpose = what;
  next = then;
  Object.assign(WORDS, words);
  kept = keep;
  inTenant = where;
  forClient = client;
}

export class Problem extends Error {
  constructor(message, code = "", data = {}, status = 0) {
    super(message);
    this.code = code;
    this.data = data;
    // 0: nobody answered, so what was asked for may have been done.
    this.status = status;
  }
}

export async function call(method, path, body, more = {}) {
  const headers = { Accept: "application/json", ...more.headers };
  const own = here.token && !headers.Authorization;
  if (own) headers.Authorization = `Bearer ${here.token}`;
  if (body) headers["Content-Type"] = "application/json";
  const content = body && JSON.stringify(body);
  const asked = { method, body: content, credentials: "omit", cache: "no-store", ...more, headers };
  let response;
  let answer;
  try {
    response = await fetch(new URL(path, BASE), asked);
    answer = await response.json();
  } catch {
    throw new Problem("The service cannot be reached. Look at your connection and try again.");
  }
  if (response.ok) return answer.data;
  const code = answer.data?.code ?? "";
  const said = [code, answer.data ?? {}, response.status];
  if (response.status === 429) throw new Problem(patience(Number(response.headers.get("Retry-After")) || 60), ...said);
  if (response.status === 401 && own) here.token = null;
  throw new Problem(WORDS[code] ?? answer.error, ...said);
}

function patience(seconds) {
  const wait = seconds < 90 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
  return `Too many tries. Wait ${wait}, then try again.`;
}

// ---- what is on the screen

export function show(id) {
  for (const step of steps) step.hidden = step.id !== id;
  at(id).querySelector("h2").focus();
}

function complain(text) {
  say("");
  at("problem").textContent = text;
}

export function say(text) {
  at("status").textContent = text;
}

export function on(id, event, act) {
  at(id).addEventListener(event, (happened) => {
    happened.preventDefault();
    return attempt(act);
  });
}

// One thing at a time; what goes wrong is said, and the step stays.
export async function attempt(act) {
  if (busy) return;
  busy = true;
  main.setAttribute("aria-busy", "true");
  complain("");
  try {
    await act();
  } catch (problem) {
    complain(problem instanceof Problem ? problem.message : WORDS.internal);
    main.dispatchEvent(new CustomEvent("refused", { detail: problem.code }));
  } finally {
    busy = false;
    main.removeAttribute("aria-busy");
  }
}

// ---- signing in

// `ways`: of an app client, the providers that it offers and its tenant's own.
export async function offer(ways) {
  if (!methods) {
    const offered = await call("GET", "auth/providers");
    methods = new Set(offered.methods.filter((one) => one.enabled).map((one) => one.id));
    providers = ways?.oauth ?? offered.oauth;
    if (ways) showOrganisation(ways.organisation);
  }
  const passkey = methods.has("passkey") && "credentials" in navigator && "PublicKeyCredential" in window;
  const wallet = methods.has("siwe");
  at("passkey").hidden = !passkey;
  at("wallet").hidden = !(wallet && window.ethereum);
  at("no-wallet").hidden = !wallet || Boolean(window.ethereum);
  at("send-code").hidden = !methods.has("email");
  for (const name of PROVIDERS) at(name).hidden = !providers.includes(name);
  waitForMail(false);
  show("sign-in-step");
}

function waitForMail(sent) {
  at("ways").hidden = sent;
  at("email-code-form").hidden = !sent;
}

async function signedIn(session) {
  here.token = session.token;
  here.tenant = session.tenant;
  here.person = session.user.email ?? session.user.walletAddress ?? session.user.id;
  say("");
  if (session.tenant.apiKey) showKey(session.tenant);
  await next();
}

// A person who signs in for the first time gets a tenant with a key that no answer says again. It stays on the screen
// whatever becomes of the rest, which may well be about another tenant.
function showKey(tenant) {
  at("made-tenant").textContent = named(tenant);
  at("made-key").textContent = tenant.apiKey;
  at("made").hidden = false;
}

on("copy-key", "click", async () => {
  try {
    await navigator.clipboard.writeText(at("made-key").textContent);
  } catch {
    getSelection().selectAllChildren(at("made-key"));
    throw new Problem("Your browser does not let this page copy. The key is selected: copy it yourself.");
  }
  say("The key was copied.");
});

function address() {
  const email = at("email").value.trim();
  if (email.includes("@")) return email;
  at("email").focus();
  throw new Problem("Write the whole address, such as ann@example.com.");
}

on("email-form", "submit", async () => {
  if (!methods.has("email")) return signOn();
  const email = address();
  await call("POST", "auth/email/send", { email });
  say(`A code is on its way to ${email}. It works for ten minutes.`);
  at("email-code").value = "";
  waitForMail(true);
  at("email-code").focus();
});

on("email-code-form", "submit", async () => {
  const code = at("email-code").value.replace(/\s+/g, "");
  if (!code) {
    at("email-code").focus();
    throw new Problem("Write the six digits from the e-mail.");
  }
  await signedIn(await call("POST", "auth/email/verify", { email: at("email").value.trim(), code, ...where() }));
});

on("other-way", "click", () => offer());

// ---- signing in at an identity provider

for (const name of PROVIDERS) {
  on(name, "click", () => {
    const to = new URL(`auth/oauth/${name}/authorize`, BASE);
    for (const [key, value] of Object.entries(forClient.provider)) to.searchParams.set(key, value);
    return leave(to, forClient.provider.tenant_id);
  });
}
on("organisation", "click", signOn);

async function signOn() {
  const found = await call("POST", "auth/sso/discover", { email: address() });
  if (!found.methods.length) {
    throw new Problem(`No organisation signs people in for ${found.domain}. Sign in in another way.`);
  }
  if (found.methods.length === 1) return leave(new URL(found.methods[0].url), found.tenantId);
  const choices = choicesOf(found.methods, found.tenantId);
  at("organisation-ways").replaceChildren(...choices);
  choices[0].focus();
}

function choicesOf(found, tenant) {
  return found.map((method) => {
    const choice = document.createElement("button");
    choice.type = "button";
    choice.textContent = method.id ? `Sign in with ${method.id}` : "Sign in with SAML";
    choice.addEventListener("click", () => attempt(() => leave(new URL(method.url), tenant)));
    return choice;
  });
}

// A tenant is known, so are its providers: nobody has to write an address for them.
function showOrganisation(found) {
  at("organisation").hidden = true;
  at("email-form").hidden = !methods.has("email");
  if (found.length) at("organisation-ways").replaceChildren(...choicesOf(found, forClient.provider.tenant_id));
}

// The verifier of RFC 7636 stays in this tab, so a code that others see on its way is of no use to them.
async function leave(to, tenant = inTenant()) {
  if (!crypto.subtle) throw new Problem("Your browser lets only an https address do this. Open the page at one.");
  const [verifier, state] = [random(), random()];
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const asked = { redirect_uri: pageAddress(), code_challenge: letters(hash), code_challenge_method: "S256", state };
  for (const [name, value] of Object.entries(asked)) to.searchParams.set(name, value);
  sessionStorage.setItem(AWAY, JSON.stringify({ verifier, state, tenant, kept: kept() }));
  say("Going to the identity provider.");
  location.assign(to);
}

const pageAddress = () => `${location.origin}${location.pathname}`;
const random = () => letters(crypto.getRandomValues(new Uint8Array(32)));

// What the browser brought back, if this tab sent it away: what the page kept, and how to go on. It is taken out of the
// address and the storage before anything else, so neither a reload nor the history says it again.
export function cameBack() {
  const brought = new URLSearchParams(location.search);
  const stored = sessionStorage.getItem(AWAY);
  sessionStorage.removeItem(AWAY);
  // What asks this page to sign somebody in for an app client brings a state too, and names the client.
  if (!brought.has("state") || brought.has("client_id")) return null;
  history.replaceState(null, "", location.pathname);
  const left = stored && JSON.parse(stored);
  if (left?.state !== brought.get("state")) return null;
  return { kept: left.kept, finish: () => attempt(() => exchange(brought, left)) };
}

async function exchange(brought, left) {
  if (!brought.get("code")) {
    await offer();
    const code = brought.get("error_code") ?? "";
    throw new Problem(WORDS[code] ?? brought.get("error_description") ?? WORDS.not_signed_in, code);
  }
  const sent = { code: brought.get("code"), code_verifier: left.verifier, redirect_uri: pageAddress() };
  if (left.tenant) sent.tenant_id = left.tenant;
  let session;
  try {
    session = await call("POST", "auth/oauth/exchange", sent);
  } catch (problem) {
    await offer();
    throw problem;
  }
  await signedIn(session);
}

on("passkey", "click", async () => {
  const credential = await askPasskey(await call("POST", "auth/passkeys/login/options", {}));
  await signedIn(await call("POST", "auth/passkeys/login/verify", { credential, ...where() }));
});

// The answer of one of the person's passkeys to options of the service.
export async function askPasskey(options, otherwise = "sign in in another way") {
  say("Your browser asks for your passkey.");
  try {
    return closed(await navigator.credentials.get({ publicKey: opened(options) }));
  } catch (problem) {
    throw new Problem(
      problem.name === "SecurityError"
        ? "Passkeys of this service do not work at this address. Open the page at the service's own address."
        : `No passkey was used. Try again, or ${otherwise}.`,
    );
  }
}

function where() {
  const tenant = inTenant();
  return tenant ? { tenantId: tenant } : forClient.body;
}

on("wallet", "click", async () => {
  const { nonce } = await call("GET", "auth/nonce");
  let address;
  let message;
  let signature;
  say("Your wallet asks you to sign.");
  try {
    address = checksum((await window.ethereum.request({ method: "eth_requestAccounts" }))[0]);
    const chain = Number(await window.ethereum.request({ method: "eth_chainId" }));
    message = signInMessage(address, chain, nonce);
    signature = await window.ethereum.request({ method: "personal_sign", params: [hex(message), address] });
  } catch {
    throw new Problem("The wallet did not sign. Try again, or sign in in another way.");
  }
  await signedIn(await call("POST", "auth/verify", { message, signature, ...where() }));
});

// EIP-4361, to the letter.
function signInMessage(address, chain, nonce) {
  return [
    `${location.host} wants you to sign in with your Ethereum account:`,
    address,
    "",
    `${purpose}. This costs nothing.`,
    "",
    `URI: ${location.origin}${location.pathname}`,
    "Version: 1",
    `Chain ID: ${chain}`,
    `Nonce: ${nonce}`,
    `Issued At: ${new Date().toISOString()}`,
  ].join("\n");
}

function hex(text) {
  return `0x${Array.from(new TextEncoder().encode(text), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

// WebAuthn's JSON, by hand: not every browser has the functions for it yet.
const bytes = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
const letters = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

function opened(options) {
  const allowed = (options.allowCredentials ?? []).map((one) => ({ ...one, id: bytes(one.id) }));
  return { ...options, challenge: bytes(options.challenge), allowCredentials: allowed };
}

function closed(credential) {
  const { clientDataJSON, authenticatorData, signature, userHandle } = credential.response;
  return {
    id: credential.id,
    rawId: letters(credential.rawId),
    type: credential.type,
    authenticatorAttachment: credential.authenticatorAttachment,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: {
      clientDataJSON: letters(clientDataJSON),
      authenticatorData: letters(authenticatorData),
      signature: letters(signature),
      userHandle: userHandle && letters(userHandle),
    },
  };
}

export const named = (one) => (one.name === one.id ? one.id : `${one.name} (${one.id})`);
export const time = (iso) => new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

// A person whose sign-in has ended signs in again.
export async function whileSignedIn(act) {
  try {
    return await act();
  } catch (problem) {
    if (here.token) throw problem;
    await offer();
    throw new Problem("Your sign-in has ended. Sign in again.");
  }
}

// The page's own session has done its work. It is ended also when somebody leaves in the middle.
export async function signOut(more) {
  if (!here.token) return;
  const ended = call("POST", "auth/logout", undefined, more);
  here.token = null;
  await ended.catch(() => undefined);
}

addEventListener("pagehide", () => signOut({ keepalive: true }));
