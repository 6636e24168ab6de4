// Puts words of the service on the screen, as text whatever they are.

import { at } from "../sign-in/sign-in.js";

// An address breaks after this many characters and nowhere else, so that two of them are compared line by line.
const PIECE = 22;
// What would not be seen as itself: controls, formats and bidirectional marks, fillers, and letters that run from right
// to left, around which a browser moves figures. The service writes them out too, in its words; names come without.
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u034f\u0590-\u08ff\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufb1d-\ufdff\ufe00-\ufe0f\ufe70-\ufeff\uffa0\u{10800}-\u{10fff}\u{1e800}-\u{1efff}\u{e0100}-\u{e01ef}]/gu;
const written = (letter) => `<U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;

export const plain = (text) => String(text ?? "").replace(HIDDEN, written);

export function element(tag, kind, text) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = plain(text);
  return made;
}

export function fill(id, ...children) {
  at(id).replaceChildren(...children);
}

export function address(text) {
  const made = element("span", "address");
  for (let from = 0; from < text.length; from += PIECE) made.append(element("span", "", text.slice(from, from + PIECE)));
  return made;
}

// A long figure breaks between its thousands, never within them.
function figures(text) {
  const parts = text.split(/(?<=[0-9],)(?=[0-9]{3})/);
  return parts.flatMap((part, place) => (place ? [element("wbr"), part] : [part]));
}

export function line(said) {
  const made = element("p", said.tone ?? "");
  if (said.text.startsWith(" ")) made.classList.add("in");
  const text = said.text.trim();
  const from = said.address ? text.lastIndexOf(" ") + 1 : text.length;
  made.append(...figures(plain(text.slice(0, from))));
  if (said.address) made.append(address(text.slice(from)));
  return made;
}

const NAMED = /^(\S+(?: \S+)*) {2,}(\S.*)$/;

// A name with its value below it, for a telephone is narrow; other lines as they are.
function exactly(said) {
  const made = element("p", said.tone ?? "");
  const [, name, value] = NAMED.exec(said.text) ?? [];
  if (!name) made.textContent = plain(said.text);
  else made.append(element("span", "name", name), /^0x[0-9a-fA-F]{40}$/.test(value) ? address(value) : plain(value));
  return made;
}

// A part that can be shut. Exact values keep their blanks.
export function section(title, lines, { open = false, exact = false } = {}) {
  const made = element("details");
  made.open = open;
  const inside = element("div", exact ? "words exact" : "words");
  inside.append(...lines.map(exact ? exactly : line));
  made.append(element("summary", "", title), inside);
  return made;
}

// The gravest thing last in the accessible name would be heard last: it stands right below what it does.
export function row({ what, grave, who }, press) {
  const button = element("button", grave ? "row grave" : "row");
  button.type = "button";
  button.append(element("span", "what", what));
  if (grave) button.append(element("span", "grave", grave));
  button.append(element("span", "who", who));
  button.addEventListener("click", press);
  const made = element("li");
  made.append(button);
  return made;
}

export function until(iso) {
  if (!iso) return "never expires";
  const seconds = Math.floor((Date.parse(iso) - Date.now()) / 1000);
  if (!(seconds > 0)) return "expires now";
  if (seconds < 90) return `expires in ${seconds} s`;
  if (seconds < 5400) return `expires in ${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `expires in ${Math.round(seconds / 3600)} h`;
  return `expires in ${Math.round(seconds / 86400)} days`;
}
