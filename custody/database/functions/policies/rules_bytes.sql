-- Promises: How many bytes rules take, as the quotas count them.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION rules_bytes(p_rules rule[]) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT COALESCE(sum(octet_length(r.id) + octet_length(r.type) + octet_length(r.config)), 0) FROM unnest(p_rules) AS r
$$;
