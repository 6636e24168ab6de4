"""`policy-set`: the agent is one of those that a policy set is about, whose rules judge its orders besides its own."""

from typing import Annotated, Self

from custody.chains.types import Subject
from custody.kit.described import described
from custody.kit.shapes import Uuid
from custody.policies.kind import Config, Covers, Rule, Terms
from custody.policies.types import Facts


class PolicySet(Terms, frozen=True):
    """The set that is named; what it says is judged beside this rule."""

    policy_set: str

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say that the set's rules decide."""
        return True, "the rules of the policy set are judged besides"

    def tightens(self, old: Self) -> bool:
        """Say whether it is the same set: of another nobody can say how strict it will be."""
        return self.policy_set == old.policy_set

    def covers(self) -> Covers:
        """Name the set: what its rules cover, the agent's orders are covered by."""
        return Covers(policy_set=self.policy_set)


class PolicySetConfig(Config, frozen=True):
    """The set of the tenant."""

    policy_set: Annotated[Uuid, described("The id of the policy set.")]

    def terms(self) -> PolicySet:
        """The set's id."""
        return PolicySet(self.policy_set)


class PolicySetRule(Rule, frozen=True, kw_only=True, tag="policy-set"):
    """The rules of a policy set bind the agent besides its own. At most one, always enabled."""

    config: Annotated[PolicySetConfig, described("Settings of the rule.")]
