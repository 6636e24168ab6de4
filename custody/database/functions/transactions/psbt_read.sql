-- Promises: What judging a PSBT needs beside every order's facts: the account's key, what the same transaction counted
--   already, and the newest other order that spends one of its coins. Read after `sign_read`, whose version the write
--   compares: whatever changes in between makes it stale. No row: no account of that name.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION psbt_read(p_tenant text, p_agent text, p_account text, p_unsigned bytea, p_txids bytea[],
                          p_vouts bigint[])
RETURNS TABLE (public_key bytea, chain_code bytea, mac bytea, counted numeric, counted_usd numeric,
               counted_hour timestamptz, conflict uuid)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY
  SELECT b.public_key, b.chain_code, b.mac, s.amount, s.micro_usd, s.hour,
         (SELECT o.tx_id FROM unnest(p_txids, p_vouts) AS c (txid, vout)
            JOIN outpoints o ON o.tenant_id = p_tenant AND o.agent_id = p_agent AND o.txid = c.txid AND o.vout = c.vout
            JOIN transactions t ON t.tenant_id = p_tenant AND t.id = o.tx_id
           WHERE t.incarnation = a.incarnation AND o.tx_id IS DISTINCT FROM s.tx_id
           ORDER BY t.signed_at DESC, t.id DESC LIMIT 1)
    FROM agents a
    JOIN bitcoin_accounts b ON b.tenant_id = p_tenant AND b.agent_id = p_agent AND b.account = p_account
    LEFT JOIN psbt_spends s ON s.tenant_id = p_tenant AND s.agent_id = p_agent AND s.incarnation = a.incarnation
      AND s.unsigned_txid = p_unsigned
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
