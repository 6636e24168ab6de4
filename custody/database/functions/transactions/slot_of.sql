-- Promises: The transactions that one nonce was signed for, the newest first, and always the one that is asked
--   about.
-- Runs as: caller
-- Execute: definer

CREATE FUNCTION slot_of(p_tenant text, p_address text, p_chain bigint, p_nonce bigint, p_tx uuid) RETURNS text
LANGUAGE sql STABLE AS $$
  -- From who holds the slot back along what each replaced. Of very many only the newest are looked at together; each of
  -- the others is looked at beside them when it is its own turn.
  WITH RECURSIVE members AS (
    SELECT t.id, t.tx_hash, t.status, t.replaces_tx_id, 1 AS place
      FROM nonces n JOIN transactions t ON t.tenant_id = n.tenant_id AND t.id = n.tx_id
     WHERE n.tenant_id = p_tenant AND n.address = p_address AND n.chain_id = p_chain AND n.nonce = p_nonce
    UNION ALL
    SELECT t.id, t.tx_hash, t.status, t.replaces_tx_id, m.place + 1
      FROM members m JOIN transactions t ON t.tenant_id = p_tenant AND t.id = m.replaces_tx_id WHERE m.place < 32),
  everyone AS (
    SELECT id, tx_hash, status, place FROM members
    UNION ALL
    SELECT t.id, t.tx_hash, t.status, 33 FROM transactions t
     WHERE t.tenant_id = p_tenant AND t.id = p_tx AND NOT EXISTS (SELECT FROM members m WHERE m.id = p_tx))
  SELECT json_agg(json_build_object('id', id, 'hash', tx_hash, 'status', status) ORDER BY place)::text FROM everyone
$$;
