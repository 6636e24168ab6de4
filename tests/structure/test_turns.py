"""Workers begin with the files that take longest."""

from itertools import pairwise

from tests.fixtures.turns import in_random_order, in_turn, read, write

RULES, WALK, CONSOLE = "tests/rules/test_rules.py", "tests/paths/test_walk.py", "tests/console/test_screens.py"
FILES = [RULES, RULES, CONSOLE, RULES, WALK, CONSOLE]


def test_the_file_that_took_longest_comes_first_and_its_tests_stay_together_and_in_order() -> None:
    assert in_turn(FILES, {RULES: 9, WALK: 5, CONSOLE: 7}) == [0, 1, 3, 2, 5, 4]
    assert in_turn(FILES, {RULES: 5, WALK: 9, CONSOLE: 7}) == [4, 2, 5, 0, 1, 3]


def test_files_of_which_nothing_is_known_are_guessed_by_their_folder() -> None:
    assert in_turn(FILES, {}) == [4, 2, 5, 0, 1, 3]
    # A deployment at least, and more with every test.
    assert in_turn([WALK, *[RULES] * 1000], {})[-1] == 0
    assert in_turn(FILES, {RULES: 60}) == [0, 1, 3, 4, 2, 5]


def test_the_list_of_what_files_took_is_read_as_it_was_written() -> None:
    assert write({RULES: 1.4, WALK: 61.2, CONSOLE: 7.0}) == f"61 {WALK}\n7 {CONSOLE}\n"
    assert read(write({RULES: 1.4, WALK: 61.2, CONSOLE: 7.0})) == {WALK: 61.0, CONSOLE: 7.0}


def test_a_seed_draws_an_order_in_which_files_stay_together() -> None:
    files = ["a", "a", "b", "a", "c", "b"] * 4

    drawn = [in_random_order(files, seed) for seed in ("1", "1", "2")]

    assert drawn[0] == drawn[1] != drawn[2]
    for order in drawn:
        assert sorted(order) == list(range(len(files)))
        named = [files[place] for place in order]
        assert sum(one != next_one for one, next_one in pairwise(named)) == 2
        assert [place for place in order if files[place] == "a"] != sorted(
            place for place in order if files[place] == "a"
        )
