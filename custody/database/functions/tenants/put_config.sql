-- Promises: Writes a tenant's configuration if its version is still the expected one. Call it after
--   begin_administration.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION put_config(p_tenant text, p_expected_version bigint, p_document text, p_judging text, p_mac bytea)
RETURNS boolean
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  INSERT INTO tenant_config AS c (tenant_id, version, document, judging, mac)
  VALUES (p_tenant, p_expected_version + 1, p_document, p_judging, p_mac)
  ON CONFLICT (tenant_id) DO UPDATE SET version = excluded.version, document = excluded.document,
    judging = excluded.judging, mac = excluded.mac, changed_at = service_now() WHERE c.version = p_expected_version;
  RETURN FOUND;
END $$;
