-- Promises: Whether a route puts its secret into a header, or signs with it: not every value will do.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION is_header_route(p_fields text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  -- Canonical JSON: within a text of it every quote has a backslash in front.
  SELECT p_fields ~ '"injectAs":"(header|basic|awsSigV4)"'
$$;
