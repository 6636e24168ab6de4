-- Promises: One person as the operator sees them. linked: a JSON list of [id, kind, subject], without addresses, the
--   oldest first; external_ids: one of [tenant, external id]. tenants, linked: at most a thousand.

CREATE TYPE platform_person AS (
  id              uuid,
  name            text,
  image           text,
  email           text,
  email_verified  boolean,
  wallet_kind     text,
  wallet          text,
  custom_metadata text,
  deactivated_at  timestamptz,
  created_at      timestamptz,
  updated_at      timestamptz,
  tenants         text[],
  linked          text,
  external_ids    text
);
