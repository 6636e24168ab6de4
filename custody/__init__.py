"""The domain of Custody, shared by its processes. An area imports only areas on lower lines.

tx_tracking   track what was sent until its state is final
simulation     simulate an order; back-test other rules on past ones
signing       prepare an order from the chain, ask the signer, broadcast the result, send it again, replace it
dashboard     one agent at a glance
health        readiness
checklist     what of a tenant is open or weak
expiry        approvals that end by themselves, rows that nobody needs any more
funds         what a wallet holds: coins, tokens, and their worth
webhooks      endpoints, deliveries, and the stream of events
audit         the audit trail: search, export, the sealed log and its offline check
receipts      signed statements about what was signed, and their offline check
approvals     the queue of what a person must decide
transactions  what was asked, decided and signed
secrets       tenants' secrets and credential routes
agents        wallet holders and their balances
tenants       the isolation boundary and its configuration
sign_on       people who are proven by identity providers, as the api asks those
people        sign-in, sessions and second factors, as the api requests them from the signer and shows them
notifications  mail and text messages
idempotency   figures of idempotency keys
protocol      every message to the signer, and the client that sends them
policies      pure rules: may this order be signed?
credentials   pure rules: may this request have this secret?
identity      pure rules: who may do what, when a second factor is recent, what a signed request is
chains        pure codecs and effects per chain family, and the JSON-RPC clients
migrations    tables and their grants, in SQL
database      functions of the database, in SQL
kit           clock, ids, errors, shapes, refs, callers, logs, database access
"""
