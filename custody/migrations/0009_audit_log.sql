-- The sealed log over the audit rows, and its checkpoints.

SELECT 1;
