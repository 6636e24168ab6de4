-- Promises: The policy set that an agent's rules name; null where they name none.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION set_named_in(p_rules rule[]) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT r.config::json ->> 'policySet' FROM unnest(p_rules) AS r
   WHERE r.type IN ('policy-set', 'policy-set@agent') LIMIT 1
$$;
