// The page where a person lets a device in.

import {
  Problem,
  at,
  call,
  cameBack,
  here,
  named,
  offer,
  on,
  prepare,
  show,
  signOut,
  time,
  whileSignedIn,
} from "../sign-in/sign-in.js";

const CODE = /^[0-9A-Z]{8}$/;
const WORDS = {
  device_code_absent:
    "No device that waits for you shows this code. It may be mistyped, older than ten minutes, or meant for an " +
    "organisation that you do not belong to.",
  device_decided: "This code was used already. Start again on the device.",
};

const back = cameBack();
let userCode = back?.kept ?? "";

prepare("Sign in to decide about a device", review, WORDS, () => userCode);

// ---- step 1: the code

on("code-form", "submit", async () => {
  const letters = at("user-code").value.replace(/[\s\-\u2010-\u2015]+/g, "").toUpperCase();
  if (!CODE.test(letters)) {
    at("user-code").focus();
    throw new Problem("A code has eight letters and digits, such as BCDF-GH34.");
  }
  userCode = `${letters.slice(0, 4)}-${letters.slice(4)}`;
  await (here.token ? review() : offer());
});

// ---- step 3: look, and decide

async function review() {
  const asked = await orBack(() => call("GET", `auth/device/request?user_code=${encodeURIComponent(userCode)}`));
  const native = asked.nativeBundleId ?? asked.nativePackageName;
  const client = asked.client ? named(asked.client) : "None named";
  at("asked-code").textContent = asked.userCode;
  at("asked-tenant").textContent = named(asked.tenant);
  at("asked-client").textContent = native ? `${client}, ${native}` : client;
  at("asked-name").textContent = asked.userAgent ?? "Nothing";
  at("asked-from").textContent = asked.ipAddress ?? "An unknown address";
  at("asked-at").textContent = time(asked.createdAt);
  at("asked-as").textContent = here.person;
  show("review-step");
}

async function decide(action, title, text) {
  await orBack(() => call("POST", "auth/device/verify", { user_code: userCode, action }));
  await signOut();
  at("end-title").textContent = title;
  at("end-text").textContent = text;
  show("end-step");
}

// A code that is no good is asked for again.
async function orBack(act) {
  try {
    return await whileSignedIn(act);
  } catch (problem) {
    if (problem.code.startsWith("device_")) show("code-step");
    throw problem;
  }
}

on("approve", "click", () =>
  decide("approve", "The device is signed in", "You can close this page and go on at the device."));
on("deny", "click", () => decide("deny", "The device was turned away", "It gets no access. You can close this page."));

if (back) back.finish();
else show("code-step");
