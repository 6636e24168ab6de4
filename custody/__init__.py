"""The domain of Custody, shared by its processes. From story to stone; an area imports only areas on lower lines.

cli           the `custody` command: supervisor, embedded Postgres, migrate, demo
signing       prepare an order from the chain, ask the signer, broadcast what came back
dashboard     one agent at a glance
approvals     the queue of what a person must decide
transactions  what was asked, decided and signed
agents        wallet holders and their balances
tenants       the isolation boundary and its configuration
protocol      what may be said to the signer, and the client that says it
policies      pure rules: may this order be signed?
chains        pure codecs and effects per chain family, and the JSON-RPC clients
audit, idempotency, limits
kit           clock, ids, errors, shapes, refs, callers, logs, database access
"""
