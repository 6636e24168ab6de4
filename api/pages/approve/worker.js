// Shows a push, and opens the page when it is pressed. It has no credential, keeps nothing and fetches nothing: a push
// informs, and what is decided is decided on the page, after signing in. What a push says is shown as text; where it is
// no JSON, or names no approval, a fixed title is shown and the plain page opened.

const TITLE = "Custody: something waits for you";
const TENANT = /^[A-Za-z0-9_\-.:]{1,64}$/;
const APPROVAL = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const LONGEST = 1800;

function read(data) {
  try {
    const said = data.json();
    return said && typeof said === "object" ? said : {};
  } catch {
    return {};
  }
}

const text = (value, otherwise) => (typeof value === "string" && value ? value.slice(0, LONGEST) : otherwise);

addEventListener("push", (event) => {
  const said = event.data ? read(event.data) : {};
  const named = TENANT.test(said.tenant) && APPROVAL.test(said.approval);
  const place = named ? `${said.tenant}/${said.approval}` : "";
  // One push for one approval: a later one, such as that another person decided, takes its place.
  const shown = { body: text(said.text, ""), tag: named ? said.approval : "custody", data: place, icon: "icon-192.png" };
  event.waitUntil(registration.showNotification(named ? text(said.title, TITLE) : TITLE, shown));
});

addEventListener("notificationclick", (event) => {
  event.notification.close();
  const address = new URL("../approve", location.href);
  address.hash = event.notification.data;
  event.waitUntil(clients.openWindow(address.href));
});
