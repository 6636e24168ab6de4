// The page where a person lets a device in. The access token lives in `token` and nowhere else: no cookie and no
// storage, so no other site can make this browser act for the person, and nothing is left when the page is closed.
// Everything that comes from outside is shown as text.

import { checksum } from "./checksum.js";

const BASE = new URL("../", import.meta.url);
const CODE = /^[0-9A-Z]{8}$/;
const WORDS = {
  code_invalid: "This code is wrong or too old. Look at the newest e-mail, or ask for another code.",
  device_code_absent:
    "No device that waits for you shows this code. It may be mistyped, older than ten minutes, or meant for an " +
    "organisation that you do not belong to.",
  device_decided: "This code was used already. Start again on the device.",
  siwe_chain_unknown:
    "Your wallet is set to a network that this service does not know. Switch its network and try again.",
  internal: "Internal error; the operator can find the cause by the request id. Try again.",
};

const at = (id) => document.getElementById(id);
const main = document.querySelector("main");
const steps = Array.from(document.querySelectorAll("section"));

let token = null;
let person = "";
let userCode = "";
let methods = null;
let busy = false;

class Problem extends Error {
  constructor(message, code = "") {
    super(message);
    this.code = code;
  }
}

async function call(method, path, body, more = {}) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  const content = body && JSON.stringify(body);
  const asked = { method, headers, body: content, credentials: "omit", cache: "no-store", ...more };
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
  if (response.status === 429) throw new Problem(patience(Number(response.headers.get("Retry-After")) || 60), code);
  if (response.status === 401 && headers.Authorization) token = null;
  throw new Problem(WORDS[code] ?? answer.error, code);
}

function patience(seconds) {
  const wait = seconds < 90 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
  return `Too many tries. Wait ${wait}, then try again.`;
}

// ---- what is on the screen

function show(id) {
  for (const step of steps) step.hidden = step.id !== id;
  at(id).querySelector("h2").focus();
}

function complain(text) {
  say("");
  at("problem").textContent = text;
}

function say(text) {
  at("status").textContent = text;
}

// One thing at a time; what goes wrong is said, and the step stays.
function on(id, event, act) {
  at(id).addEventListener(event, async (happened) => {
    happened.preventDefault();
    if (busy) return;
    busy = true;
    main.setAttribute("aria-busy", "true");
    complain("");
    try {
      await act();
    } catch (problem) {
      complain(problem instanceof Problem ? problem.message : WORDS.internal);
    } finally {
      busy = false;
      main.removeAttribute("aria-busy");
    }
  });
}

// ---- step 1: the code

on("code-form", "submit", async () => {
  const letters = at("user-code").value.replace(/[\s\-\u2010-\u2015]+/g, "").toUpperCase();
  if (!CODE.test(letters)) {
    at("user-code").focus();
    throw new Problem("A code has eight letters and digits, such as BCDF-GH34.");
  }
  userCode = `${letters.slice(0, 4)}-${letters.slice(4)}`;
  await (token ? review() : offer());
});

// ---- step 2: sign in

async function offer() {
  methods ??= new Set((await call("GET", "auth/providers")).methods.filter((one) => one.enabled).map((one) => one.id));
  const passkey = methods.has("passkey") && "credentials" in navigator && "PublicKeyCredential" in window;
  const wallet = methods.has("siwe");
  at("passkey").hidden = !passkey;
  at("wallet").hidden = !(wallet && window.ethereum);
  at("no-wallet").hidden = !wallet || Boolean(window.ethereum);
  at("email-form").hidden = !methods.has("email");
  at("no-methods").hidden = passkey || wallet || methods.has("email");
  waitForMail(false);
  show("sign-in-step");
}

function waitForMail(sent) {
  at("ways").hidden = sent;
  at("email-code-form").hidden = !sent;
}

async function signedIn(session) {
  token = session.token;
  person = session.user.email ?? session.user.walletAddress ?? session.user.id;
  say("");
  if (session.tenant.apiKey) showKey(session.tenant);
  await review();
}

// Who signs in for the first time gets a tenant with a key that no answer says again. It stays on the screen whatever
// becomes of the device, which may well be meant for another tenant.
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

on("email-form", "submit", async () => {
  const email = at("email").value.trim();
  if (!email.includes("@")) {
    at("email").focus();
    throw new Problem("Write the whole address, such as ann@example.com.");
  }
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
  await signedIn(await call("POST", "auth/email/verify", { email: at("email").value.trim(), code }));
});

on("other-way", "click", offer);

on("passkey", "click", async () => {
  const options = await call("POST", "auth/passkeys/login/options", {});
  say("Your browser asks for your passkey.");
  let credential;
  try {
    credential = await navigator.credentials.get({ publicKey: opened(options) });
  } catch (problem) {
    throw new Problem(
      problem.name === "SecurityError"
        ? "Passkeys of this service do not work at this address. Open the page at the address that the device shows."
        : "No passkey was used. Try again, or sign in in another way.",
    );
  }
  await signedIn(await call("POST", "auth/passkeys/login/verify", { credential: closed(credential) }));
});

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
  await signedIn(await call("POST", "auth/verify", { message, signature }));
});

// EIP-4361, to the letter.
function signInMessage(address, chain, nonce) {
  return [
    `${location.host} wants you to sign in with your Ethereum account:`,
    address,
    "",
    "Sign in to decide about a device. This costs nothing.",
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

// ---- step 3: look, and decide

const named = (one) => (one.name === one.id ? one.id : `${one.name} (${one.id})`);
const time = (iso) => new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

async function review() {
  const asked = await orBack(() => call("GET", `auth/device/request?user_code=${encodeURIComponent(userCode)}`));
  const native = asked.nativeBundleId ?? asked.nativePackageName;
  const client = asked.client ? named(asked.client) : "None named";
  at("asked-code").textContent = asked.userCode;
  at("asked-tenant").textContent = named(asked.tenant);
  at("asked-client").textContent = native ? `${client}, ${native}` : client;
  at("asked-name").textContent = asked.userAgent ?? "Nothing";
  at("asked-from").textContent = asked.ipAddress ?? "An unknown address";
  at("asked-at").textContent = time(asked.createdAt);
  at("asked-as").textContent = person;
  show("review-step");
}

async function decide(action, title, text) {
  await orBack(() => call("POST", "auth/device/verify", { user_code: userCode, action }));
  await signOut();
  at("end-title").textContent = title;
  at("end-text").textContent = text;
  show("end-step");
}

// A code that is no good is asked for again, and so is a person whose sign-in has ended.
async function orBack(act) {
  try {
    return await act();
  } catch (problem) {
    if (!token) {
      await offer();
      throw new Problem("Your sign-in has ended. Sign in again.");
    }
    if (problem.code.startsWith("device_")) show("code-step");
    throw problem;
  }
}

on("approve", "click", () =>
  decide("approve", "The device is signed in", "You can close this page and go on at the device."));
on("deny", "click", () => decide("deny", "The device was turned away", "It gets no access. You can close this page."));

// The page's own session has done its work. It is ended also when somebody leaves in the middle.
async function signOut(more) {
  if (!token) return;
  const ended = call("POST", "auth/logout", undefined, more);
  token = null;
  await ended.catch(() => undefined);
}

addEventListener("pagehide", () => signOut({ keepalive: true }));

show("code-step");
