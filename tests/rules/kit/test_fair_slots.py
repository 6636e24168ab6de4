"""Places that many want: nobody's share is larger than it is, and the last places are for who has few."""

from itertools import count

from custody.kit.fair_slots import Bounds, FairSlots
from tests.fixtures.each import each

BOUNDS = Bounds(places=100, of_one=10, of_group=30, reserve=20, few=2)


def take(shares: FairSlots, group: str, asked: int) -> int:
    """Count how many of so many a group gets for askers that each take one."""
    return sum(shares.take((group, number)) is None for number in range(asked))


def test_one_and_a_group_have_no_more_than_their_share() -> None:
    shares = FairSlots(BOUNDS)

    assert [shares.take(("acme", "a")) for _ in range(11)] == [None] * 10 + ["share"]
    assert take(shares, "acme", 100) == 20
    assert shares.take(("other", "a")) is None


def test_groups_with_many_do_not_get_the_last_places_and_groups_with_few_do() -> None:
    shares = FairSlots(BOUNDS)
    for group in ("one", "two", "three"):
        take(shares, group, 30)

    assert shares.taken == 80
    assert shares.take(("three", "more")) == "room"
    assert [take(shares, f"new-{number}", 5) for number in range(11)] == [2] * 10 + [0]
    assert shares.take(("newest", "a")) == "room"


@each(("amount", "lack"), [(10, None), (11, "share")])
def test_an_amount_is_taken_whole_or_not_at_all(amount: int, lack: str | None) -> None:
    shares = FairSlots(BOUNDS)

    assert shares.take(("acme", "a"), amount) == lack
    assert shares.taken == (0 if lack else amount)


def test_a_returned_slot_is_free_again_and_its_holder_is_forgotten() -> None:
    shares = FairSlots(BOUNDS)
    for _ in range(3):
        names = [(f"group-{number}", "a") for number in range(100)]
        assert [shares.take(who) for who in names] == [None] * 100
        assert next(number for number in count() if shares.take((f"late-{number}", "a")) == "room") == 0
        for who in names:
            shares.give_back(who)

    assert (shares.taken, shares.of_group("group-1")) == (0, 0)
    assert not shares._of_one
