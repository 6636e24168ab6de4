-- Row-level security of every table of a tenant, and what each role may do with which table. docs/database.md shows the
-- same as a page. Who may execute a function stands in the function's own file.
--
-- A tenant's table answers only where custody.tenant is set in the transaction: unset raises, empty matches nothing.

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY[
      'tenant_keys', 'tenant_config', 'idempotency', 'idempotency_counts', 'memberships', 'invitations',
      'wallet_external_ids', 'app_clients', 'app_secrets', 'signing_keys', 'used_signatures', 'agents', 'wallets',
      'deleted_agents', 'policy_heads', 'policy_rules', 'transactions', 'approvals', 'spend', 'rate', 'nonces',
      'bitcoin_accounts', 'psbt_spends', 'outpoints', 'audit', 'audit_unsealed', 'audit_leaves', 'audit_nodes',
      'audit_checkpoints', 'audit_spans', 'outbox', 'event_marks', 'events', 'webhook_endpoints', 'deliveries',
      'secrets', 'credential_routes', 'credential_heads', 'signers', 'key_quorums', 'authority_heads',
      'approver_keys', 'approval_votes', 'quorum_breaks', 'import_sessions', 'sealed', 'identity_sealed', 'intents',
      'accounts', 'account_wallets', 'account_aggregations', 'sso_memberships', 'saml_assertions_seen',
      'oidc_providers', 'saml_configs', 'sso_domains', 'sign_on_tests'] LOOP
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
      'tenant_keys', 'tenant_config', 'memberships', 'invitations', 'wallet_external_ids', 'app_clients',
      'app_secrets', 'signing_keys', 'used_signatures', 'webhook_endpoints', 'deliveries', 'events',
      'identity_sealed', 'sso_memberships', 'saml_assertions_seen', 'oidc_providers', 'saml_configs', 'sso_domains',
      'sign_on_tests'] LOOP
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

-- ---------------------------------------------------------------- api: reads; counts idempotency keys, writes accounts

GRANT SELECT ON tenants, tenant_keys, tenant_config, idempotency, agents, wallets, deleted_agents, policy_heads,
  policy_rules, transactions, approvals, spend, audit, audit_unsealed, audit_leaves, audit_nodes, audit_checkpoints,
  audit_spans, events, webhook_endpoints, deliveries, secrets, credential_routes, signers, key_quorums, approver_keys,
  approval_votes, intents, sign_on_tests, token_keys, jobs TO custody_api;
GRANT SELECT (tenant_id, user_id, role, created_at) ON memberships TO custody_api;
GRANT SELECT (tenant_id, id, email, role, status, accepted_by, ended_at, created_at, expires_at)
  ON invitations TO custody_api;
GRANT SELECT (tenant_id, external_id, user_id, created_at) ON wallet_external_ids TO custody_api;
GRANT SELECT (tenant_id, id, document, enabled, created_at, updated_at) ON app_clients TO custody_api;
GRANT SELECT (tenant_id, id, client_id, prefix, created_at, retires_at, revoked_at) ON app_secrets TO custody_api;
GRANT SELECT (tenant_id, id, prefix, created_at, retires_at, revoked_at) ON signing_keys TO custody_api;
GRANT SELECT (tenant_id, id, document, place, created_at, updated_at) ON oidc_providers TO custody_api;
GRANT SELECT (tenant_id, document, updated_at) ON saml_configs TO custody_api;
GRANT SELECT (tenant_id, domain, sso_required, token, verified_at, checked_at, missing_since, created_at)
  ON sso_domains TO custody_api;
GRANT SELECT, INSERT, UPDATE ON idempotency_counts TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON accounts, account_wallets, account_aggregations TO custody_api;

-- ---------------------------------------------------------------- signer: acts on agents; of people it reads

GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency, agents, wallets, deleted_agents, policy_heads, policy_rules,
  transactions, approvals, spend, rate, nonces, bitcoin_accounts, psbt_spends, event_marks, secrets,
  credential_routes, credential_heads, signers, key_quorums, authority_heads, approver_keys, approval_votes,
  quorum_breaks, import_sessions, key_versions, sealed, token_keys TO custody_signer;
GRANT SELECT, INSERT, UPDATE ON intents TO custody_signer;
GRANT SELECT, INSERT ON outpoints TO custody_signer;
GRANT SELECT ON tenants, tenant_keys, tenant_config, users, memberships, sessions, app_clients, app_secrets,
  webhook_endpoints, session_keys, audit, audit_unsealed, audit_leaves, audit_nodes, audit_checkpoints TO
  custody_signer;
GRANT DELETE ON tenants TO custody_signer;
GRANT UPDATE (frozen_at, frozen_reason, tenant_frozen_at, tenant_frozen_reason, operator_frozen_at,
  operator_frozen_reason) ON tenants TO custody_signer;

-- ---------------------------------------------------------------- identity: people, and what tenants are administered by

GRANT SELECT, INSERT, UPDATE, DELETE ON tenant_keys, tenant_config, platform_keys, users, identities, memberships,
  invitations, wallet_external_ids, sessions, sign_in_nonces, sign_in_codes, challenges, attempts, device_codes,
  factors, enrolments, recovery_codes, passkeys, app_clients, app_secrets, signing_keys, used_signatures,
  webhook_endpoints, deliveries, identity_sealed, session_keys, sso_memberships, sign_in_requests, exchange_codes,
  saml_assertions_seen, oidc_providers, saml_configs, sso_domains, sign_on_tests, provider_keys TO custody_identity;
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

GRANT SELECT ON tortoise_migrations, applied_sql, tenants, tenant_keys, tenant_config, idempotency, platform_keys,
  users, identities, memberships, invitations, wallet_external_ids, sessions, sign_in_nonces, sign_in_codes,
  challenges, attempts, device_codes, factors, enrolments, recovery_codes, passkeys, app_clients, app_secrets,
  signing_keys, used_signatures, sso_memberships, sign_in_requests, exchange_codes, saml_assertions_seen,
  oidc_providers, saml_configs, sso_domains, sign_on_tests, provider_keys, agents, wallets, policy_heads, signers,
  key_quorums, authority_heads, approver_keys, approval_votes, quorum_breaks, transactions, approvals, spend, rate,
  nonces, bitcoin_accounts, psbt_spends, outpoints, intents, audit, audit_unsealed, audit_leaves, audit_checkpoints,
  outbox, event_marks, events, webhook_endpoints, deliveries, secrets, credential_routes, import_sessions, sealed,
  identity_sealed, token_keys, session_keys, jobs, retention TO custody_definer;
GRANT INSERT ON idempotency, audit, audit_unsealed, audit_leaves, audit_nodes, audit_checkpoints, audit_spans, outbox,
  events, deliveries, jobs, room_trial TO custody_definer;
GRANT UPDATE ON deliveries, jobs TO custody_definer;
-- Answers of acts on accounts are kept by a function that the api calls (finish_account_act), with the definer's rights.
GRANT UPDATE (fingerprint, answer, tx_id, expires_at) ON idempotency TO custody_definer;
GRANT UPDATE (resend_at, resends, look_at, order_text, data) ON transactions TO custody_definer;
GRANT UPDATE (enabled, disabled_reason) ON webhook_endpoints TO custody_definer;
-- What the claims of the scheduler change: when something was last looked at.
GRANT UPDATE (asked_at, due_at) ON provider_keys TO custody_definer;
GRANT UPDATE (look_at) ON sso_domains TO custody_definer;
GRANT DELETE ON tenant_keys, idempotency, invitations, sessions, sign_in_nonces, sign_in_codes, challenges, attempts,
  device_codes, enrolments, app_secrets, signing_keys, used_signatures, sign_in_requests, exchange_codes,
  saml_assertions_seen, spend, rate, intents, audit_unsealed, audit_checkpoints, outbox, event_marks, events,
  webhook_endpoints, deliveries, secrets, import_sessions, sealed, identity_sealed TO custody_definer;
-- To lock a row before it goes takes the right to change some column of it; no function does.
GRANT UPDATE (created_at) ON tenant_keys, deliveries, webhook_endpoints, sessions, signing_keys, app_secrets, secrets
  TO custody_definer;
GRANT UPDATE (published_at) ON events TO custody_definer;
GRANT UPDATE (expires_at) ON sign_in_nonces, sign_in_codes, challenges, enrolments, device_codes, used_signatures,
  invitations, sign_in_requests, exchange_codes, saml_assertions_seen, import_sessions TO custody_definer;
GRANT UPDATE (ends_at) ON attempts TO custody_definer;
GRANT UPDATE (purpose) ON sealed, identity_sealed TO custody_definer;
GRANT UPDATE (name) ON platform_keys TO custody_definer;
GRANT UPDATE (at) ON event_marks TO custody_definer;
GRANT UPDATE (hour) ON spend TO custody_definer;
GRANT UPDATE (bucket) ON rate TO custody_definer;
GRANT UPDATE (reason) ON intents TO custody_definer;

-- ---------------------------------------------------------------- signer: uses up signatures of people and programs

-- A signature that authorised an order is used up with it. Here, not above: a dump tells grants in their order, and that
-- of a database from before 1.0 has this one last.
CREATE POLICY of_signer ON used_signatures TO custody_signer USING (tenant_id = current_setting('custody.tenant'));
GRANT SELECT, INSERT ON used_signatures TO custody_signer;
