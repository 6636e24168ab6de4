-- What receipts, simulation and back-tests read.

SELECT 1;
