// Asks the authenticator for what the console computed, and hands the answer to the console. Nothing is kept.
const task = JSON.parse(document.body.dataset.task);
const button = document.getElementById("ask");
const said = document.getElementById("said");

const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
const plain = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));
const encoded = (buffer) => plain(buffer).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const named = (ids) => ids.map((id) => ({ type: "public-key", id: bytes(id) }));

async function vote() {
  const made = await navigator.credentials.get({
    publicKey: {
      challenge: bytes(task.challenge),
      rpId: task.rpId,
      allowCredentials: named(task.credentials),
      userVerification: "required",
      timeout: task.milliseconds,
    },
  });
  return {
    credentialId: encoded(made.rawId),
    authenticatorData: encoded(made.response.authenticatorData),
    clientDataJSON: encoded(made.response.clientDataJSON),
    signature: encoded(made.response.signature),
  };
}

async function enrol() {
  const made = await navigator.credentials.create({
    publicKey: {
      challenge: bytes(task.challenge),
      rp: { id: task.rpId, name: "Custody approver" },
      user: { id: bytes(task.user), name: task.name, displayName: task.name },
      pubKeyCredParams: [{ type: "public-key", alg: -7 }],
      excludeCredentials: named(task.credentials),
      authenticatorSelection: { residentKey: "discouraged", userVerification: "required" },
      attestation: "none",
      timeout: task.milliseconds,
    },
  });
  const key = made.response.getPublicKey();
  if (key === null) throw new Error("The browser does not show the public key.");
  return {
    credentialId: encoded(made.rawId),
    clientDataJSON: encoded(made.response.clientDataJSON),
    publicKey: plain(key),
  };
}

async function send(path, body) {
  const taken = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ticket: task.ticket, ...body }),
  });
  if (!taken.ok) throw new Error(await taken.text());
  return taken;
}

function tell(text, kind) {
  said.textContent = text;
  said.className = kind;
}

button.addEventListener("click", async () => {
  button.disabled = true;
  tell("Your authenticator asks you now.", "");
  let answer;
  try {
    answer = await (task.does === "vote" ? vote() : enrol());
  } catch (problem) {
    tell(`Your authenticator gave no answer (${problem.name}). You can try again.`, "undone");
    button.disabled = false;
    return;
  }
  try {
    await send("/answer", answer);
  } catch (problem) {
    tell(`The console did not take the answer: ${problem.message}`, "undone");
    return;
  }
  button.hidden = true;
  tell("The console has your answer, and may ask for a second factor there.", "");
  try {
    const outcome = await (await send("/outcome", {})).json();
    tell(`${outcome.said} You can close this page.`, outcome.done ? "done" : "undone");
  } catch {
    tell("The console has your answer. Read there what became of it, and close this page.", "");
  }
});
