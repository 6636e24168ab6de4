-- Promises: Appends an audit row, stamped with the time and the writing role. p_origin: request id, address, user
--   agent.
-- Runs as: definer
-- Execute: signer, identity

CREATE FUNCTION audit_append(p_actor_type text, p_actor_id text, p_action text, p_resource_type text,
                             p_resource_id text, p_metadata text, p_origin text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE v_worker text;
BEGIN
  -- The writer is stamped from the session, and what one process may claim nobody else can write.
  v_worker := CASE
    WHEN p_action ~ ('^(tx|policy|policy_set|key|agent|approval|approver_key|secret|credential_route|payment_route'
                     '|signer|quorum|wallet|import|intent|audit)\.') THEN 'custody_signer'
    WHEN p_action ~ '^(account|aggregation)\.' THEN 'custody_api'
    WHEN p_action IN ('tenant.frozen', 'tenant.unfrozen', 'tenant.deleted') THEN 'custody_signer'
    WHEN p_action ~ ('^(tenant|user|session|membership|factor|passkey|device|app_client|app_secret|signing_key'
                     '|platform_key|api_key|webhook|channel|sso|invitation|identity|wallet_policy)\.')
      THEN 'custody_identity'
    END;
  IF session_user <> v_worker THEN
    RAISE EXCEPTION 'role % may not write the audit action %', session_user, p_action;
  END IF;
  -- A person acts as `user:<id>`, wherever it is shown. An agent may be called anything, so its name tells nothing.
  INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata,
                     ip_address, user_agent, request_id, created_at)
  VALUES (current_setting('custody.tenant'), session_user,
          CASE WHEN p_actor_type <> 'agent' AND p_actor_id LIKE 'user:%' THEN 'user' ELSE p_actor_type END,
          CASE WHEN p_actor_type <> 'agent' AND p_actor_id LIKE 'user:%' THEN substr(p_actor_id, 6) ELSE p_actor_id END,
          p_action, p_resource_type, p_resource_id, p_metadata, p_origin[2], p_origin[3], p_origin[1], service_now());
END $$;
