-- Promises: Trigger: a key or app secret that is deleted takes its used signatures along.
-- Runs as: caller
-- Execute: identity
-- Needed by: tables

CREATE FUNCTION forget_signatures() RETURNS trigger LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  IF TG_TABLE_NAME = 'signing_keys' THEN
    DELETE FROM used_signatures WHERE tenant_id = OLD.tenant_id AND key_name = OLD.id::text;
  ELSE
    DELETE FROM used_signatures WHERE tenant_id = OLD.tenant_id AND key_name = encode(OLD.secret_hash, 'hex');
  END IF;
  RETURN NULL;
END $$;
