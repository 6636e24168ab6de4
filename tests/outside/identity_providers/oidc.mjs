// An OpenID provider made of `oidc-provider`. Its page asks for one press of a button, and then everything is granted.
import { createHash, generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import Provider from "oidc-provider";

const given = JSON.parse(process.argv[2]);
const ROTATIONS = 3;

function jwk(type, options, alg) {
  const made = generateKeyPairSync(type, options).privateKey.export({ format: "jwk" });
  const kid = createHash("sha256").update(made.n ?? made.x).digest("base64url").slice(0, 16);
  return { ...made, kid, alg, use: "sig" };
}

const keys = () => [jwk("rsa", { modulusLength: 2048 }, "RS256"), jwk("ec", { namedCurve: "P-256" }, "ES256")];

let { user } = given;
let signing = keys();
let provider;

const kept = new Map();

// Outlives a provider that is made again with other keys. The library itself looks at what has expired.
class Store {
  constructor(model) {
    this.prefix = `${model}:`;
  }

  upsert(id, payload) {
    kept.set(this.prefix + id, payload);
  }

  find(id) {
    return kept.get(this.prefix + id);
  }

  findByUid(uid) {
    return [...kept].find(([key, { uid: other }]) => key.startsWith(this.prefix) && other === uid)?.[1];
  }

  consume(id) {
    this.find(id).consumed = Math.floor(Date.now() / 1000);
  }

  destroy(id) {
    kept.delete(this.prefix + id);
  }

  revokeByGrantId(grantId) {
    for (const [key, payload] of kept) if (payload.grantId === grantId) kept.delete(key);
  }
}

function renew(issuer) {
  provider = new Provider(issuer, {
    adapter: Store,
    clients: given.clients,
    jwks: { keys: signing },
    cookies: { keys: ["only for tests"] },
    pkce: { required: () => true },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    // Otherwise the claims are had at the user info endpoint alone.
    conformIdTokenClaims: false,
    enabledJWA: { idTokenSigningAlgValues: ["RS256", "ES256"] },
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: false } },
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ ...user, sub }) }),
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
  });
  provider.on("server_error", (_context, error) => console.error(error));
}

async function grant({ session, grantId, params, prompt }) {
  const made = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingOIDCClaims } = prompt.details;
  if (missingOIDCScope) made.addOIDCScope(missingOIDCScope.join(" "));
  if (missingOIDCClaims) made.addOIDCClaims(missingOIDCClaims);
  return made.save();
}

async function interact(request, response) {
  const details = await provider.interactionDetails(request, response);
  if (request.method !== "POST") {
    response.writeHead(200, { "content-type": "text/html" });
    response.end(
      `<!doctype html><title>Sign in</title><form method="post" action="/interaction/${details.uid}">` +
        `<p>${details.prompt.name}</p><button autofocus>Continue</button></form>`,
    );
    return;
  }
  const result = details.prompt.name === "login"
    ? { login: { accountId: user.sub } }
    : { consent: { grantId: await grant(details) } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

async function body(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
}

async function answer(request, response) {
  try {
    if (request.method === "PUT" && request.url === "/settings/user") {
      user = JSON.parse(await body(request));
      response.writeHead(204).end();
    } else if (request.method === "PUT" && request.url === "/settings/keys") {
      // The first of a kind signs; the old ones stay published for a while, unless they are to be forgotten.
      const { forget } = JSON.parse(await body(request));
      signing = [...keys(), ...(forget ? [] : signing)].slice(0, 2 * ROTATIONS);
      renew(provider.issuer);
      response.writeHead(204).end();
    } else if (request.url.startsWith("/interaction/")) {
      await interact(request, response);
    } else {
      await provider.callback()(request, response);
    }
  } catch (error) {
    response.writeHead(500, { "content-type": "text/plain" }).end(`${error.stack}`);
  }
}

const pem = given.tls && readFileSync(given.tls);
const server = pem ? createSecureServer({ key: pem, cert: pem }, answer) : createServer(answer);

server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  renew(`${pem ? "https" : "http"}://${given.host}:${port}`);
  console.log(`listening on 127.0.0.1:${port}`);
});
