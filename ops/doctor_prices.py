"""The check of `custody doctor` on prices that an endpoint issues: whether they are young enough to count."""

from custody.kit import clock
from custody.kit.price_url import VARIABLE
from ops import signer_health
from ops.findings import Finding
from ops.settings import Settings


async def prices(settings: Settings) -> Finding:
    """Limits in dollars have prices to go by."""
    subject = "prices"
    health = await signer_health.ask(settings, subject)
    if isinstance(health, Finding):
        return health
    found = health.prices
    if found is None:
        return Finding(subject, "no endpoint issues them; those of a file count as they are")
    when = "none came yet" if found.issued_at is None else f"issued at {clock.iso(clock.of_unix(found.issued_at))}"
    if not found.old:
        return Finding(subject, when)
    cure = (
        f"read in the scheduler's log why prices were not taken, and check what {VARIABLE} answers and who signs it "
        "(docs/policies.md#prices-from-an-endpoint)"
    )
    return Finding(subject, f"none counts, so a person decides about orders under limits in dollars: {when}", cure)
