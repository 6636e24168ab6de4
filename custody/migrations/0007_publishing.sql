-- Numbering events, making deliveries of them, and claiming what is due.

SELECT 1;
