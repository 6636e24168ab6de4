-- Accounts: wallets of agents under one name. Only the api writes them, and nothing is judged by them.

CREATE TABLE accounts (
  tenant_id             text NOT NULL,
  id                    text NOT NULL CHECK (id ~ '^[A-Za-z0-9_\-.:]{1,64}$'),
  display_name          text CHECK (length(display_name) <= 200),
  metadata              json NOT NULL CHECK (json_typeof(metadata) = 'object' AND octet_length(metadata::text) <= 16384),
  owner_user_ids        json NOT NULL CHECK (octet_length(owner_user_ids::text) <= 8192),
  additional_signer_ids json NOT NULL CHECK (octet_length(additional_signer_ids::text) <= 8192),
  signer_policy_ids     json NOT NULL CHECK (octet_length(signer_policy_ids::text) <= 8192),
  created_at            timestamptz NOT NULL CHECK (created_at BETWEEN '2020-01-01' AND '2200-01-01'),
  updated_at            timestamptz NOT NULL CHECK (updated_at BETWEEN '2020-01-01' AND '2200-01-01'),
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE
);
COMMENT ON TABLE accounts IS 'Wallets of agents under one name; who is assigned to one is told, and granted nothing.';
CREATE INDEX accounts_newest ON accounts (tenant_id, created_at DESC, id);

CREATE TABLE account_wallets (
  tenant_id   text NOT NULL,
  id          uuid NOT NULL,
  account_id  text NOT NULL,
  place       smallint NOT NULL CHECK (place BETWEEN 0 AND 4),
  agent_id    text NOT NULL CHECK (length(agent_id) <= 128),
  incarnation uuid NOT NULL,
  family      text CHECK (family IN ('evm', 'solana')),
  name        text CHECK (length(name) <= 200),
  created_at  timestamptz NOT NULL CHECK (created_at BETWEEN '2020-01-01' AND '2200-01-01'),
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, account_id, place),
  FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE
);
COMMENT ON TABLE account_wallets IS
  'Agents whose wallets belong to an account; one that is deleted stays listed, without an address.';
COMMENT ON COLUMN account_wallets.incarnation IS 'The agent that was meant: one made later under its id is another.';
COMMENT ON COLUMN account_wallets.family IS 'The only family that belongs to the account; null for all of them.';

CREATE TABLE account_aggregations (
  tenant_id      text NOT NULL,
  id             text NOT NULL CHECK (id ~ '^[A-Za-z0-9_\-.:]{1,64}$'),
  account_id     text NOT NULL,
  display_name   text CHECK (length(display_name) <= 200),
  metadata       json NOT NULL CHECK (json_typeof(metadata) = 'object' AND octet_length(metadata::text) <= 16384),
  wallet_ids     json NOT NULL CHECK (octet_length(wallet_ids::text) <= 1024),
  chain_families json NOT NULL CHECK (octet_length(chain_families::text) <= 64),
  created_at     timestamptz NOT NULL CHECK (created_at BETWEEN '2020-01-01' AND '2200-01-01'),
  updated_at     timestamptz NOT NULL CHECK (updated_at BETWEEN '2020-01-01' AND '2200-01-01'),
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE
);
COMMENT ON TABLE account_aggregations IS 'Which wallets and chain families an account had when somebody looked.';
CREATE INDEX account_aggregations_newest ON account_aggregations (tenant_id, account_id, created_at DESC, id);
