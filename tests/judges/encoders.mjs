// What JavaScript's encoders make of texts: one JSON text per line in, one JSON object of encoder and text per line out.
import { createInterface } from "node:readline";
import escapeHtml from "escape-html";
import Handlebars from "handlebars";
import he from "he";
import lodashEscape from "lodash.escape";
import Mustache from "mustache";

const handlebars = Handlebars.compile("{{text}}");

for await (const line of createInterface({ input: process.stdin })) {
  const text = JSON.parse(line);
  console.log(JSON.stringify({
    "escape-html": escapeHtml(text), handlebars: handlebars({ text }), "he.encode": he.encode(text),
    "he.encode, decimal": he.encode(text, { decimal: true }), "he.encode, named": he.encode(text, { useNamedReferences: true }),
    "he.escape": he.escape(text), "lodash.escape": lodashEscape(text), mustache: Mustache.render("{{text}}", { text }),
    "JSON.stringify": JSON.stringify(text).slice(1, -1), encodeURI: encodeURI(text),
    encodeURIComponent: encodeURIComponent(text), escape: escape(text),
    URLSearchParams: new URLSearchParams({ x: text }).toString().slice(2), "URL.pathname": new URL(`http://x/${encodeURIComponent(text)}`).pathname.slice(1),
    base64: Buffer.from(text).toString("base64"), base64url: Buffer.from(text).toString("base64url"),
    hex: Buffer.from(text).toString("hex"),
  }));
}
