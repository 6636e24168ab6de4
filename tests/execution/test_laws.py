"""Orders that are signed are executed by real contracts and programs, and never move more than was counted."""

import pytest

from tests.execution.cases import Tally, smaller
from tests.execution.draws import SEED
from tests.execution.search import kind_of
from tests.fixtures.thorough import THOROUGH

# 2,000 in a check, 200,000 in `make reliability`.
CASES = {"evm": 1_100, "typed": 300, "solana": 600}
TIMES = 1 if THOROUGH == 1 else 4 * THOROUGH
# So many of a hundred cases must at least be signed, succeed and move something; else nothing would be tried.
LEAST = {"evm": (10, 6, 4), "typed": (10, 8, 5), "solana": (10, 6, 4)}


@pytest.mark.parametrize("kind", CASES)
def test_signed_orders_move_no_more_than_was_counted_and_nothing_to_whom_a_rule_forbids(kind: str) -> None:
    case, run = kind_of(kind)
    tally, most = Tally(), CASES[kind] * TIMES
    for number in range(most):
        if wrong := run(one := case(number), tally):
            shown = run(smaller(run, one), Tally()) or wrong
            pytest.fail(f"seed {SEED}, after {number + 1} cases\n" + "\n".join(map(str, shown)))

    tried = tally.counts["executed"], tally.counts["succeeded"], tally.counts["moved"]
    assert all(100 * many >= most * least for many, least in zip(tried, LEAST[kind], strict=True)), tally.counts
