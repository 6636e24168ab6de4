"""The errors of payments, apart from what reads and builds one."""

from custody.kit.errors import Conflict, Forbidden, Invalid


class OfferUnpayable(Invalid):
    """None of the offers can be paid: scheme, network or asset is not known here, or the demand cannot be read."""


class PaymentExpired(Conflict):
    """The payment under this key can be used no more, and stays counted; a new one needs a new Idempotency-Key."""


class PaymentRefused(Forbidden):
    """This payment is not made, whatever the rules say."""
