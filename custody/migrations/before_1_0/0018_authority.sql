-- Signers and key quorums of agents, sealed as one set an agent, and by which of them an order was authorised.

CREATE TABLE signers (
  tenant_id      text NOT NULL,
  id             uuid NOT NULL,
  agent_id       text NOT NULL,
  signer_type    text NOT NULL,
  subject_type   text NOT NULL,
  subject_id     text NOT NULL,
  key_type       text NOT NULL CHECK (key_type IN ('hmac', 'p256')),
  public_key     bytea,
  address        text,
  chain_family   text,
  label          text,
  permissions    text NOT NULL,
  policy_ids     text NOT NULL,
  metadata       text NOT NULL DEFAULT '{}',
  has_credential boolean NOT NULL,
  status         text NOT NULL CHECK (status IN ('active', 'paused', 'revoked')),
  created_at     timestamptz NOT NULL DEFAULT service_now(),
  updated_at     timestamptz NOT NULL DEFAULT service_now(),
  revoked_at     timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE signers IS
  'Who else may authorise orders of an agent. Those that are not revoked are in the set that its authority head seals.';
COMMENT ON COLUMN signers.public_key IS 'P-256: the canonical SPKI, 91 bytes, so that one key has one spelling.';
COMMENT ON COLUMN signers.permissions IS 'JSON array of words, sorted.';
COMMENT ON COLUMN signers.policy_ids IS 'JSON array of rule ids, as given.';
CREATE INDEX signers_of_agent ON signers (tenant_id, agent_id, created_at DESC);

CREATE TABLE key_quorums (
  tenant_id   text NOT NULL,
  id          uuid NOT NULL,
  agent_id    text NOT NULL,
  name        text NOT NULL,
  threshold   integer NOT NULL,
  members     text NOT NULL,
  children    text NOT NULL,
  permissions text NOT NULL,
  metadata    text NOT NULL DEFAULT '{}',
  status      text NOT NULL CHECK (status IN ('active', 'paused', 'revoked')),
  created_at  timestamptz NOT NULL DEFAULT service_now(),
  updated_at  timestamptz NOT NULL DEFAULT service_now(),
  revoked_at  timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE key_quorums IS 'How many of which signers must agree; in the same sealed set.';
COMMENT ON COLUMN key_quorums.members IS 'JSON array of signer ids, as given.';
COMMENT ON COLUMN key_quorums.children IS 'JSON array of ids of member quorums, as given.';
CREATE INDEX key_quorums_of_agent ON key_quorums (tenant_id, agent_id, created_at DESC);

CREATE TABLE authority_heads (
  tenant_id text NOT NULL,
  agent_id  text NOT NULL,
  version   bigint NOT NULL,
  count     integer NOT NULL,
  mac       bytea NOT NULL,
  PRIMARY KEY (tenant_id, agent_id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE authority_heads IS 'Seals all living signers and quorums of an agent, under the agent''s authority_version.';

ALTER TABLE agents ADD COLUMN authority_version bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN agents.authority_version IS 'Of the sealed set of signers and quorums; 0: there never was one.';

ALTER TABLE transactions ADD COLUMN authorization_text text;
COMMENT ON COLUMN transactions.authorization_text IS
  'JSON {quorum, signers, policyIds}: by whom the order was authorised; under the MAC of its approval or its receipt.';
ALTER TABLE transactions ADD COLUMN wallet_action text;
COMMENT ON COLUMN transactions.wallet_action IS
  'JSON {type, token, recipient, amount, throttled}: the wallet action that the order is, and whether a rate limit '
  'refused it, which leaves its reference free; null for orders of the other routes.';
CREATE UNIQUE INDEX transactions_action_reference
  ON transactions (tenant_id, agent_id, (wallet_action::json->>'type'), reference_id)
  WHERE wallet_action IS NOT NULL AND reference_id IS NOT NULL AND (wallet_action::json->>'throttled') IS NULL;

ALTER TABLE sealed DROP CONSTRAINT sealed_owner_kind_check;
ALTER TABLE sealed ADD CONSTRAINT sealed_owner_kind_check
  CHECK (owner_kind IN ('agent', 'token_key', 'secret', 'signer'));
ALTER TABLE sealed ADD COLUMN signer_id uuid
  GENERATED ALWAYS AS (CASE WHEN owner_kind = 'signer' THEN owner::uuid END) STORED;
ALTER TABLE sealed ADD FOREIGN KEY (tenant_id, signer_id) REFERENCES signers ON DELETE CASCADE;
CREATE INDEX sealed_of_signer ON sealed (tenant_id, signer_id) WHERE signer_id IS NOT NULL;

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['signers', 'key_quorums', 'authority_heads'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY own_tenant ON %I TO custody_api, custody_signer, custody_scheduler, custody_proxy
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
    EXECUTE format('CREATE POLICY across ON %I TO custody_definer USING (true)', t);
  END LOOP;
END $$;
GRANT SELECT ON signers, key_quorums TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON signers, key_quorums, authority_heads TO custody_signer;
GRANT SELECT ON signers, key_quorums, authority_heads TO custody_definer;
-- A signature that authorised an order is used up with it.
CREATE POLICY of_signer ON used_signatures TO custody_signer USING (tenant_id = current_setting('custody.tenant'));
GRANT SELECT, INSERT ON used_signatures TO custody_signer;
