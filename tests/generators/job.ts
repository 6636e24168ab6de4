// What a newcomer writes with openapi-fetch over the generated types; it compiles under `tsc --strict` as it stands.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./contract.js";

type Schemas = components["schemas"];

const [url, key, address] = process.argv.slice(2) as [string, string, string];
const tenant = createClient<paths>({ baseUrl: url, headers: { "X-Service-Key": key } });

function given<T>(answer: { data?: { data: T }; error?: unknown }): T {
  assert.ok(answer.data, JSON.stringify(answer.error));
  return answer.data.data;
}

const path = { agentId: "made:by.client" };
const body: Schemas["NewAgentBody"] = { id: path.agentId, name: "A client's agent" };
const made = given(await tenant.POST("/agents", { body }));
assert.equal(made.frozenAt, null);
assert.deepEqual(given(await tenant.GET("/agents/{agentId}", { params: { path } })), made);

const twice = await tenant.POST("/agents", { body });
assert.equal(twice.error?.data?.code, "agent_taken");

const batch = given(await tenant.POST("/agents/batch", { body: { agents: [{ id: "second", name: "Second" }] } }));
assert.deepEqual(batch.created.map((one) => one.id), ["second"]);

const page = await tenant.GET("/agents", { params: { query: { limit: 1 } } });
assert.equal(given(page).length, 1);
assert.equal(page.response.headers.get("X-Total-Count"), "2");

const rules: Schemas["PolicyRule"][] = [
  { type: "spending-limit", enabled: true, config: { maxPerTransaction: "100" } },
  { type: "auto-approve-threshold", enabled: true, config: { threshold: "10" } },
  { type: "time-window", enabled: true, config: { allowedHours: [{ start: 0, end: 24 }] } },
];
assert.equal(given(await tenant.PUT("/agents/{agentId}/policies", { params: { path }, body: rules })).length, 3);
for (const rule of given(await tenant.GET("/agents/{agentId}/policies", { params: { path } }))) {
  // The tag tells the kinds apart for the compiler too.
  if (rule.type === "spending-limit") assert.equal(rule.config.maxPerTransaction, "100");
}

const { token } = given(await tenant.POST("/agents/{agentId}/token", { params: { path }, body: { expiresIn: "1h" } }));
const agent = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

const sign = (value: string) =>
  agent.POST("/vault/{agentId}/sign", {
    params: { path, header: { "Idempotency-Key": `order-of-${value}` } },
    body: { to: address, value, broadcast: false },
  });

// The outcomes of an order, each with its own fields and none by a cast: as docs/contract.md has it.
async function pay(value: string): Promise<string> {
  const { data, error } = await sign(value);
  if (data) {
    const order = data.data;
    if ("approvalId" in order) return `${order.status}, ${order.approvalId === "" ? "nowhere" : "for a person"}`;
    return `signed ${order.signedTransaction ? "with its bytes" : ""}`;
  }
  if ("results" in error.data) {
    const failed = error.data.results.filter((result) => !result.passed).map((result) => result.type);
    return `${error.data.code}: ${failed.join(", ")}`;
  }
  return `${error.data.code}: ${error.error}`;
}
const outcomes = [await pay("5"), await pay("50"), await pay("500"), await pay("-1")];
assert.deepEqual(outcomes.slice(0, 3), [
  "signed with its bytes",
  "pending_approval, for a person",
  "policy_refused: spending-limit, auto-approve-threshold",
]);
assert.match(outcomes[3] ?? "", /value/);
const again = await sign("5");
assert.equal(again.response.headers.get("Idempotency-Replayed"), "true");
assert.equal((await sign("50")).response.status, 202);

// 502, for want of coins; and 429 of a rule, told from 429 of the general limit.
const limited = { params: { path: { agentId: "second" } } };
const slow: Schemas["PolicyRule"][] = [{ type: "rate-limit", enabled: true, config: { maxTxPerHour: 1 } }];
given(await tenant.PUT("/agents/{agentId}/policies", { ...limited, body: slow }));
const second = given(await tenant.POST("/agents/{agentId}/token", { ...limited, body: {} }));
const other = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${second.token}` } });
const order = (more: Partial<Schemas["EvmOrder"]>) =>
  other.POST("/vault/{agentId}/sign", { ...limited, body: { to: address, value: "1", broadcast: false, ...more } });
const unsent = await order({ broadcast: true, referenceId: "to-be-sent" });
assert.equal(unsent.response.status, 502);
assert.ok(unsent.error && !("results" in unsent.error.data));
assert.equal(unsent.error.data.code, "insufficient_funds");
assert.equal((await order({})).response.status, 200);
const often = await order({});
assert.equal(often.response.status, 429);
assert.ok(often.error && "results" in often.error.data);
assert.equal(often.error.data.code, "policy_rate_limited");

const simulated = given(
  await agent.POST("/vault/{agentId}/simulate", {
    params: { path },
    body: { kind: "evm", request: { to: address, value: "50" } },
  }),
);
assert.equal(simulated.decision, "queue");

const document = await agent.POST("/vault/{agentId}/sign-typed-data", {
  params: { path },
  body: {
    domain: { name: "Notes", version: "1" },
    types: { Note: [{ name: "text", type: "string" }] },
    primaryType: "Note",
    value: { text: "Hello" },
  },
});
assert.ok([200, 202].includes(document.response.status));

const waiting = given(await tenant.GET("/approvals", { params: { query: { status: "pending" } } }));
const item = waiting.find((one) => one.value === "50");
assert.ok(item);
const decision = { params: { path: { id: item.id } }, body: { digest: item.digest } };
const approved = await tenant.POST("/approvals/{id}/approve", decision);
// Under a rule approval-quorum it might be a vote that was taken.
assert.ok(approved.data && !("votes" in approved.data.data));
assert.equal(approved.data.data.status, "approved");
assert.equal((await tenant.POST("/approvals/{id}/deny", decision)).response.status, 409);
assert.ok(given(await tenant.GET("/approvals/stats")).approved >= 1);

const of = { path: { agentId: path.agentId, txId: item.txId } };
assert.equal(given(await tenant.GET("/vault/{agentId}/transactions/{txId}", { params: of })).status, "signed");
const receipt = await tenant.GET("/vault/{agentId}/transactions/{txId}/receipt", { params: of });
assert.ok(given(receipt).signature);
const found = given(
  await tenant.GET("/vault/{agentId}/transactions", { params: { path, query: { status: "signed", limit: 10 } } }),
);
assert.ok(found.transactions.length >= 2);
assert.ok(given(await tenant.GET("/vault/{agentId}/history", { params: { path } })).length >= 3);
given(await tenant.GET("/dashboard/{agentId}", { params: { path } }));
given(await tenant.GET("/agents/{agentId}/account", { params: { path } }));

const secret = given(await tenant.POST("/secrets", { body: { name: "An API", value: "a secret value" } }));
const route = given(
  await tenant.POST("/secrets/routes", {
    body: {
      secretId: secret.id,
      hostPattern: "api.example.com",
      injectAs: "header",
      injectKey: "Authorization",
      injectFormat: "Bearer {value}",
    },
  }),
);
const explained = given(
  await tenant.POST("/secrets/routes/explain", {
    body: { agentId: path.agentId, method: "GET", url: "https://api.example.com/v1" },
  }),
);
assert.equal(explained.matched?.id, route.id);

const frozen = await tenant.POST("/agents/{agentId}/freeze", { params: { path }, body: { reason: "tried" } });
assert.equal(given(frozen).frozen, true);
assert.equal((await sign("6")).response.status, 423);
given(await tenant.DELETE("/agents/{agentId}/tokens", { params: { path } }));
given(await tenant.DELETE("/agents/{agentId}", { params: { path } }));
const absent = await tenant.GET("/agents/{agentId}", { params: { path } });
assert.equal(absent.error?.data?.code, "agent_absent");
console.log("done");
