"""The counters of the rate limit: exact for each name, bounded in names, and nobody pushes another one out."""

import time

from hypothesis import given
from hypothesis import strategies as st

from custody.kit.windows import SPARE_COUNTERS, Windows


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 30)), max_size=60))
def test_each_name_is_counted_in_its_own_window(hits: list[tuple[str, float]]) -> None:
    windows, now, known = Windows(60), 0.0, dict[str, list[float]]()
    for name, passed in hits:
        now += passed
        begun = known.setdefault(name, [])
        if begun and begun[0] + 60 <= now:
            begun.clear()
        begun.append(now)

        assert windows.hit(name, now) == (len(begun), begun[0] + 60)
        assert windows.of(name, now) == (len(begun), begun[0] + 60)


def test_when_it_is_full_those_who_are_counted_stay_counted_and_others_share() -> None:
    windows = Windows(60, most=100)
    for number in range(100):
        windows.hit(f"counted {number}", 0)

    strangers = [windows.hit(f"stranger {number}", 1)[0] for number in range(10_000)]

    assert [windows.hit(f"counted {number}", 2)[0] for number in range(100)] == [2] * 100
    assert len(windows) <= 100 + SPARE_COUNTERS
    # Ten thousand names have no more counters than there are to spare, so a limit reaches them.
    assert max(strangers) >= 10_000 // SPARE_COUNTERS
    # Windows end, a few with each hit, and there is room again.
    assert windows.hit("late", 100)[0] == 1
    for number in range(80):
        windows.hit(f"after {number}", 100)
    assert [windows.hit(f"after {number}", 100)[0] for number in range(40, 80)] == [2] * 40


def test_a_hit_takes_no_longer_with_many_names() -> None:
    def seconds_of(names: int) -> float:
        windows = Windows(60)
        for number in range(names):
            windows.hit(f"name {number}", 0)
        best = 1.0
        for _ in range(5):
            begun = time.thread_time()
            for number in range(1_000):
                windows.hit(f"name {number % 10}", 1)
            best = min(best, time.thread_time() - begun)
        return best

    # It walked all of them once: 300 times as long.
    assert seconds_of(50_000) < 20 * seconds_of(10)
