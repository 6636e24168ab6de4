-- A priced call that a payment pays for: what it was charged comes back once for each payment.

ALTER TABLE call_charges ADD COLUMN paid_by uuid;
COMMENT ON COLUMN call_charges.paid_by IS 'The payment for which the charge of its call was given back.';
CREATE UNIQUE INDEX call_charges_paid_by ON call_charges (tenant_id, paid_by) WHERE paid_by IS NOT NULL;
GRANT UPDATE (paid_by) ON call_charges TO custody_signer;
