"""Other rules, tried on past requests. Decisions 10."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import tenant_read
from custody.agents.types import AgentAbsent
from custody.foresight.backtest import backtest as judge_again
from custody.foresight.types import Backtest, Backtested
from custody.kit.errors import TooMany
from custody.kit.refs import AgentRef
from custody.policies.types import InvalidPolicy
from custody.ports import Ports

routes = Routes("/agents", tag="Policies")


@routes.post(
    "/<agent>/policies/backtest",
    who=tenant_read,
    returns={200: Backtested},
    fails=(AgentAbsent, InvalidPolicy, TooMany),
)
async def backtest(ports: Ports, agent: AgentRef, body: Backtest) -> Any:
    """Say which requests of the last days these rules would have decided otherwise; nothing is changed.

    At most the newest 5,000, in their order, with spend and rate as they would have been.
    An `Idempotency-Key` keeps no answer, because nothing is written: each question is answered anew.
    """
    return await judge_again(ports, agent, body)
