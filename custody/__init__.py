"""The domain of Custody, shared by its processes. From story to stone; an area imports only areas on lower lines.

cli           the `custody` command: supervisor, embedded Postgres, migrate, demo
signing       prepare an order from the chain, ask the signer, broadcast what came back
dashboard     one agent at a glance
checklist     what of a tenant is open or weak
health        readiness
approvals     the queue of what a person must decide
transactions  what was asked, decided and signed
secrets       tenants' secrets and credential routes
agents        wallet holders and their balances
tenants       the isolation boundary and its configuration
people        sign-in, sessions and second factors, as the api asks the signer for them and shows them
senders       mail and text messages
idempotency   figures of idempotency keys
protocol      what may be said to the signer, and the client that says it
policies      pure rules: may this order be signed?
credentials   pure rules: may this request have this secret?
identity      pure rules: who may do what, when a second factor is recent, what a signed request is
chains        pure codecs and effects per chain family, and the JSON-RPC clients
migrations    tables, functions and grants, in SQL
kit           clock, ids, errors, shapes, refs, callers, logs, database access
"""
