"""Other rules, tried on past requests."""

from api.areas.simulation.backtest import BacktestRunning
from api.areas.simulation.backtest import backtest as judge_again
from api.areas.simulation.types import Backtest, Backtested
from api.http.bodies import MAX_POLICIES_BODY
from api.http.endpoint import Routes
from api.http.who import tenant_read
from custody.kit.refs import AgentRef
from custody.policies.types import InvalidPolicy
from custody.ports import Ports
from custody.protocol.signer.order_refusals import AgentAbsent

routes = Routes("/agents", tag="Policies")


@routes.post(
    "/<agent>/policies/backtest",
    who=tenant_read,
    max_body=MAX_POLICIES_BODY,
    fails=(AgentAbsent, InvalidPolicy, BacktestRunning),
)
async def backtest_policies(ports: Ports, agent: AgentRef, body: Backtest) -> Backtested:
    """Back-test rules: list recent requests that these rules would have decided differently. Nothing is changed.

    Replays at most the newest 5,000 requests, in order, with spend and rate as they would have been.
    An `Idempotency-Key` stores no response, because nothing is written: every request is evaluated again.
    """
    return await judge_again(ports, agent, body)
