"""Acts on an agent's rules, and on the keys of those who approve changes of them."""

import hashlib
from typing import TYPE_CHECKING

from tests.acts.act import ABSENT, ADMINS, OF_AGENT, OPERATOR, SESSION, SIDE, SIDE_OR_AGENT, TEAM, Act, Journey
from tests.fixtures.approvers import Authenticator as ApproverKey
from tests.fixtures.approvers import approver, quorum
from tests.fixtures.people import Person, member

if TYPE_CHECKING:
    from tests.table.world import World


def _register_approver_key(world: "World") -> Journey:
    return Journey(_voter(world), body=ApproverKey().registration())


def _revoke_approver_key(world: "World") -> Journey:
    person = _voter(world)
    return Journey(person, {"key_id": person.ok("POST", "/approver-keys", ApproverKey().registration())["id"]})


def _vote_for_policies(world: "World") -> Journey:
    voter = approver(world.service, world.tenant, "admin")
    agent = world.tenant.agent()
    voter.person.ok("PUT", f"/agents/{agent.id}/policies", [quorum(1, voter)])
    item = {"id": agent.id, "txId": "2", "digest": hashlib.sha256(b"[]").hexdigest()}
    vote = voter.vote(item, said={"kind": "policies"})
    return Journey(voter.person, {"agent": agent.id}, {"policies": [], "vote": vote})


def _voter(world: "World") -> Person:
    """Somebody of a team, whose keys are their own: one may have eight."""
    return member(world.service, world.tenant, "developer", mfa=True)


def _empty_template(world: "World") -> str:
    """A template without rules, so that what others do with the same agent and set stays what it was."""
    kept = {"policyTemplates": [{"id": "empty", "name": "No rules"}]}
    world.tenant.ok("PUT", f"/tenants/{world.tenant.id}/config", kept)
    return "empty"


ACTS = (
    Act("GET /agents/{agentId}/policies", SIDE_OR_AGENT, TEAM),
    Act(
        "POST /policy-sets",
        SIDE,
        ADMINS,
        "tenantAdmin",
        command="CreatePolicySet",
        nothing={"name": "x", "policies": [{"type": "policy-set", "enabled": True, "config": {"policySet": ABSENT}}]},
        body=lambda world: {"name": "A set", "policies": []},
    ),
    Act("GET /policy-sets", SIDE, TEAM),
    Act("GET /policy-sets/{id}", SIDE, TEAM),
    Act(
        "PUT /policy-sets/{id}",
        SIDE,
        ADMINS,
        "tenantAdmin",
        command="ReplacePolicySet",
        nothing={"policy_set": ABSENT, "name": "x", "policies": []},
        body=lambda world: {"name": "A set", "policies": []},
    ),
    Act(
        "DELETE /policy-sets/{id}",
        SIDE,
        ADMINS,
        "tenantAdmin",
        command="DeletePolicySet",
        nothing={"policy_set": ABSENT},
    ),
    Act(
        "PUT /agents/{agentId}/policies",
        SIDE_OR_AGENT,
        ADMINS,
        "tenantAdmin",
        command="ReplacePolicies",
        nothing=OF_AGENT | {"policies": []},
        body=lambda world: [],
    ),
    Act(
        "POST /agents/{agentId}/policies/backtest",
        SIDE,
        TEAM,
        body=lambda world: {"policies": [], "days": 1},
        unaudited="a question: past requests are read and nothing is written",
    ),
    Act("GET /policy-templates", SIDE, TEAM),
    Act(
        "POST /policy-templates/preview",
        SIDE,
        TEAM,
        body=lambda world: {"templateId": "ask-first", "agentId": world.agent.id},
        unaudited="a question: rules are compared and nothing is written",
    ),
    Act(
        "PUT /agents/{agentId}/policies/template",
        SIDE,
        ADMINS,
        "tenantAdmin",
        command="ReplacePolicies",
        body=lambda world: {"templateId": _empty_template(world)},
    ),
    Act(
        "PUT /policy-sets/{id}/template",
        SIDE,
        ADMINS,
        "tenantAdmin",
        command="ReplacePolicySet",
        body=lambda world: {"templateId": _empty_template(world)},
    ),
    Act("GET /approver-keys", SESSION, TEAM),
    Act(
        "POST /approver-keys",
        SESSION,
        TEAM,
        "approvals",
        command="RegisterApproverKey",
        nothing={"name": "x", "rp_id": "localhost", "credential_id": "xx", "public_key": "A" * 124},
        journey=_register_approver_key,
    ),
    Act(
        "DELETE /approver-keys/{keyId}",
        SESSION,
        TEAM,
        "approvals",
        command="RevokeApproverKey",
        nothing={"key_id": ABSENT},
        journey=_revoke_approver_key,
    ),
    Act(
        "POST /agents/{agentId}/policies/votes",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="VotePolicies",
        nothing=OF_AGENT
        | {
            "policies": [],
            "vote": {"keyId": ABSENT, "authenticatorData": "x", "clientDataJSON": "x", "signature": "x"},
        },
        journey=_vote_for_policies,
    ),
    Act("GET /agents/{agentId}/policies/votes", SIDE, TEAM),
    Act((), OPERATOR, command="BreakQuorum", nothing={"tenant": "absent", "agent": "absent"}, senders="operator"),
)
