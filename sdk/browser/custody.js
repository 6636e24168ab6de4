// Custody in a web page: sign people in, give each a wallet, have it sign (docs/users-with-wallets.md). Tokens are in
// this tab's sessionStorage, for any script of the page.

export class Refused extends Error {
  constructor(message, code, status, data) {
    super(message);
    Object.assign(this, { name: "Refused", code, status, data });
  }
}

const base64url = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

export function custody({ service, tenant, client, redirect = location.origin + location.pathname }) {
  // By service and tenant too, so no other gets these tokens.
  const kept = `custody ${service} ${tenant}/${client}`;
  const left = `${kept} left`;
  const read = (name) => JSON.parse(sessionStorage.getItem(name) ?? "null");
  let session = read(kept);
  let refreshing = null;

  function keep(next) {
    session = next;
    if (next) sessionStorage.setItem(kept, JSON.stringify(next));
    else sessionStorage.removeItem(kept);
  }

  async function ask(method, path, body, headers = {}) {
    const json = { "Content-Type": "application/json", ...headers };
    const sent = { method, headers: body ? json : headers, body: body && JSON.stringify(body) };
    const response = await fetch(service + path, { ...sent, credentials: "omit", cache: "no-store" });
    const answer = await response.json();
    if (response.ok) return answer.data;
    throw new Refused(answer.error, answer.data?.code ?? "", response.status, answer.data);
  }

  // A refresh token works once, so all who wait share the next one.
  function refresh() {
    refreshing ??= ask("POST", "/auth/refresh", { refreshToken: session.refreshToken })
      .then((next) => session && keep(next))
      .catch((problem) => {
        if (problem.status === 401) keep(null);
        throw problem;
      })
      .finally(() => (refreshing = null));
    return refreshing;
  }

  // A request as who is signed in.
  async function call(method, path, body, headers = {}) {
    const asked = () => {
      if (!session) throw new Refused("Nobody is signed in.", "signed_out");
      return ask(method, path, body, { ...headers, Authorization: `Bearer ${session.token}` });
    };
    try {
      return await asked();
    } catch (problem) {
      if (problem.status !== 401) throw problem;
      await refresh();
      return asked();
    }
  }

  // Sent twice under one key it happens once, so a broken connection pays nothing twice.
  async function once(path, body, key = crypto.randomUUID()) {
    const headers = { "Idempotency-Key": key };
    try {
      return await call("POST", path, body, headers);
    } catch (problem) {
      if (problem instanceof Refused) throw problem;
      return call("POST", path, body, headers);
    }
  }

  async function signOut() {
    if (session) await call("POST", "/auth/logout").catch(() => undefined);
    keep(null);
  }

  return {
    call,
    signOut,
    get user() {
      return session?.user ?? null;
    },

    // Leaves the page; `restore` goes on at `redirect`. Again for a second factor.
    async signIn() {
      const [verifier, state] = [random(), random()];
      const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
      sessionStorage.setItem(left, JSON.stringify({ verifier, state }));
      const asked = { client_id: `${tenant}/${client}`, redirect_uri: redirect, code_challenge: base64url(hash) };
      const query = new URLSearchParams({ ...asked, code_challenge_method: "S256", state });
      location.assign(`${service}/sign-in?${query}`);
    },

    // Call once at the start: ends a sign-in that came back; gives the user, or null.
    async restore() {
      const { state, code, iss, ...brought } = Object.fromEntries(new URLSearchParams(location.search));
      const asked = read(left);
      if (asked && asked.state === state && iss === service) {
        sessionStorage.removeItem(left);
        history.replaceState(null, "", redirect);
        if (!code) throw new Refused(brought.error_description, brought.error_code, 403);
        const exchange = { code, redirect_uri: redirect, code_verifier: asked.verifier, tenant_id: tenant };
        const next = await ask("POST", "/auth/oauth/exchange", exchange);
        await signOut();
        keep(next);
      }
      return session?.user ?? null;
    },

    // The person's wallet in this tenant, made at the first call: { agentId, walletAddresses, ... }.
    wallet: () => call("POST", "/user/me/wallet", {}),
    // { to, value, data?, chainId?, broadcast? }; `status` is "pending_approval" while somebody has to decide. Asked again
    // under the same key it says what became of it.
    sign: (transaction, key) => once("/user/me/wallet/sign", transaction, key),
    signTypedData: (document, key) => once("/user/me/wallet/sign-typed-data", document, key),
    signMessage: (message, key) => once("/user/me/wallet/sign-message", { chainFamily: "evm", message }, key),
  };
}
