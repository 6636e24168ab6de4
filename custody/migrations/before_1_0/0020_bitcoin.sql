-- Bitcoin: the public halves of account keys, and which coins were signed away.

CREATE TABLE bitcoin_accounts (
  tenant_id  text NOT NULL,
  agent_id   text NOT NULL,
  account    text NOT NULL CHECK (length(account) <= 64),
  public_key bytea NOT NULL,
  chain_code bytea NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT service_now(),
  PRIMARY KEY (tenant_id, agent_id, account),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE bitcoin_accounts IS
  'Account keys without their private halves, each under a MAC: another one here would make strangers'' outputs our change.';
COMMENT ON COLUMN bitcoin_accounts.account IS 'bitcoin:<network>:<type>:<account>, the beginning of a wallet scope.';

CREATE TABLE psbt_spends (
  tenant_id     text NOT NULL,
  agent_id      text NOT NULL,
  incarnation   uuid NOT NULL,
  unsigned_txid bytea NOT NULL,
  tx_id         uuid NOT NULL,
  amount        numeric(100, 0) NOT NULL CHECK (amount >= 0),
  hour          timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, incarnation, unsigned_txid),
  FOREIGN KEY (tenant_id, tx_id) REFERENCES transactions (tenant_id, id) ON DELETE CASCADE
);
COMMENT ON TABLE psbt_spends IS
  'What each transaction counts as spend, and in which hour: signed again it is the same spend, and counts once.';
CREATE INDEX psbt_spends_of_tx ON psbt_spends (tenant_id, tx_id);

CREATE TABLE outpoints (
  tenant_id text NOT NULL,
  agent_id  text NOT NULL,
  txid      bytea NOT NULL,
  vout      bigint NOT NULL,
  tx_id     uuid NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, txid, vout, tx_id),
  FOREIGN KEY (tenant_id, tx_id) REFERENCES transactions (tenant_id, id) ON DELETE CASCADE
);
COMMENT ON TABLE outpoints IS 'The coins of an agent that its signed PSBTs spend: of two with one coin only one can happen.';
CREATE INDEX outpoints_of_tx ON outpoints (tenant_id, tx_id);

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['bitcoin_accounts', 'psbt_spends', 'outpoints'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY own_tenant ON %I TO custody_api, custody_signer, custody_scheduler, custody_proxy
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
    EXECUTE format('CREATE POLICY across ON %I TO custody_definer USING (true)', t);
  END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON bitcoin_accounts, psbt_spends TO custody_signer;
GRANT SELECT, INSERT ON outpoints TO custody_signer;
GRANT SELECT ON bitcoin_accounts, psbt_spends, outpoints TO custody_definer;
