-- Audit rows, the sealed log over them, its checkpoints, and the indexes that people search the rows by.
--
-- Nobody may change or delete what is sealed: not even the functions of the definer can. docs/audit.md.

CREATE TABLE audit (
  tenant_id     text NOT NULL,
  seq           bigint GENERATED ALWAYS AS IDENTITY,
  written_by    text NOT NULL,
  actor_type    text NOT NULL CHECK (actor_type IN ('user', 'agent', 'system')),
  actor_id      text NOT NULL,
  action        text NOT NULL,
  resource_type text NOT NULL,
  resource_id   text NOT NULL,
  metadata      text NOT NULL,
  ip_address    text,
  user_agent    text,
  request_id    text,
  created_at    timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, seq),
  -- A process sets its tenant itself; a name with a line break would be another log's line in a signed checkpoint.
  CONSTRAINT audit_of_a_tenant CHECK (tenant_id ~ '^[A-Za-z0-9_.:-]{1,64}$'),
  -- The same bounds as in custody/audit/columns.py, which says how rows outside them are sealed and shown.
  CONSTRAINT audit_times CHECK (
    created_at >= '1970-01-01 00:00:00+00' AND created_at < '10000-01-01 00:00:00+00'),
  CONSTRAINT audit_words CHECK (
    GREATEST(octet_length(written_by), octet_length(actor_type), octet_length(actor_id), octet_length(action),
             octet_length(resource_type), octet_length(resource_id), octet_length(ip_address), octet_length(user_agent),
             octet_length(request_id)) <= 2048),
  CONSTRAINT audit_metadata CHECK (
    CASE WHEN octet_length(metadata) <= 65536 THEN json_typeof(metadata::json) = 'object' ELSE false END)
);
COMMENT ON TABLE audit IS
  'Appended by audit_append and proxy_audit alone; outlives what it speaks of, so no foreign keys.';
CREATE TRIGGER audit_queue AFTER INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_queue();
-- Each costs every act something, so there are as few as will do. Actions, types of actors and of resources have few
-- values and fewer combinations: one index serves all three, combination by combination. Times have none here: where
-- rows of a time are is known from audit_spans, which sealing writes.
CREATE INDEX audit_kind ON audit (tenant_id, action, actor_type, resource_type, seq);
CREATE INDEX audit_actor ON audit (tenant_id, actor_id, seq);
CREATE INDEX audit_resource ON audit (tenant_id, resource_id, seq);
CREATE INDEX audit_request ON audit (tenant_id, request_id, seq);

CREATE TABLE audit_unsealed (
  tenant_id text NOT NULL,
  seq       bigint NOT NULL,
  PRIMARY KEY (tenant_id, seq)
);
COMMENT ON TABLE audit_unsealed IS
  'Committed with each audit row, by whoever wrote it; the sealer takes it away with the row''s place in the log.';

CREATE TABLE audit_leaves (
  tenant_id text NOT NULL,
  log_index bigint NOT NULL CHECK (log_index >= 0),
  seq       bigint NOT NULL,
  hash      bytea NOT NULL CHECK (octet_length(hash) = 32),
  PRIMARY KEY (tenant_id, log_index),
  UNIQUE (tenant_id, seq)
);
COMMENT ON TABLE audit_leaves IS
  'The place of each audit row in the log of its tenant: without gaps, in the order of sealing.';

CREATE TABLE audit_nodes (
  tenant_id text NOT NULL,
  level     smallint NOT NULL CHECK (level > 0),
  position  bigint NOT NULL CHECK (position >= 0),
  hash      bytea NOT NULL CHECK (octet_length(hash) = 32),
  PRIMARY KEY (tenant_id, level, position)
);
COMMENT ON TABLE audit_nodes IS
  'Every fourth level of complete subtrees, so that a proof reads few rows, however long the log is.';

CREATE TABLE audit_checkpoints (
  tenant_id  text NOT NULL,
  size       bigint NOT NULL CHECK (size > 0),
  root       bytea NOT NULL CHECK (octet_length(root) = 32),
  frontier   bytea[] NOT NULL,
  note       text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT service_now(),
  PRIMARY KEY (tenant_id, size)
);
COMMENT ON COLUMN audit_checkpoints.frontier IS
  'Roots of the complete subtrees that the tree is made of, largest first: all that appending needs.';

CREATE TABLE audit_spans (
  tenant_id text NOT NULL,
  position  bigint NOT NULL CHECK (position >= 0),
  first_seq bigint NOT NULL,
  last_seq  bigint NOT NULL,
  oldest    timestamptz NOT NULL,
  newest    timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, position)
);
COMMENT ON TABLE audit_spans IS
  'Bounds of each 512 rows of a log, so that a search by time needs no index that acting pays for.';
