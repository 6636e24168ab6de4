-- Payments that others take to the chain: what took them, and a first look for those from before this.

ALTER TABLE transactions ADD COLUMN settled_by text CHECK (octet_length(settled_by) <= 128);
COMMENT ON COLUMN transactions.settled_by IS
  'The transaction by which whom it pays took a payment, as a node said; null before that, and where none was found.';
UPDATE transactions SET look_at = service_now() WHERE kind IN ('x402', 'solana_x402') AND status = 'signed';
