// Tells this device of what waits: the browser subscribes at its own push service, with a key that is made here for this
// one subscription and given to the service, which seals it. Nothing is stored on the page.

import { Problem, at, on, say } from "../sign-in/sign-in.js";

const PATH = "user/me/push-subscriptions";

const written = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

let registration = null;

const own = async () => (registration ? registration.pushManager.getSubscription() : null);

// The buttons say what this browser does by now; where it has no pushes there is none.
export async function drawTelling(mayDecide) {
  const able = mayDecide && Boolean(registration?.pushManager) && "Notification" in window;
  const told = able && Boolean(await own());
  at("tell").hidden = !able || told;
  at("untell").hidden = !told;
}

// `ask` sends what is asked, after a second factor where one is needed, and then does what it is given.
export function offerTelling(made, ask) {
  registration = made ?? null;
  on("tell", "click", async () => {
    // Asked here alone, by the press: a page that asks by itself is refused for good.
    if ((await Notification.requestPermission()) !== "granted") {
      throw new Problem("Your browser does not show messages of this page. Allow them in its settings.");
    }
    await ask("POST", PATH, await subscribe(), () => done("This device is told of what waits."), drop);
  });
  on("untell", "click", () =>
    ask("GET", PATH, undefined, async (all) => {
      const mine = await find(all);
      // It ends here first: what the service would still send leads nowhere then.
      await drop();
      const ended = () => done("This device is told nothing more.");
      return mine ? ask("DELETE", `${PATH}/${mine.id}`, undefined, ended) : ended();
    }),
  );
}

async function find(all) {
  const { host, pathname, search } = new URL((await own()).endpoint);
  const end = `${pathname}${search}`.slice(-4);
  return all.find((one) => one.host === host && one.lastFour === end);
}

async function done(text) {
  await drawTelling(true);
  say(text);
}

async function drop() {
  await (await own())?.unsubscribe();
}

async function subscribe() {
  await drop();
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const applicationServerKey = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
  const { d } = await crypto.subtle.exportKey("jwk", pair.privateKey);
  const made = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey }).catch(() => {
    throw new Problem("The push service of your browser did not answer. Try again later.");
  });
  const keys = { p256dh: written(made.getKey("p256dh")), auth: written(made.getKey("auth")), senderKey: d };
  return { endpoint: made.endpoint, ...keys };
}
