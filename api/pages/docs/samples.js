// Writes a request of each operation for curl, Python and TypeScript, with a body that its schema takes.
"use strict";

// How each credential is sent, the most usual first; the value is a variable of the sample.
const CREDENTIALS = [
  ["tenant_key", { "X-Service-Key": ["", "key"] }],
  ["agent_token", { Authorization: ["Bearer ", "token"] }],
  ["session", { Authorization: ["Bearer ", "session"] }],
  ["platform_key", { "X-Service-Platform-Key": ["", "platform_key"] }],
  ["app_client", { Authorization: ["Basic ", "app_credentials"], "X-Service-App-Id": ["", "app_id"] }],
];
const FORMATS = {
  uuid: "00000000-0000-4000-8000-000000000000",
  "date-time": "2026-01-31T12:00:00Z",
  date: "2026-01-31",
  email: "name@example.com",
};
const TEXTS = ["a", "1", `0x${"1".repeat(40)}`, "example.com"];

// A value that a schema takes, as short as it may be; `resolve` follows references.
function sampleOf(given, resolve, depth = 0) {
  const schema = resolve(given);
  if ("const" in schema) return schema.const;
  if (schema.examples?.length) return schema.examples[0];
  if (schema.enum) return schema.enum[0];
  const parts = schema.oneOf ?? schema.anyOf;
  if (parts) return sampleOf(parts.find((part) => part.type !== "null") ?? parts[0], resolve, depth);
  if (schema.type === "array") return (schema.minItems ?? 1) && depth < 6 ? [sampleOf(schema.items, resolve, depth + 1)] : [];
  if (schema.type === "object") {
    const names = [...(schema.required ?? []), ...(schema["x-service-needs"] ?? [])];
    return Object.fromEntries(names.filter((name) => schema.properties?.[name]).map((name) => [name, sampleOf(schema.properties[name], resolve, depth + 1)]));
  }
  if (schema.type === "integer" || schema.type === "number") return schema.minimum ?? 1;
  if (schema.type === "boolean") return true;
  const fits = (text) => (!schema.pattern || new RegExp(schema.pattern).test(text)) && text.length >= (schema.minLength ?? 0);
  return FORMATS[schema.format] ?? TEXTS.find(fits) ?? "a".repeat(schema.minLength ?? 1);
}

// What a sample sends: headers by name, each [what stands before, variable]; path; query; body.
function requestOf(method, path, operation, shared, resolve) {
  const kinds = new Set((operation.security ?? []).flatMap(Object.keys));
  const headers = { ...(CREDENTIALS.find(([kind]) => kinds.has(kind))?.[1] ?? {}) };
  if (kinds.has("agent_token_beside")) headers["X-Service-Agent-Token"] = ["", "token"];
  const parameters = [...(shared ?? []), ...(operation.parameters ?? [])].map(resolve);
  const values = (place) => Object.fromEntries(parameters
    .filter((one) => one.in === place && one.required)
    .map((one) => [one.name, one.name === "agentId" ? "payer-1" : String(sampleOf(one.schema, resolve))]));
  const content = resolve(operation.requestBody)?.content ?? {};
  const [media, body] = Object.entries(content)[0] ?? [];
  const sent = body && ("example" in body ? body.example : sampleOf(body.schema, resolve));
  return { method, path, headers, inPath: values("path"), query: values("query"), media, body: sent };
}

function filled(request) {
  return request.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(request.inPath[name]));
}

function queried(request) {
  const query = new URLSearchParams(request.query).toString();
  return filled(request) + (query && `?${query}`);
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curlOf(request, url) {
  const lines = [`curl -X ${request.method.toUpperCase()} ${quoted(url + queried(request))}`];
  for (const [name, [before, variable]] of Object.entries(request.headers)) lines.push(`-H "${name}: ${before}$${variable}"`);
  if (request.body !== undefined) {
    const form = request.media !== "application/json";
    lines.push(`-H 'Content-Type: ${request.media}'`);
    lines.push(`-d ${quoted(form ? new URLSearchParams(request.body).toString() : JSON.stringify(request.body))}`);
  }
  return lines.join(" \\\n  ");
}

// JSON as Python writes it.
function python(value, indent = "") {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const deeper = `${indent}    `;
  const items = Array.isArray(value)
    ? value.map((item) => python(item, deeper))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${python(item, deeper)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const short = `${open}${items.join(", ")}${close}`;
  return short.length + indent.length < 80 ? short : `${open}\n${items.map((item) => `${deeper}${item},\n`).join("")}${indent}${close}`;
}

function pythonOf(request, url) {
  const headers = Object.entries(request.headers).map(([name, [before, variable]]) => `"${name}": ${before ? `f"${before}{${variable}}"` : variable}`);
  const given = [JSON.stringify(filled(request))];
  if (Object.keys(request.query).length) given.push(`params=${python(request.query)}`);
  if (request.body !== undefined) given.push(`${request.media === "application/json" ? "json" : "data"}=${python(request.body)}`);
  // The short form of a DELETE takes no body.
  const call = request.method === "delete" && request.body !== undefined
    ? `request("DELETE", ${given.join(", ")})`
    : `${request.method}(${given.join(", ")})`;
  return `import httpx\n\napi = httpx.Client(base_url=${JSON.stringify(url)}, headers={${headers.join(", ")}})\nanswer = api.${call}\nprint(answer.status_code, answer.text)`;
}

function typescriptOf(request, url) {
  const headers = Object.entries(request.headers).map(([name, [before, variable]]) => `${/^\w+$/.test(name) ? name : JSON.stringify(name)}: ${before ? `\`${before}\${${variable}}\`` : variable}`);
  const places = { path: request.inPath, query: request.query };
  const params = Object.entries(places).filter(([, values]) => Object.keys(values).length).map(([place, values]) => `${place}: ${JSON.stringify(values)}`);
  const given = [
    params.length ? `  params: { ${params.join(", ")} },\n` : "",
    request.body !== undefined ? `  body: ${JSON.stringify(request.body, null, 2).replaceAll("\n", "\n  ")},\n` : "",
  ].join("");
  return `// npx openapi-typescript ${url}/openapi.json -o contract.d.ts\nimport createClient from "openapi-fetch";\nimport type { paths } from "./contract.js";\n\n`
    + `const api = createClient<paths>({ baseUrl: ${JSON.stringify(url)}, headers: { ${headers.join(", ")} } });\n`
    + `const { data, error, response } = await api.${request.method.toUpperCase()}(${JSON.stringify(request.path)}${given && `, {\n${given}}`});`;
}
