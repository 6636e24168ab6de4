// Draws /openapi.json and /webhooks.json as one page: a line for each operation, and the rest of it when it is opened.
// Everything is text: nothing of the contract becomes markup or code.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];
// What lies deeper is drawn when it is opened, so that types which contain themselves end.
const OPEN_DEPTH = 3;
// So many operations, found by their names, are opened at once.
const OPEN_FOUND = 4;

let contract;

function made(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Text with `code` in it.
function prose(text) {
  return (text ?? "").split("`").map((part, at) => (at % 2 ? made("code", null, part) : part));
}

function followed(thing) {
  if (!thing?.$ref) return thing;
  return thing.$ref.slice(2).split("/").reduce((at, key) => at[key.replaceAll("~1", "/").replaceAll("~0", "~")], contract);
}

function nameOf(schema) {
  return schema?.$ref?.split("/").at(-1);
}

function alternatives(schema) {
  return schema.oneOf ?? schema.anyOf ?? null;
}

function typeOf(schema) {
  if (!schema) return "nothing";
  if (schema.$ref) return nameOf(schema);
  if ("const" in schema) return JSON.stringify(schema.const);
  const parts = alternatives(schema);
  if (parts) return [...new Set(parts.map(typeOf))].join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  const type = Array.isArray(schema.type) ? schema.type.join(" or ") : schema.type ?? "anything";
  return schema.format ? `${type} (${schema.format})` : type;
}

function bounds(schema) {
  const said = [];
  const say = (text, key) => { if (key in schema) said.push(`${text} ${schema[key]}`); };
  say("at least", "minimum");
  say("at most", "maximum");
  say("more than", "exclusiveMinimum");
  say("shortest", "minLength");
  say("longest", "maxLength");
  say("fewest", "minItems");
  say("most", "maxItems");
  say("pattern", "pattern");
  if (schema.enum) said.push(`one of ${schema.enum.map((value) => JSON.stringify(value)).join(", ")}`);
  if ("default" in schema && schema.default !== null) said.push(`default ${JSON.stringify(schema.default)}`);
  return said.join("; ");
}

// The parts of a schema that have fields of their own.
function inner(schema) {
  if (!schema) return [];
  if (schema.$ref) return inner(followed(schema)).length ? [schema] : [];
  if (schema.properties) return [schema];
  if (schema.type === "array") return inner(schema.items);
  if (typeof schema.additionalProperties === "object") return inner(schema.additionalProperties);
  return (alternatives(schema) ?? []).flatMap(inner);
}

// A second name of a field that says nothing else; it is told beside the first.
function isSecond(schema) {
  return "x-service-same-as" in schema && (schema.description ?? "").startsWith("The same as `");
}

function fields(schema, depth) {
  const whole = followed(schema);
  const list = made("dl");
  for (const part of alternatives(whole) ?? []) list.append(made("dd", null, nested(part, depth)));
  const properties = Object.entries(whole.properties ?? {});
  for (const [name, value] of properties.filter(([, one]) => !isSecond(one))) {
    const must = [...(whole.required ?? []), ...(whole["x-service-needs"] ?? [])].includes(name) ? made("span", { class: "must" }, " required") : null;
    list.append(made("dt", null, made("code", null, name), " ", made("span", { class: "faint" }, typeOf(value)), must));
    const limits = bounds(value);
    const body = made("dd", null, ...prose(value.description));
    const others = properties.filter(([, one]) => isSecond(one) && one["x-service-same-as"] === name).map(([other]) => `\`${other}\``);
    if (others.length) body.append(" ", made("span", { class: "faint" }, ...prose(`Also ${others.join(", ")}.`)));
    if (limits) body.append(" ", made("span", { class: "faint" }, limits));
    for (const part of inner(value)) body.append(nested(part, depth));
    if (body.childNodes.length) list.append(body);
  }
  return list;
}

function nested(schema, depth) {
  const whole = followed(schema);
  if (!whole.properties && !alternatives(whole)) {
    return made("p", null, made("span", { class: "faint" }, [typeOf(schema), bounds(whole)].filter(Boolean).join("; ")), " ", ...prose(whole.description));
  }
  const box = made("details", null, made("summary", null, nameOf(schema) ?? "fields"));
  const draw = () => {
    if (box.childNodes.length > 1) return;
    if (whole.description) box.append(made("p", null, ...prose(whole.description)));
    box.append(fields(whole, depth - 1));
  };
  box.addEventListener("toggle", draw);
  if (depth > 0) {
    box.open = true;
    draw();
  }
  return box;
}

function shown(example) {
  return made("pre", null, typeof example === "string" ? example : JSON.stringify(example, null, 2));
}

function examplesOf(media) {
  const many = Object.values(media.examples ?? {}).map((one) => followed(one).value);
  return "example" in media ? [media.example, ...many] : many;
}

function contentOf(content) {
  return Object.entries(content ?? {}).flatMap(([type, media]) => [
    type === "application/json" ? null : made("p", { class: "faint" }, type),
    media.schema ? nested(media.schema, OPEN_DEPTH) : null,
    ...examplesOf(media).map(shown),
  ]).filter(Boolean);
}

function credentials(operation) {
  const needed = operation.security ?? contract.security ?? [];
  if (!needed.length) return "Needs no credential.";
  const said = [`Takes ${needed.map((one) => Object.keys(one).join(" with ") || "none").join(", or ")}.`];
  if (operation["x-service-roles"]) said.push(`People: ${operation["x-service-roles"].join(", ")}.`);
  if (operation["x-service-mfa"]) said.push(`May need a recent second factor (${operation["x-service-mfa"]}).`);
  if (operation["x-service-scope"]) said.push(`Scope ${operation["x-service-scope"]}.`);
  return said.join(" ");
}

function parametersOf(operation, shared) {
  const parameters = [...(shared ?? []), ...(operation.parameters ?? [])].map(followed);
  if (!parameters.length) return [];
  const list = made("dl");
  for (const one of parameters.filter((parameter) => !isSecond(parameter))) {
    const must = one.required ? made("span", { class: "must" }, " required") : null;
    const schema = one.schema ?? {};
    list.append(made("dt", null, made("code", null, one.name), " ", made("span", { class: "faint" }, `${one.in}, ${typeOf(schema)}`), must));
    list.append(made("dd", null, ...prose(one.description ?? schema.description), " ", made("span", { class: "faint" }, bounds(followed(schema)))));
  }
  return [made("h4", null, "Parameters"), list];
}

function responseOf(status, given) {
  const response = followed(given);
  const box = made("details", null, made("summary", null, made("code", null, status), " ", ...prose(response.description)));
  box.addEventListener("toggle", () => {
    if (box.childNodes.length > 1) return;
    const headers = Object.entries(response.headers ?? {});
    if (headers.length) {
      box.append(made("dl", null, ...headers.flatMap(([name, header]) => [
        made("dt", null, made("code", null, name)), made("dd", null, ...prose(followed(header).description)),
      ])));
    }
    box.append(...contentOf(response.content));
  });
  return box;
}

function samplesOf(method, path, operation, shared) {
  const request = requestOf(method, path, operation, shared, followed);
  const url = contract.servers?.[0]?.url ?? location.origin;
  const written = { curl: curlOf, Python: pythonOf, TypeScript: typescriptOf };
  return made("div", { class: "samples" }, made("h4", null, "Samples"), ...Object.entries(written).map(([name, write]) => {
    const box = made("details", null, made("summary", null, name));
    box.addEventListener("toggle", () => {
      if (box.childNodes.length === 1) box.append(shown(write(request, url)));
    });
    return box;
  }));
}

// An operation's line, and below it what is drawn the first time that it is opened.
function article({ id, method, path, operation, shared }) {
  const box = made("details", null, made("summary", null,
    made("h3", null, made("span", { class: "method" }, method.toUpperCase()), made("span", { class: "path" }, path)),
    made("p", null, ...prose(operation.summary))));
  box.addEventListener("toggle", () => {
    if (box.open && box.childNodes.length === 1) box.append(...insides(method, path, operation, shared));
  });
  return made("article", { id }, box);
}

function insides(method, path, operation, shared) {
  const body = followed(operation.requestBody);
  return [
    operation.description && operation.description !== operation.summary ? made("p", null, ...prose(operation.description)) : null,
    made("p", { class: "faint" }, `${operation.operationId ?? ""} · ${credentials(operation)}`),
    ...parametersOf(operation, shared),
    ...(body ? [made("h4", null, "Body"), ...contentOf(body.content)] : []),
    method === "event" ? null : samplesOf(method, path, operation, shared),
    made("h4", null, "Answers"),
    ...Object.entries(operation.responses ?? {}).map(([status, response]) => responseOf(status, response)),
  ].filter(Boolean);
}

function operations() {
  const found = [];
  for (const [path, item] of Object.entries(contract.paths)) {
    for (const method of METHODS.filter((name) => item[name])) {
      const operation = item[method];
      found.push({ id: operation.operationId ?? `${method}${path}`, method, path, operation, shared: item.parameters, group: operation.tags?.[0] ?? "Other" });
    }
  }
  for (const [name, item] of Object.entries(contract.webhooks ?? {})) {
    found.push({ id: `event-${name}`, method: "event", path: name, operation: item.post, shared: [], group: "Webhooks: what we send" });
  }
  return found;
}

// The parts of Markdown that the contract's texts have: headings, tables, lists, fenced code and paragraphs.
function blockOf(text) {
  const lines = text.split("\n");
  if (/^#+ /.test(text)) return [made("h2", null, lines[0].replace(/^#+ /, "")), ...(lines.length > 1 ? [blockOf(lines.slice(1).join("\n"))].flat() : [])];
  if (text.startsWith("```")) return [shown(lines.slice(1).filter((line) => !line.startsWith("```")).join("\n"))];
  if (lines.every((line) => line.startsWith("|"))) {
    const cells = lines.filter((line) => !/^[|:\- ]+$/.test(line)).map((line) => line.slice(1, -1).split("|").map((cell) => cell.trim()));
    const rows = cells.map((row, at) => made("tr", null, ...row.map((cell) => made(at ? "td" : "th", null, ...prose(cell)))));
    return [made("table", null, made("tbody", null, ...rows))];
  }
  if (lines.every((line) => /^(- |  )/.test(line))) {
    return [made("ul", null, ...text.slice(2).split(/\n- /).map((item) => made("li", null, ...prose(item))))];
  }
  return [made("p", null, ...prose(lines.join(" ")))];
}

function introduction() {
  const blocks = (contract.info.description ?? "").trim().split(/\n\n+/);
  return made("section", { id: "introduction" }, ...blocks.flatMap(blockOf));
}

function drawn() {
  document.getElementById("version").textContent = contract.info.version;
  const contents = document.getElementById("contents");
  const pages = document.getElementById("pages");
  const groups = Map.groupBy(operations(), (one) => one.group);
  pages.replaceChildren(introduction());
  const known = [];
  for (const [group, members] of groups) {
    const about = contract.tags?.find((tag) => tag.name === group)?.description;
    const section = made("section", null, made("h2", null, group), about ? made("p", null, ...prose(about)) : null);
    const links = made("ul");
    const heading = made("h2", null, group);
    for (const one of members) {
      const page = article(one);
      const link = made("li", null, made("a", { href: `#${one.id}`, title: one.operation.summary ?? "" }, made("span", { class: "method" }, one.method.toUpperCase()), one.path));
      section.append(page);
      links.append(link);
      const name = `${one.method} ${one.path} ${one.id}`.toLowerCase();
      known.push({ page, link, section, heading, name, operation: one.operation });
    }
    contents.append(heading, links);
    pages.append(section);
  }
  return known;
}

function filtered(known, wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const seen = new Set();
  const named = [];
  for (const one of known) {
    one.text ??= `${one.name} ${JSON.stringify(one.operation)}`.toLowerCase();
    const fits = words.every((word) => one.text.includes(word));
    one.page.hidden = one.link.hidden = !fits;
    if (fits) seen.add(one.section).add(one.heading);
    if (words.length && words.every((word) => one.name.includes(word))) named.push(one.page);
  }
  for (const one of known) {
    one.section.hidden = !seen.has(one.section);
    one.heading.hidden = !seen.has(one.heading);
  }
  document.getElementById("introduction").hidden = words.length > 0;
  document.getElementById("found").textContent = words.length ? `${known.filter((one) => !one.page.hidden).length} found` : "";
  if (named.length <= OPEN_FOUND) named.forEach(opened);
}

function opened(page) {
  page.querySelector("details").open = true;
}

// Opens and shows what the address names, also where a search had hidden it.
function followedLink(find) {
  const page = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!page) return;
  if (page.closest("[hidden]")) {
    find.value = "";
    find.dispatchEvent(new Event("input"));
  }
  if (page.matches("article")) opened(page);
  page.scrollIntoView();
}

async function loaded(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  return answer.json();
}

async function begin() {
  const pages = document.getElementById("pages");
  pages.replaceChildren(made("p", null, "The contract is loading."));
  try {
    const [whole, events] = await Promise.all(["/openapi.json", "/webhooks.json"].map(loaded));
    const schemas = { ...events.components.schemas, ...whole.components.schemas };
    contract = { ...whole, webhooks: events.webhooks, components: { ...whole.components, schemas } };
  } catch (problem) {
    pages.replaceChildren(made("p", { role: "alert" }, `The contract did not load (${problem.message}). Reload the page, or read /openapi.json.`));
    return;
  } finally {
    pages.removeAttribute("aria-busy");
  }
  const known = drawn();
  const find = document.getElementById("find");
  find.closest("label").hidden = false;
  find.addEventListener("input", () => filtered(known, find.value));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== find) {
      event.preventDefault();
      find.focus();
    }
  });
  // The address of what a reader opens can be copied.
  pages.addEventListener("click", (event) => {
    const line = event.target.closest("article > details > summary");
    if (line && !line.parentElement.open) history.replaceState(null, "", `#${line.closest("article").id}`);
  });
  document.getElementById("contents").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (link?.hash === location.hash) followedLink(find);
  });
  window.addEventListener("hashchange", () => followedLink(find));
  followedLink(find);
}

begin();
