-- Promises: The credential that an act began with, as demand_credential looks it up again. tenant_key and app_secret
--   have a hash; session has its id and the MAC of the membership it acts by. The fields of `Credential`
--   (custody/kit/act.py) stand in this order.

CREATE TYPE credential AS (
  kind           text,
  hash           bytea,
  session        uuid,
  membership_mac bytea
);
