-- Promises: Primary keys of living rows after one of them, of those that another version than p_not made; nothing
--   of what is in them.
-- Runs as: definer
-- Execute: signer, identity

CREATE FUNCTION sealed_places(p_table text, p_not integer, p_after text[], p_limit integer) RETURNS TABLE (place text[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE v_columns text; v_texts text; v_after text; v_version text := sealed_version(p_table);
BEGIN
  -- By the primary key, whatever it consists of: each batch goes on where the one before it ended.
  SELECT string_agg(format('t.%I', a.attname), ', ' ORDER BY k.n),
         string_agg(format('t.%I::text', a.attname), ', ' ORDER BY k.n),
         string_agg(format('$1[%s]::%s', k.n, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY k.n)
    INTO v_columns, v_texts, v_after
    FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (attnum, n)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
   WHERE i.indrelid = format('public.%I', p_table)::regclass AND i.indisprimary;
  RETURN QUERY EXECUTE format(
    'SELECT ARRAY[%s] FROM %I t WHERE ($1 IS NULL OR (%s) > (%s)) '
    'AND ($2 IS NULL OR %s <> $2) AND %s ORDER BY %s LIMIT $3',
    v_texts, p_table, v_columns, v_after, v_version, sealed_living(p_table), v_columns) USING p_after, p_not, p_limit;
END $$;
