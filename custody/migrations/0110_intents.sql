-- Intents: what somebody proposes, a person authorises, and the signer carries out.

CREATE TABLE intents (
  tenant_id       text NOT NULL,
  id              uuid NOT NULL,
  agent_id        text,
  incarnation     uuid,
  type            text NOT NULL CHECK (type IN ('rpc', 'transfer', 'wallet_update', 'policy_update',
    'policy_rule_create', 'policy_rule_delete', 'policy_rule_update', 'quorum_update', 'wallet_action')),
  resource_type   text,
  resource_id     text,
  reference_id    text,
  payload         text NOT NULL,
  digest          bytea NOT NULL,
  status          text NOT NULL CHECK (status IN ('pending', 'authorized', 'executing', 'executed', 'failed',
    'rejected', 'canceled', 'expired')),
  created_by      text NOT NULL,
  created_by_name text,
  baseline        text,
  authorized_by   uuid,
  authorized_at   timestamptz,
  tx_ids          uuid[] NOT NULL DEFAULT '{}',
  results         text,
  answer          bytea,
  result          text,
  reason          text,
  expires_at      timestamptz NOT NULL,
  created_at      timestamptz NOT NULL,
  updated_at      timestamptz NOT NULL,
  mac             bytea NOT NULL,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE intents IS
  'Proposals that a person authorises before they are carried out; the MAC is over all that decides, made again at each step.';
COMMENT ON COLUMN intents.created_by IS 'The principal that proposed it: a person may not authorise their own.';
COMMENT ON COLUMN intents.baseline IS 'What it was authorised against; carried out against anything else it fails.';
COMMENT ON COLUMN intents.tx_ids IS 'The ids of the transactions that it will become, so that none is ever made twice.';
COMMENT ON COLUMN intents.results IS 'What each rule said of a batch of calls when it was proposed.';
COMMENT ON COLUMN intents.answer IS 'Of a batch of calls: what is answered to the same batch under the same reference.';
COMMENT ON COLUMN intents.result IS 'What carrying it out came to; never anything that was signed.';
CREATE INDEX intents_newest ON intents (tenant_id, created_at DESC, id);
CREATE INDEX intents_by_status ON intents (tenant_id, status, created_at DESC, id);
CREATE INDEX intents_by_type ON intents (tenant_id, type, created_at DESC, id);
CREATE INDEX intents_of_agent ON intents (tenant_id, agent_id, created_at DESC, id);
CREATE INDEX intents_due ON intents (expires_at) WHERE status IN ('pending', 'authorized');
CREATE INDEX intents_open ON intents (tenant_id) WHERE status IN ('pending', 'authorized', 'executing');
CREATE INDEX intents_executing ON intents (updated_at) WHERE status = 'executing';
CREATE UNIQUE INDEX intents_action_reference ON intents (tenant_id, agent_id, reference_id) WHERE answer IS NOT NULL;
CREATE INDEX intents_age ON intents (updated_at);
