-- Row-level security of every table of a tenant, and what each role may do with which table. docs/database.md shows the
-- same as a page. Who may execute a function stands in the function's own file.
--
-- A tenant's table answers only where custody.tenant is set in the transaction: unset raises, empty matches nothing.

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY[
      'tenant_keys', 'tenant_config', 'idempotency', 'idempotency_counts', 'memberships', 'app_clients', 'app_secrets',
      'signing_keys', 'used_signatures', 'agents', 'wallets', 'deleted_agents', 'policy_heads', 'policy_rules', 'transactions',
      'approvals', 'spend', 'rate', 'nonces', 'audit', 'audit_unsealed', 'audit_leaves', 'audit_nodes',
      'audit_checkpoints', 'audit_spans', 'outbox', 'event_marks', 'events', 'webhook_endpoints', 'deliveries',
      'secrets', 'credential_routes', 'credential_heads', 'sealed', 'identity_sealed'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY own_tenant ON %I TO custody_api, custody_signer, custody_scheduler, custody_proxy
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
    EXECUTE format('CREATE POLICY across ON %I TO custody_definer USING (true)', t);
  END LOOP;
END $$;
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON tenants TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (id = current_setting('custody.tenant'));
CREATE POLICY across ON tenants TO custody_definer USING (true);

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY[
      'tenant_keys', 'tenant_config', 'memberships', 'app_clients', 'app_secrets', 'signing_keys', 'used_signatures',
      'webhook_endpoints', 'deliveries', 'events', 'identity_sealed'] LOOP
    EXECUTE format('CREATE POLICY of_identity ON %I TO custody_identity
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
  END LOOP;
END $$;
CREATE POLICY of_identity ON tenants TO custody_identity USING (id = current_setting('custody.tenant'));
-- Of an agent's request identity can neither give an answer nor take one away, so no order is signed twice by its doing.
CREATE POLICY identity_reads ON idempotency FOR SELECT TO custody_identity
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY identity_adds ON idempotency FOR INSERT TO custody_identity
  WITH CHECK (tenant_id = current_setting('custody.tenant') AND principal NOT LIKE 'agent:%' AND tx_id IS NULL);
CREATE POLICY identity_takes_over ON idempotency FOR UPDATE TO custody_identity
  USING (tenant_id = current_setting('custody.tenant') AND principal NOT LIKE 'agent:%' AND expires_at <= service_now())
  WITH CHECK (tenant_id = current_setting('custody.tenant') AND principal NOT LIKE 'agent:%' AND tx_id IS NULL);

GRANT USAGE ON SCHEMA public TO custody_definer, custody_api, custody_signer, custody_identity, custody_scheduler,
  custody_proxy;

-- ---------------------------------------------------------------- api: reads, and counts idempotency keys

GRANT SELECT ON tenants, tenant_keys, tenant_config, idempotency, agents, wallets, deleted_agents, policy_heads, policy_rules,
  transactions, approvals, spend, audit, audit_unsealed, audit_leaves, audit_nodes, audit_checkpoints, audit_spans,
  events, webhook_endpoints, deliveries, secrets, credential_routes, token_keys, jobs TO custody_api;
GRANT SELECT (tenant_id, user_id, role, created_at) ON memberships TO custody_api;
GRANT SELECT (tenant_id, id, document, enabled, created_at, updated_at) ON app_clients TO custody_api;
GRANT SELECT (tenant_id, id, client_id, prefix, created_at, retires_at, revoked_at) ON app_secrets TO custody_api;
GRANT SELECT (tenant_id, id, prefix, created_at, retires_at, revoked_at) ON signing_keys TO custody_api;
GRANT SELECT, INSERT, UPDATE ON idempotency_counts TO custody_api;

-- ---------------------------------------------------------------- signer: acts on agents; of people it reads

GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency, agents, wallets, deleted_agents, policy_heads, policy_rules, transactions,
  approvals, spend, rate, nonces, event_marks, secrets, credential_routes, credential_heads, key_versions, sealed,
  token_keys TO custody_signer;
GRANT SELECT ON tenants, tenant_keys, tenant_config, users, memberships, sessions, app_clients, app_secrets,
  webhook_endpoints, session_keys, audit, audit_unsealed, audit_leaves, audit_nodes, audit_checkpoints TO custody_signer;
GRANT DELETE ON tenants TO custody_signer;
GRANT UPDATE (frozen_at, frozen_reason) ON tenants TO custody_signer;

-- ---------------------------------------------------------------- identity: people, and what tenants are administered by

GRANT SELECT, INSERT, UPDATE, DELETE ON tenant_keys, tenant_config, platform_keys, users, identities, memberships,
  sessions, sign_in_nonces, sign_in_codes, challenges, attempts, device_codes, factors, enrolments, recovery_codes,
  passkeys, app_clients, app_secrets, signing_keys, used_signatures, webhook_endpoints, deliveries, identity_sealed,
  session_keys TO custody_identity;
GRANT SELECT, INSERT ON tenants, idempotency TO custody_identity;
-- The right to change one column is what a lock on the row takes. Freezing and deleting are the signer's.
GRANT UPDATE (name) ON tenants TO custody_identity;
GRANT UPDATE (fingerprint, answer, tx_id, expires_at) ON idempotency TO custody_identity;
GRANT SELECT ON key_versions, token_keys, events TO custody_identity;
GRANT UPDATE (mac) ON token_keys TO custody_identity;

-- ---------------------------------------------------------------- scheduler: reads; it changes through functions

GRANT SELECT ON transactions, approvals, retention TO custody_scheduler;

-- ---------------------------------------------------------------- proxy: reads columns, and of what is sealed nothing

GRANT SELECT (id, frozen_at) ON tenants TO custody_proxy;
GRANT SELECT (tenant_id, id, incarnation, token_epoch, frozen_at) ON agents TO custody_proxy;
GRANT SELECT (tenant_id, id, name, version, expires_at, deleted_at) ON secrets TO custody_proxy;
GRANT SELECT (tenant_id, id, secret_id, fields, priority, created_at) ON credential_routes TO custody_proxy;
GRANT SELECT (tenant_id, version) ON credential_heads TO custody_proxy;

-- ---------------------------------------------------------------- definer: what its functions need, of every tenant

GRANT SELECT ON tortoise_migrations, applied_sql, tenants, tenant_keys, tenant_config, idempotency,
  platform_keys, users, identities, memberships, sessions, sign_in_nonces, sign_in_codes, challenges, attempts,
  device_codes, factors, enrolments, recovery_codes, passkeys, app_clients, app_secrets, signing_keys,
  used_signatures, agents, wallets, policy_heads, transactions, approvals, spend, rate, nonces, audit, audit_unsealed,
  audit_leaves, audit_checkpoints, outbox, event_marks, events, webhook_endpoints, deliveries, secrets,
  credential_routes, sealed, identity_sealed, token_keys, session_keys, jobs, retention TO custody_definer;
GRANT INSERT ON audit, audit_unsealed, audit_leaves, audit_nodes, audit_checkpoints, audit_spans, outbox, events,
  deliveries, jobs, room_trial TO custody_definer;
GRANT UPDATE ON deliveries, jobs TO custody_definer;
GRANT UPDATE (resend_at, resends, look_at, order_text, data) ON transactions TO custody_definer;
GRANT UPDATE (enabled, disabled_reason) ON webhook_endpoints TO custody_definer;
GRANT DELETE ON idempotency, sessions, sign_in_nonces, sign_in_codes, challenges, attempts, device_codes, enrolments,
  app_secrets, signing_keys, used_signatures, spend, rate, audit_unsealed, audit_checkpoints, outbox, event_marks,
  events, webhook_endpoints, deliveries, secrets, sealed, identity_sealed TO custody_definer;
-- To lock a row before it goes takes the right to change some column of it; no function does.
GRANT UPDATE (created_at) ON deliveries, webhook_endpoints, sessions, signing_keys, app_secrets, secrets TO
  custody_definer;
GRANT UPDATE (published_at) ON events TO custody_definer;
GRANT UPDATE (expires_at) ON idempotency, sign_in_nonces, sign_in_codes, challenges, enrolments, device_codes,
  used_signatures TO custody_definer;
GRANT UPDATE (ends_at) ON attempts TO custody_definer;
GRANT UPDATE (purpose) ON sealed, identity_sealed TO custody_definer;
GRANT UPDATE (name) ON platform_keys TO custody_definer;
GRANT UPDATE (at) ON event_marks TO custody_definer;
GRANT UPDATE (hour) ON spend TO custody_definer;
GRANT UPDATE (bucket) ON rate TO custody_definer;
