// The page where a person signs in for an app client of a tenant, which gets a code at an address that it lists.
// Nobody is sent to the address of the link itself: identity matches it, and its own answer is where the browser goes.

import { at, attempt, call, cameBack, here, offer, prepare, Problem, show, signOut } from "../sign-in/sign-in.js";

const WORDS = {
  unknown_app_client: "This link names an application that is not here, or that is switched off. Go back and tell its makers.",
  bad_redirect_uri: "This link leads to an address that the application has not listed. Nobody is sent there.",
  bad_code_challenge: "This link is not complete: its code_challenge and code_challenge_method=S256 are missing or wrong.",
  not_a_member: "You are not a user of this organisation, and it lets nobody register here. Ask it for an invitation.",
  quota_exceeded: "This organisation takes no more users at the moment. Ask its people.",
  sso_required: "This organisation wants you to sign in with it: use one of its buttons below.",
  registration_closed: "Nobody can register here. Ask the organisation for an invitation.",
};
const COLOUR = /^#[0-9a-fA-F]{6}$/;
const FAMILIES = /^[A-Za-z0-9 _.,'"-]{1,200}$/;

const back = cameBack();
const asked = new URLSearchParams(back ? back.kept : location.search);
// From the right: the id of a tenant may have no slash, nor may a client's.
const named = asked.get("client_id") ?? "";
const tenant = asked.get("tenant_id") ?? named.slice(0, Math.max(0, named.lastIndexOf("/")));
const client = named.slice(named.lastIndexOf("/") + 1);
let ready = false;
const forClient = { tenantId: tenant, appClientId: client };

prepare("Sign in", goOn, WORDS, () => `?${asked}`, undefined, {
  body: forClient,
  provider: { tenant_id: tenant, client_id: client },
});

async function begin() {
  if (!tenant || !client) throw new Problem(WORDS.unknown_app_client);
  if (asked.get("code_challenge_method") !== "S256" || !asked.get("code_challenge")) {
    throw new Problem(WORDS.bad_code_challenge);
  }
  const query = new URLSearchParams({
    tenant_id: tenant,
    client_id: client,
    redirect_uri: asked.get("redirect_uri") ?? "",
  });
  const found = await call("GET", `auth/sign-in?${query}`);
  wear(found.theme);
  document.title = `Sign in to ${found.clientName}`;
  at("for").textContent = `Sign in to ${found.clientName}`;
  at("about-client").textContent = found.clientName;
  at("about-tenant").textContent =
    found.tenantName === found.tenantId ? found.tenantId : `${found.tenantName} (${found.tenantId})`;
  at("about-address").textContent = found.returnsTo;
  at("about-registers").hidden = !found.registers;
  at("about").hidden = false;
  await offer({ oauth: found.oauth, organisation: found.organisation });
  ready = true;
}

async function goOn() {
  const { location: to } = await call("POST", "auth/sign-in/code", {
    clientId: client,
    redirectUri: asked.get("redirect_uri"),
    codeChallenge: asked.get("code_challenge"),
    codeChallengeMethod: "S256",
    state: asked.get("state") ?? "",
  });
  // The session of this page has done its work; the application gets its own.
  await signOut();
  at("end-title").textContent = "You are signed in";
  at("end-text").textContent = `Going on to ${at("about-address").textContent}.`;
  show("end-step");
  location.replace(to);
}

// A tenant's theme: values of known forms and nothing else, set one by one, so that none can end a declaration or name an
// address. A colour in which something could not be read here is left out: no theme hides where a person goes on.
function wear(theme) {
  if (!theme) return;
  const root = document.documentElement;
  const worn = getComputedStyle(root);
  const now = (property) => worn.getPropertyValue(property).trim();
  const put = (property, colour) => colour && root.style.setProperty(property, colour);
  const said = (name) => (COLOUR.test(theme[name] ?? "") ? theme[name] : null);
  if (["light", "dark"].includes(theme.colorScheme)) root.classList.add(theme.colorScheme);
  put("--ground", said("backgroundColor"));
  put("--card", said("surfaceColor"));
  const card = now("--card");
  const legible = (least, ...colours) => colours.find((one) => one && contrast(one, card) >= least) ?? readable(card);
  put("--text", legible(4.5, said("textColor"), now("--text")));
  put("--faint", legible(4.5, now("--faint"), now("--text")));
  put("--line", legible(3, now("--line"), now("--text")));
  put("--strong", said("primaryColor"));
  put("--on-strong", readable(now("--strong")));
  put("--strong-text", legible(4.5, now("--strong"), now("--text")));
  put("--accent", legible(3, said("accentColor"), now("--strong"), now("--text")));
  if (Number.isInteger(theme.borderRadius) && theme.borderRadius >= 0 && theme.borderRadius <= 32) {
    root.style.setProperty("--radius", `${theme.borderRadius}px`);
  }
  if (FAMILIES.test(theme.fontFamily ?? "")) root.style.setProperty("--font", `${theme.fontFamily}, system-ui, sans-serif`);
  root.classList.add("themed");
}

// WCAG 2.2: relative luminance, and the contrast of two colours.
function luminance(colour) {
  const [red, green, blue] = [1, 3, 5].map((place) => {
    const part = Number.parseInt(colour.slice(place, place + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

const readable = (colour) => (luminance(colour) > 0.179 ? "#000000" : "#ffffff");

// What the browser brought back from a provider is taken up once the application is known again.
attempt(begin).then(() => (ready ? back?.finish() : undefined));
