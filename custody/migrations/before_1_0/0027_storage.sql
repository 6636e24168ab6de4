-- How rows of orders are stored.

-- A plain order has a little over 2 KiB, the length from which Postgres compresses columns until a row is shorter: each
-- insert paid for that, to save a tenth of the row. Longer ones are compressed as before.
ALTER TABLE transactions SET (toast_tuple_target = 4080);
