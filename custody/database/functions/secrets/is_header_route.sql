-- Promises: Whether a route puts its secret into a header.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION is_header_route(p_fields text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  -- Canonical JSON: within a text of it every quote has a backslash in front.
  SELECT position('"injectAs":"header"' IN p_fields) > 0
$$;
