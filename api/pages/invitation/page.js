// The page at which a person accepts an invitation. Its token comes in the fragment, which no server is sent; here it
// is kept in memory, and taken out of the address at once, so that it is not in the browser's history either. While the
// person signs in at an identity provider the tab's own storage holds it.

import {
  at,
  attempt,
  call,
  cameBack,
  here,
  offer,
  on,
  prepare,
  say,
  show,
  signOut,
  whileSignedIn,
} from "../sign-in/sign-in.js";

const TOKEN = /^([A-Za-z0-9_\-.:]{1,64})\/inv_[A-Za-z0-9_-]{20,64}$/;
const OTHER_ADDRESS =
  "This invitation is for another address. Sign in with a code sent to the address that it came to.";
const WORDS = {
  email_mismatch: OTHER_ADDRESS,
  email_unverified: OTHER_ADDRESS,
  invitation_invalid: "There is no such invitation. Open the newest link that you were sent, or ask for another one.",
};
// What no other sign-in changes.
const ENDED = {
  already_member: "You are a member already",
  invitation_accepted: "This invitation was used already",
  invitation_expired: "This invitation has expired",
  invitation_revoked: "This invitation works no more",
  invitation_invalid: "There is no such invitation",
};

const back = cameBack();
const token = back?.kept ?? location.hash.slice(1);
const tenant = TOKEN.exec(token)?.[1] ?? "";
history.replaceState(null, "", location.pathname);

prepare("Sign in to accept an invitation", review, WORDS, () => token);

function end(title, text) {
  at("end-title").textContent = title;
  at("end-text").textContent = text;
  show("end-step");
}

async function review() {
  at("joined-tenant").textContent = tenant;
  at("joined-as").textContent = here.person;
  show("review-step");
}

async function join() {
  const path = `user/me/tenants/${encodeURIComponent(tenant)}/invitations/accept`;
  try {
    const joined = await whileSignedIn(() => call("POST", path, { token }));
    await signOut();
    end("You have joined", `You are a member of ${joined.tenantId} as ${joined.role}. You can close this page.`);
  } catch (problem) {
    if (ENDED[problem.code]) {
      await signOut();
      end(ENDED[problem.code], problem.message);
      return;
    }
    if (problem.code.startsWith("email_")) {
      await signOut();
      await offer();
    }
    throw problem;
  }
}

on("join", "click", join);
on("other-person", "click", async () => {
  await signOut();
  await offer();
});

if (tenant) {
  say(`You are invited to join ${tenant}.`);
  if (back) back.finish();
  else attempt(offer);
} else {
  end("This link is not complete", "Open the whole link from the invitation again, or copy it into the address bar.");
}
