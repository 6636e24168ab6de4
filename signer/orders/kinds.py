"""The kinds of orders that a signer signs, as its `__main__` hands them in."""

from collections.abc import Mapping, Sequence

from signer.orders.kind import AnyKind


class OrderKinds:
    """The kind of each order, by the class of the order and by the name under which it is stored.

    `stored` lists the orders that are stored as they are; the others become one of these.
    """

    def __init__(self, kinds: Mapping[type[object], AnyKind], stored: Sequence[type[object]]) -> None:
        self.by_order = dict(kinds)
        self._by_name = {kinds[order].name: kinds[order] for order in stored}

    def of(self, order: object) -> AnyKind:
        """The kind of an order that was decoded."""
        return self.by_order[type(order)]

    def named(self, name: str) -> AnyKind:
        """The kind of an order that is stored."""
        return self._by_name[name]
