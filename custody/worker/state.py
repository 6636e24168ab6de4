"""The parts of every worker; each adds what is its own."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from custody.kit.db import Pool
from custody.worker.agent_queues import AgentQueues
from custody.worker.judging import JudgingSeals
from custody.worker.proven import Prover
from custody.worker.room import Room
from custody.worker.sealing import Sealer


@dataclass(frozen=True, kw_only=True)
class Worker:
    """The state that every handler gets first."""

    pool: Pool
    sealer: Sealer
    proofs: Prover
    judging: JudgingSeals
    public_url: str
    queues: AgentQueues = field(default_factory=AgentQueues)
    counters: Counter[str] = field(default_factory=Counter)
    room: Room = field(default_factory=Room)
    # What is at work; a worker that stops waits for it.
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def serve(self, tenant: str) -> None:
        """Raise where nothing may be done for a tenant at this moment."""
