// An identity provider made of `samlify`. Its own template has no AuthnStatement and leaves unknown {names} as they are.
import { inflateRawSync } from "node:zlib";
import samlify from "samlify";
import { serve } from "./saml_server.mjs";

const POST = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST";
const REDIRECT = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect";
const { SamlLib } = samlify;

// There is no schema at hand: what the tests send it has been read by others.
samlify.setSchemaValidator({ validate: () => Promise.resolve("not looked at") });

// It warns of every provider that publishes no logout.
console.warn = () => undefined;

const escaped = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

function provider(idp, settings = {}) {
  return samlify.IdentityProvider({
    entityID: idp.entityId,
    privateKey: idp.key,
    signingCert: idp.certificate,
    isAssertionEncrypted: Boolean(settings.encrypt_for),
    dataEncryptionAlgorithm: "http://www.w3.org/2009/xmlenc11#aes256-gcm",
    keyEncryptionAlgorithm: "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p",
    wantAuthnRequestsSigned: false,
    requestSignatureAlgorithm: "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
    nameIDFormat: settings.name_id_format ? [settings.name_id_format] : [],
    singleSignOnService: [{ Binding: REDIRECT, Location: idp.ssoUrl }],
  });
}

function statements({ attributes }, now) {
  const authn =
    `<saml:AuthnStatement AuthnInstant="${now}" SessionIndex="session-1"><saml:AuthnContext>` +
    "<saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef>" +
    "</saml:AuthnContext></saml:AuthnStatement>";
  const each = attributes.map(([name, values]) => {
    const inside = values.map((value) => `<saml:AttributeValue>${escaped(value)}</saml:AttributeValue>`).join("");
    return `<saml:Attribute Name="${escaped(name)}">${inside}</saml:Attribute>`;
  });
  return [authn, each.length ? `<saml:AttributeStatement>${each.join("")}</saml:AttributeStatement>` : ""];
}

function filled(template, { idp, settings, acs, audience, inResponseTo }) {
  const now = new Date().toISOString();
  const later = new Date(Date.now() + settings.lifetime_seconds * 1000).toISOString();
  const [authnStatement, attributeStatement] = statements(settings, now);
  const whole = template
    .replace("{AuthnStatement}", () => authnStatement)
    .replace("{AttributeStatement}", () => attributeStatement);
  return SamlLib.replaceTagsByValue(whole, {
    ID: `_${crypto.randomUUID()}`,
    AssertionID: `_${crypto.randomUUID()}`,
    IssueInstant: now,
    Destination: acs,
    InResponseTo: inResponseTo,
    Issuer: idp.entityId,
    StatusCode: "urn:oasis:names:tc:SAML:2.0:status:Success",
    NameIDFormat: settings.name_id_format,
    NameID: settings.name_id,
    SubjectConfirmationDataNotOnOrAfter: later,
    SubjectRecipient: acs,
    ConditionsNotBefore: now,
    ConditionsNotOnOrAfter: later,
    Audience: audience,
  });
}

async function answer({ request, relayState, settings, idp }) {
  const us = provider(idp, settings);
  const found = samlify.Extractor.extract(
    inflateRawSync(Buffer.from(request, "base64")).toString(),
    samlify.Extractor.loginRequestFields,
  );
  const acs = settings.acs_url ?? found.request.assertionConsumerServiceUrl;
  const audience = settings.audience ?? found.issuer;
  const service = samlify.ServiceProvider({
    entityID: audience,
    wantAssertionsSigned: settings.sign_assertion,
    wantMessageSigned: settings.sign_response,
    ...(settings.encrypt_for && { encryptCert: settings.encrypt_for }),
    assertionConsumerService: [{ Binding: POST, Location: acs }],
  });
  const asked = await us.parseLoginRequest(service, "redirect", { query: { SAMLRequest: request } });
  const inResponseTo = asked.extract.request.id;
  const made = await us.createLoginResponse(service, asked, "post", {}, {
    relayState,
    // As the standard has it; by default it signs the response before it encrypts.
    encryptThenSign: Boolean(settings.encrypt_for),
    customTagReplacement: (template) => ({
      context: filled(template, { idp, settings, acs, audience, inResponseTo }),
    }),
  });
  const fields = { SAMLResponse: made.context, RelayState: relayState };
  const inputs = Object.entries(fields).map(([name, value]) =>
    `<input type="hidden" name="${name}" value="${escaped(value)}">`);
  return `<!doctype html><title>Signing in</title><form method="post" action="${escaped(made.entityEndpoint)}">` +
    `${inputs.join("")}<button>Continue</button></form><script>document.forms[0].submit();</script>`;
}

serve({ answer, metadata: (idp) => provider(idp).getMetadata() });
