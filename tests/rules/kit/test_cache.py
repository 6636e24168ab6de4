"""The cache: bounded, with an end, and the least recently used goes first."""

from hypothesis import given
from hypothesis import strategies as st

from custody.kit.cache import Cache


class Clock:
    """Time as the test says."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_entry_ends_however_often_it_is_used() -> None:
    clock = Clock()
    cache: Cache[str, int] = Cache(10, 1.0, clock)
    cache.put("a", 1)
    for _ in range(9):
        clock.now += 0.1
        assert cache.get("a") == 1
    clock.now += 0.2
    assert cache.get("a") is None
    assert len(cache) == 0


def test_a_value_is_as_old_as_its_reading() -> None:
    clock = Clock()
    cache: Cache[str, int] = Cache(10, 1.0, clock)
    cache.put("a", 1, at=99.5)
    clock.now += 0.5
    assert cache.get("a") is None


def test_the_least_recently_used_goes_first() -> None:
    cache: Cache[str, int] = Cache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert "a" in cache
    cache.put("c", 3)
    assert ("a" in cache, "b" in cache, "c" in cache) == (True, False, True)


def test_ended_entries_are_removed_on_request() -> None:
    clock = Clock()
    cache: Cache[str, int] = Cache(10, 1.0, clock)
    cache.put("old", 1)
    clock.now += 0.5
    cache.put("young", 2)
    clock.now += 0.5
    cache.drop_ended()
    assert (len(cache), cache.get("young")) == (1, 2)


def test_entries_are_dropped_by_key_and_all_at_once() -> None:
    cache: Cache[str, int] = Cache(10)
    for key in ("a", "b", "c"):
        cache.put(key, 1)
    cache.drop("a")
    cache.drop("a")
    cache.drop_where(lambda key: key == "b")
    assert (len(cache), "c" in cache) == (1, True)
    cache.clear()
    assert len(cache) == 0


def test_an_entry_tells_its_time_and_none_may_be_a_value() -> None:
    clock = Clock()
    cache: Cache[str, None] = Cache(10, 5.0, clock)
    cache.put("a", None, at=98.0)
    assert "a" in cache
    assert cache.entry("a") == (None, 98.0)
    assert cache.entry("b") is None


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=60), st.integers(1, 4))
def test_it_is_never_larger_than_its_size(steps: list[tuple[str, bool]], size: int) -> None:
    cache: Cache[str, str] = Cache(size)
    for key, put in steps:
        if put:
            cache.put(key, key)
            assert cache.get(key) == key
        else:
            cache.get(key)
        assert len(cache) <= size
