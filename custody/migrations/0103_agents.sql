-- Agents and their rules.

CREATE TABLE agents (
  tenant_id         text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id                text NOT NULL,
  name              text NOT NULL,
  platform_id       text,
  incarnation       uuid NOT NULL,
  token_epoch       integer NOT NULL DEFAULT 1,
  ledger_version    bigint NOT NULL DEFAULT 1,
  policy_version    bigint NOT NULL DEFAULT 1,
  frozen_at         timestamptz,
  frozen_reason     text,
  created_at        timestamptz NOT NULL DEFAULT service_now(),
  policy_bytes      bigint NOT NULL DEFAULT 0,
  orders            bigint NOT NULL DEFAULT 0,
  day               date NOT NULL DEFAULT '-infinity',
  day_orders        bigint NOT NULL DEFAULT 0,
  day_bytes         bigint NOT NULL DEFAULT 0,
  authority_version bigint NOT NULL DEFAULT 0,
  erc8004_token_id  text CHECK (erc8004_token_id ~ '^[0-9]{1,78}$'),
  display_name      text CHECK (length(display_name) <= 200),
  PRIMARY KEY (tenant_id, id)
) WITH (fillfactor = 50); -- every order updates its agent's row; room on the page keeps that cheap
COMMENT ON TABLE agents IS 'The lock anchor: every act on an agent updates its row first.';
COMMENT ON COLUMN agents.orders IS 'How many orders it has, refused ones too.';
COMMENT ON COLUMN agents.day IS 'Of day_orders and day_bytes: the day of UTC on which something was last written.';
COMMENT ON COLUMN agents.authority_version IS 'Of the sealed set of signers and quorums; 0: there never was one.';
COMMENT ON COLUMN agents.erc8004_token_id IS 'The agent''s ERC-8004 identity token; shown, and judged by nobody.';
COMMENT ON COLUMN agents.display_name IS 'Shown, and judged by nobody.';
-- Without the id: an index that ends in it would look as good as the primary key to a planner without statistics.
CREATE INDEX agents_newest ON agents (tenant_id, created_at DESC);
-- No column that the sign path writes (0101_tenants.sql).
CREATE TRIGGER tell AFTER UPDATE OF token_epoch, frozen_at, incarnation OR DELETE ON agents
  FOR EACH ROW EXECUTE FUNCTION tell_of_part();
CREATE TRIGGER keep_figures AFTER DELETE ON agents FOR EACH ROW EXECUTE FUNCTION keep_figures();

-- What each tenant has and wrote, for the quotas, is counted on rows that the acting transaction holds anyway. Nothing
-- is counted on a row of the tenant, which would make its agents wait for each other (docs/limits.md).
CREATE TABLE deleted_agents (
  tenant_id text PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
  day       date NOT NULL,
  orders    bigint NOT NULL,
  bytes     bigint NOT NULL
);
COMMENT ON TABLE deleted_agents IS
  'What a tenant''s deleted agents wrote on one day: deleting an agent does not make that less.';

CREATE TABLE wallets (
  tenant_id  text NOT NULL,
  agent_id   text NOT NULL,
  family     text NOT NULL,
  scope      text NOT NULL DEFAULT '',
  address    text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT service_now(),
  PRIMARY KEY (tenant_id, agent_id, family, scope),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE wallets IS
  'The addresses of agents. Their keys are in sealed, and an address is compared with its key before it is used.';
COMMENT ON COLUMN wallets.scope IS 'Which of several wallets of a family; empty for the first.';

CREATE TABLE policy_heads (
  tenant_id text NOT NULL,
  agent_id  text NOT NULL,
  version   bigint NOT NULL,
  count     integer NOT NULL,
  mac       bytea NOT NULL,
  PRIMARY KEY (tenant_id, agent_id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);

CREATE TABLE policy_rules (
  tenant_id text NOT NULL,
  agent_id  text NOT NULL,
  position  integer NOT NULL,
  id        text NOT NULL,
  type      text NOT NULL,
  enabled   boolean NOT NULL,
  config    text NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, position),
  UNIQUE (tenant_id, agent_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON COLUMN policy_rules.type IS
  'The type of the rule, and @agent behind it where the agent''s own token set the rule.';
