"""Take off what stands on functions that are dropped, and say how to put it back: nothing is lost with a function.

Known are triggers, defaults, policies, rules, views, check and exclusion constraints, indexes, generated columns, and
whatever of these stands on such a view or column in turn. Anything else (a materialised view, an aggregate, an event
trigger) stops the whole with Postgres' own message, and nothing has changed.
"""

from collections.abc import Iterable
from typing import Any

# What depends on what, from the functions up. A view is its rule, a generated column its expression, and an index that
# a constraint owns is that constraint: so each thing is found under the name by which it can be dropped.
_STANDS_ON = """
WITH RECURSIVE found (class, id, part, depth) AS (
  SELECT 'pg_proc'::regclass::oid, to_regproc(f)::oid, 0, 0 FROM unnest($1::text[]) f
  UNION
  SELECT n.class, n.id, n.part, f.depth + 1
    FROM found f JOIN pg_depend p ON p.refclassid = f.class AND p.refobjid = f.id AND p.deptype IN ('n', 'a')
         AND (f.part = 0 OR p.refobjsubid = f.part)
    LEFT JOIN pg_rewrite w ON p.classid = 'pg_rewrite'::regclass AND w.oid = p.objid AND w.rulename = '_RETURN'
    LEFT JOIN pg_attrdef d ON p.classid = 'pg_attrdef'::regclass AND d.oid = p.objid
    LEFT JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum AND a.attgenerated <> ''
    LEFT JOIN pg_constraint c ON p.classid = 'pg_class'::regclass AND c.conindid = p.objid AND c.contype IN ('u', 'x')
   CROSS JOIN LATERAL (SELECT CASE WHEN w.oid IS NOT NULL OR a.attnum IS NOT NULL THEN 'pg_class'::regclass::oid
                                   WHEN c.oid IS NOT NULL THEN 'pg_constraint'::regclass::oid ELSE p.classid END,
                              coalesce(w.ev_class, a.attrelid, c.oid, p.objid),
                              coalesce(a.attnum, 0)) n (class, id, part)
   WHERE (n.class, n.id, n.part) <> (f.class, f.id, f.part)
), o AS (SELECT class, id, part, max(depth) AS depth FROM found WHERE depth > 0 GROUP BY class, id, part)
SELECT s.off, s.back || coalesce('; COMMENT ON ' || s.named || ' IS ' || quote_literal(
         CASE WHEN o.part > 0 THEN col_description(o.id, o.part)
              ELSE obj_description(o.id, o.class::regclass::text::name) END), '') AS back
  FROM o CROSS JOIN LATERAL (
    SELECT NULL AS named, format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', d.adrelid::regclass, a.attname) AS off,
           format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', d.adrelid::regclass, a.attname,
                  pg_get_expr(d.adbin, d.adrelid)) AS back
      FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
     WHERE o.class = 'pg_attrdef'::regclass AND d.oid = o.id
    UNION ALL
    SELECT format('TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass),
           format('DROP TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass),
           pg_get_triggerdef(t.oid) || CASE t.tgenabled WHEN 'O' THEN '' ELSE
             format('; ALTER TABLE %s %s TRIGGER %I', t.tgrelid::regclass, CASE t.tgenabled WHEN 'D' THEN 'DISABLE'
                    WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, t.tgname) END
      FROM pg_trigger t WHERE o.class = 'pg_trigger'::regclass AND t.oid = o.id AND NOT t.tgisinternal
    UNION ALL
    SELECT format('POLICY %I ON %s', l.polname, l.polrelid::regclass),
           format('DROP POLICY %I ON %s', l.polname, l.polrelid::regclass),
           format('CREATE POLICY %I ON %s AS %s FOR %s TO %s %s %s', l.polname, l.polrelid::regclass,
                  CASE WHEN l.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
                  CASE l.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE'
                                WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
                  (SELECT string_agg(CASE r WHEN 0 THEN 'PUBLIC' ELSE r::regrole::text END, ', ')
                     FROM unnest(l.polroles) r),
                  'USING (' || pg_get_expr(l.polqual, l.polrelid) || ')',
                  'WITH CHECK (' || pg_get_expr(l.polwithcheck, l.polrelid) || ')')
      FROM pg_policy l WHERE o.class = 'pg_policy'::regclass AND l.oid = o.id
    UNION ALL
    SELECT format('RULE %I ON %s', w.rulename, w.ev_class::regclass),
           format('DROP RULE %I ON %s', w.rulename, w.ev_class::regclass), rtrim(pg_get_ruledef(w.oid), ';')
      FROM pg_rewrite w WHERE o.class = 'pg_rewrite'::regclass AND w.oid = o.id
    UNION ALL
    SELECT format('CONSTRAINT %I ON %s', c.conname, c.conrelid::regclass),
           format('ALTER TABLE %s DROP CONSTRAINT %I', c.conrelid::regclass, c.conname),
           format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid))
      FROM pg_constraint c WHERE o.class = 'pg_constraint'::regclass AND c.oid = o.id
           AND c.contype IN ('c', 'u', 'x') AND c.conrelid <> 0
    UNION ALL
    SELECT format('INDEX %s', i.indexrelid::regclass), format('DROP INDEX %s', i.indexrelid::regclass),
           pg_get_indexdef(i.indexrelid)
      FROM pg_index i WHERE o.class = 'pg_class'::regclass AND o.part = 0 AND i.indexrelid = o.id
    UNION ALL
    SELECT format('COLUMN %s.%I', a.attrelid::regclass, a.attname),
           format('ALTER TABLE %s DROP COLUMN %I', a.attrelid::regclass, a.attname),
           format('ALTER TABLE %s ADD COLUMN %I %s GENERATED ALWAYS AS (%s) STORED%s', a.attrelid::regclass, a.attname,
                  format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid),
                  CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END)
           || (SELECT coalesce(string_agg(format('; GRANT %s (%I) ON %s TO %s', x.privilege_type, a.attname,
                                   a.attrelid::regclass,
                                   CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END), ''), '')
                 FROM aclexplode(a.attacl) x)
      FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE o.class = 'pg_class'::regclass AND a.attrelid = o.id AND a.attnum = o.part AND a.attgenerated = 's'
    UNION ALL
    SELECT format('VIEW %s', v.oid::regclass), format('DROP VIEW %s', v.oid::regclass),
           format('CREATE VIEW %s%s AS %s; ALTER VIEW %s OWNER TO %s', v.oid::regclass,
                  ' WITH (' || array_to_string(v.reloptions, ', ') || ')', rtrim(pg_get_viewdef(v.oid), ';'),
                  v.oid::regclass, v.relowner::regrole)
           || (SELECT coalesce(string_agg(format('; GRANT %s ON %s TO %s%s', x.privilege_type, v.oid::regclass,
                                   CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END,
                                   CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), ''), '')
                 FROM aclexplode(v.relacl) x WHERE x.grantee <> v.relowner)
      FROM pg_class v WHERE o.class = 'pg_class'::regclass AND o.part = 0 AND v.oid = o.id AND v.relkind = 'v'
  ) s
 ORDER BY o.depth DESC, s.off
"""


async def take_off(connection: Any, functions: Iterable[str]) -> list[str]:
    """Take off everything that stands on these functions; the statements that put it back, in their order."""
    rows = await connection.fetch(_STANDS_ON, list(functions))
    for row in rows:
        await connection.execute(row["off"])
    return [row["back"] for row in reversed(rows)]
