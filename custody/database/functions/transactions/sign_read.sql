-- Promises: Everything that an order is judged on, in one round trip and without a lock. No row: no such agent.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION sign_read(p_tenant text, p_agent text, p_family text, n nonce_request, p_principal text, p_route text,
                          p_key_hash bytea, p_authority boolean)
RETURNS TABLE (now timestamptz, incarnation uuid, token_epoch integer, ledger_version bigint, policy_version bigint,
               agent_frozen boolean, tenant_frozen boolean, address text, agent_name text,
               head_version bigint, head_count integer, head_mac bytea, rules text,
               key_version integer, blob bytea, config_version bigint, judging text, judging_mac bytea,
               spend text, totals text, minutes bigint[], hours bigint[],
               highest_nonce bigint, slot_nonce bigint, slot_state text, slot_tx uuid, slot_charges text,
               idem_fingerprint bytea, idem_answer bytea, authority_version bigint, authority text, stamp text,
               sets_stamp text, sets text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  now := service_now();
  -- Before the rows that it speaks of: a row that is written in between makes it older than what was read.
  IF NOT p_authority THEN stamp := row_stamp(p_tenant, p_agent, p_family); END IF;
  -- The version is read first, with what stands in one row for each agent or tenant, and everything that is summed
  -- after it: what changes in between moves the version, and the write refuses. (The other way round, a sum could be
  -- older than the version that vouches for it.) Most of a statement's cost is starting it, so what is always needed
  -- and is one row is one statement; the others are small ones, because many are not needed.
  SELECT a.incarnation, a.token_epoch, a.ledger_version, a.policy_version, a.authority_version,
         a.frozen_at IS NOT NULL, COALESCE(w.address, ''), a.name, t.frozen_at IS NOT NULL,
         COALESCE(c.version, 0), c.judging, c.mac,
         h.version, h.count, h.mac, s.key_version, s.blob
    INTO incarnation, token_epoch, ledger_version, policy_version, authority_version, agent_frozen,
         address, agent_name, tenant_frozen, config_version, judging, judging_mac,
         head_version, head_count, head_mac, key_version, blob
    FROM agents a
    JOIN tenants t ON t.id = p_tenant
    LEFT JOIN tenant_config c ON c.tenant_id = p_tenant
    LEFT JOIN wallets w ON w.tenant_id = p_tenant AND w.agent_id = p_agent AND w.family = p_family AND w.scope = ''
    LEFT JOIN policy_heads h ON h.tenant_id = p_tenant AND h.agent_id = p_agent
    LEFT JOIN sealed s ON s.tenant_id = p_tenant AND s.owner_kind = 'agent' AND s.owner = p_agent
      AND s.purpose = p_family
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
  IF NOT FOUND THEN RETURN; END IF;
  -- Whatever the head says: rules that nobody counted must be seen, or adding some would go unnoticed.
  SELECT json_agg(json_build_array(r.id, r.type, r.enabled, r.config) ORDER BY r.position)::text INTO rules
    FROM policy_rules r WHERE r.tenant_id = p_tenant AND r.agent_id = p_agent;
  -- A call leaves up to half a minute after its charge. So that no window of calls has more than a window of charges,
  -- that of usd reaches a minute further back.
  SELECT json_agg(json_build_array(w.asset, w.day::text, w.week::text))::text INTO spend FROM (
    SELECT p.asset, COALESCE(sum(p.amount) FILTER (
        WHERE p.hour >= date_trunc('hour', b.reach - interval '24 hours')), 0) AS day, sum(p.amount) AS week
      FROM spend p CROSS JOIN LATERAL (
        SELECT CASE p.asset WHEN 'usd' THEN now - interval '1 minute' ELSE now END AS reach) b
     WHERE p.tenant_id = p_tenant AND p.agent_id = p_agent AND p.incarnation = sign_read.incarnation
       AND p.hour >= date_trunc('hour', now - interval '168 hours 1 minute')
       AND p.hour >= date_trunc('hour', b.reach - interval '168 hours') GROUP BY p.asset) w;
  sets_stamp := sets_stamp(p_tenant, p_agent);
  IF sets_stamp IS NOT NULL THEN sets := sets_read(p_tenant, p_agent, now); END IF;
  IF rules LIKE '%maxTotal%' THEN totals := totals_read(p_tenant, p_agent, incarnation); END IF;
  -- Each bucket with its orders, not the sums alone: a refusal says when enough of them leave the window.
  SELECT array_agg(ARRAY[extract(epoch FROM q.bucket)::bigint, q.orders]) FILTER (WHERE q.grain = 'minute'),
         array_agg(ARRAY[extract(epoch FROM q.bucket)::bigint, q.orders]) FILTER (WHERE q.grain = 'hour')
    INTO minutes, hours
    FROM rate q WHERE q.tenant_id = p_tenant AND q.agent_id = p_agent AND q.incarnation = sign_read.incarnation
     AND ((q.grain = 'minute' AND q.bucket >= date_trunc('minute', now - interval '1 hour'))
       OR (q.grain = 'hour' AND q.bucket >= date_trunc('hour', now - interval '24 hours')));
  IF n.chain IS NOT NULL THEN
    SELECT o.nonce INTO highest_nonce FROM nonces o
     WHERE o.tenant_id = p_tenant AND o.address = sign_read.address AND o.chain_id = n.chain
       ORDER BY o.nonce DESC LIMIT 1;
    IF n.nonce IS NOT NULL THEN
      SELECT o.nonce, o.state, o.tx_id, o.charges INTO slot_nonce, slot_state, slot_tx, slot_charges FROM nonces o
       WHERE o.tenant_id = p_tenant AND o.address = sign_read.address AND o.chain_id = n.chain AND o.nonce = n.nonce;
    ELSIF n.takes_open THEN
      SELECT o.nonce, o.state, o.tx_id, o.charges INTO slot_nonce, slot_state, slot_tx, slot_charges FROM nonces o
       WHERE o.tenant_id = p_tenant AND o.address = sign_read.address AND o.chain_id = n.chain AND o.state = 'open'
         AND o.nonce >= COALESCE(n.pending, 0) ORDER BY o.nonce LIMIT 1;
    END IF;
  END IF;
  -- Only for who shows an authorisation: an order without one costs nothing more.
  IF p_authority THEN authority := authority_read(p_tenant, p_agent); END IF;
  IF p_key_hash IS NOT NULL THEN
    SELECT i.fingerprint,
      COALESCE(i.answer, (SELECT t.answer FROM transactions t WHERE t.tenant_id = p_tenant AND t.id = i.tx_id))
      INTO idem_fingerprint, idem_answer FROM idempotency i
     WHERE i.tenant_id = p_tenant AND i.principal = p_principal AND i.route = p_route AND i.key_hash = p_key_hash
       AND i.expires_at > now;
  END IF;
  RETURN NEXT;
END $$;
