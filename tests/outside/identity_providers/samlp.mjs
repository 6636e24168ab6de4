// An identity provider made of auth0's `samlp`.
import { promisify } from "node:util";
import samlp from "samlp";
import { serve } from "./saml_server.mjs";

const parsed = promisify(samlp.parseRequest);

function mapper(settings) {
  const attributes = Object.fromEntries(settings.attributes);
  return () => ({
    getClaims: () => attributes,
    getNameIdentifier: () => ({ nameIdentifier: settings.name_id, nameIdentifierFormat: settings.name_id_format }),
  });
}

// Call one of its middlewares with as much of a request and an answer as it looks at.
function page(middleware, query = {}, headers = {}, originalUrl = "/sso") {
  return new Promise((resolve, reject) => {
    middleware(
      { method: "GET", query, headers, originalUrl, protocol: "http" },
      { set: () => undefined, send: resolve },
      reject,
    );
  });
}

async function answer({ request, relayState, settings, idp }) {
  const query = { SAMLRequest: request, RelayState: relayState };
  const asked = await parsed({ query });
  const acs = settings.acs_url ?? asked.assertionConsumerServiceURL;
  const middleware = samlp.auth({
    issuer: idp.entityId,
    key: idp.key,
    cert: idp.certificate,
    getPostURL: (_audience, _request, _http, callback) => callback(null, acs),
    getUserFromRequest: () => ({}),
    profileMapper: mapper(settings),
    audience: settings.audience ?? undefined,
    recipient: acs,
    destination: acs,
    lifetimeInSeconds: settings.lifetime_seconds,
    signResponse: settings.sign_response,
    signAssertion: settings.sign_assertion,
    ...(settings.encrypt_for && {
      encryptionCert: settings.encrypt_for,
      encryptionPublicKey: settings.encrypt_key,
      encryptionAlgorithm: "http://www.w3.org/2009/xmlenc11#aes256-gcm",
      keyEncryptionAlgorithm: "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p",
    }),
    sessionIndex: "session-1",
    authnContextClassRef: "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport",
  });
  return page(middleware, query);
}

function metadata(idp) {
  const { host, pathname, protocol } = new URL(idp.ssoUrl);
  class NoClaims {}
  NoClaims.prototype.metadata = [];
  const options = {
    issuer: idp.entityId,
    cert: idp.certificate,
    profileMapper: NoClaims,
    redirectEndpointPath: pathname,
    postEndpointPath: pathname,
  };
  return page(samlp.metadata(options), {}, { host, "x-forwarded-proto": protocol.slice(0, -1) });
}

serve({ answer, metadata });
