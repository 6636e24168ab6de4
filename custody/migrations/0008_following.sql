-- What becomes of a transaction after it was sent, and its replacement.

SELECT 1;
