-- Promises: One tenant to be created, with its first key and, where a person will own it, the membership. The fields of
--   `NewTenantRow` (identity/administration/tenants.py) stand in this order.

CREATE TYPE new_tenant AS (
  id             text,
  name           text,
  webhook_url    text,
  key_hash       bytea,
  key_prefix     text,
  key_mac        bytea,
  owner          uuid,
  membership_mac bytea,
  created_at     timestamptz
);
