"""Reading the audit log."""

from tests.acts.act import ADMINS, SESSION, Act

ACTS = (
    Act("GET /audit/events", SESSION, ADMINS, "audit"),
    Act("GET /audit/export", SESSION, ADMINS, "audit"),
    Act("GET /audit/checkpoints", SESSION, ADMINS, "audit"),
)
