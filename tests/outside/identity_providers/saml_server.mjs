// What the SAML identity providers of node have in common: their options, their addresses, and what a test tells them.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

async function body(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
}

const answered = (response, status, type, text) => {
  response.writeHead(status, { "content-type": type });
  response.end(text);
};

// `answer({request, relayState, settings, idp})` gives the page that posts to the service; `metadata(idp)` the XML.
export function serve({ answer, metadata }) {
  const given = JSON.parse(process.argv[2]);
  let settings = {};
  const idp = {
    key: readFileSync(given.key, "utf8"),
    certificate: readFileSync(given.certificate, "utf8"),
    entityId: given.entity_id,
    ssoUrl: given.sso_url,
  };
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://idp.test");
    try {
      if (url.pathname === "/settings" && request.method === "PUT") {
        settings = JSON.parse(await body(request));
        answered(response, 204, "text/plain");
      } else if (url.pathname === "/metadata") {
        answered(response, 200, "application/samlmetadata+xml", await metadata(idp));
      } else if (url.pathname === "/sso") {
        const asked = Object.fromEntries(url.searchParams);
        const page = await answer({ request: asked.SAMLRequest, relayState: asked.RelayState ?? "", settings, idp });
        answered(response, 200, "text/html", page);
      } else {
        answered(response, 404, "text/plain", "no such page");
      }
    } catch (error) {
      answered(response, 400, "text/plain", `${error?.stack ?? error}`);
    }
  });
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    idp.entityId ??= `http://127.0.0.1:${port}/metadata`;
    idp.ssoUrl ??= `http://127.0.0.1:${port}/sso`;
    console.log(`listening on 127.0.0.1:${port}`);
  });
}
