"""Words that a model reads: an outcome, or an error that says what to do next. The words are this server's contract."""

from enum import Enum
from typing import Any, Final

from mcp_server.vault import Answer, NoAnswer


class Next(Enum):
    """Ways to go on after a code of the service."""

    CHANGE = "change"
    FINAL = "final"
    AGAIN = "again"
    LATER = "later"
    NAME = "name"
    OPERATOR = "operator"


_CODES: Final = {
    Next.CHANGE: """
        amount_required authorization_malformed bad_address bad_body bad_cursor bad_idempotency_key bad_json
        bad_message bad_path bad_query bad_time bad_transaction bad_typed_data bad_wallet_scope body_too_large
        body_unfit cursor_and_page declared_mismatch document_expired duplicate_key fee_above_cap fee_too_low
        gas_limit_too_low header_malformed headers_too_large head_too_large idempotency_key_required malformed_json
        malformed_request malformed_target message_not_ours method_not_forwarded nested_too_deeply nonce_gap
        nonce_implausible nonce_taken nonce_used number_out_of_range offer_unpayable other_cursor payload_unfit
        psbt_ambiguous psbt_fee psbt_malformed psbt_no_own_input psbt_nonstandard_output psbt_sighash
        psbt_unproven_input range_not_forwarded range_not_satisfiable reference_required solana_malformed
        solana_unsupported too_fragmented too_many_pairs transaction_absent two_amounts typed_data_ambiguous
        unknown_alias unknown_chain unsupported_chain value_out_of_range wrong_content_type
    """,
    Next.FINAL: """
        address_blocked approval_denied approval_expired approval_resolved automation_disabled budget_exceeded frozen
        mfa_required no_route payment_expired payment_not_accepted payment_refused policy_refused quorum_not_met
        secret_unavailable signer_permission sponsorship_unavailable withdrawn
    """,
    Next.AGAIN: """
        body_too_slow busy database_full database_unavailable idempotency_in_flight identity_unavailable internal
        outcome_unknown signer_unavailable unavailable upstream_failed upstream_timeout
    """,
    Next.LATER: """
        crowded leaving node_calls_spent payments_paused policy_rate_limited quota_exceeded rate_limited
        too_many_connections too_much_held
    """,
    Next.NAME: "idempotency_mismatch idempotency_secret_shown reference_taken",
    Next.OPERATOR: """
        agent_absent ambiguous_credentials authority_tampered bad_credential bad_proof bad_token broadcast_refused
        credential_ended database_rolled_back estimate_failed insufficient_funds key_tampered key_version_missing
        no_credential other_agent policy_tampered policy_unreadable refresh_token_ended request_expired
        request_expiry_malformed request_expiry_too_far request_from_the_future request_stale request_time_required
        request_timestamp_malformed rpc_refused rpc_unavailable sealed_value_tampered session_revoked
        signature_key_unknown signature_malformed signature_mismatch signature_replayed signature_required
        signer_unknown token_not_minted token_revoked two_tokens unknown_key upstream_encoded wallet_of_person
        wrong_kind wrong_role
    """,
}
CLASSES: Final = {code: what for what, codes in _CODES.items() for code in codes.split()}

_WHAT_TO_DO: Final = {
    Next.CHANGE: "Change that argument and call again.",
    Next.FINAL: "Do not try variations. Tell the user.",
    Next.AGAIN: "Nobody knows whether it happened. Call again with the same arguments and the same payment_name.",
    Next.NAME: "That payment_name was another payment. A new payment needs a new name; a repeated one must be equal.",
    Next.OPERATOR: "Tell the user: the one who runs this service has to mend it. Do not try variations.",
}
_WAIT: Final = (
    "A person must decide. Call wait_for_decision with this transaction_id, or tell the user. Never pay again."
)
_UNCHANGED: Final = "Nothing was changed. Call again in a moment."
# A wait without a figure.
_SECONDS: Final = 30


class ToolError(Exception):
    """A fault, as `code: sentence`, with what to do."""


def error(answer: Answer, reading: bool = False) -> ToolError:
    """The error for an answer that is no outcome; `reading` where the tool changes nothing."""
    what = CLASSES.get(answer.code, Next.FINAL)
    return ToolError(f"{answer.code}: {answer.sentence} {_cure(what, answer.retry_after, reading)}")


def unknown(problem: NoAnswer, reading: bool = False) -> ToolError:
    """The error where no answer came."""
    cure = _cure(Next.AGAIN, None, reading or not problem.sent)
    return ToolError(f"no_answer: The service gave no answer ({problem}). {cure}")


def _cure(what: Next, seconds: int | None, reading: bool) -> str:
    if what is Next.LATER:
        return f"Wait {seconds or _SECONDS} seconds, then call again with the same arguments."
    if what is Next.AGAIN and reading:
        return _UNCHANGED
    return _WHAT_TO_DO[what]


def order(answer: Answer, **signed: str | None) -> dict[str, Any]:
    """The outcome of an order: signed, waiting, refused or retry_later. Raises ToolError for all else.

    A refusal by the rules is an outcome and no error, for models repeat errors. `signed` is what a signature brings,
    by its name in the outcome and its name in the answer.
    """
    if answer.done:
        found = {ours: answer.get(theirs) for ours, theirs in signed.items() if theirs and answer.get(theirs)}
        return _outcome("signed", answer, "Done. Nothing more to do for this payment.", **found)
    if answer.status == 202:
        return _outcome("waiting", answer, _WAIT)
    what = CLASSES.get(answer.code)
    if what is Next.FINAL:
        return _outcome("refused", answer, _WHAT_TO_DO[Next.FINAL])
    if what is Next.LATER:
        return _outcome("retry_later", answer, _cure(Next.LATER, answer.retry_after, reading=False))
    raise error(answer)


def _outcome(outcome: str, answer: Answer, what_to_do: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"outcome": outcome, "what_to_do": what_to_do, **more}
    if isinstance(answer.get("txId"), str):
        found["transaction_id"] = answer.get("txId")
    if outcome != "signed" and (why := reasons(answer.get("results")) or list(filter(None, [answer.sentence]))):
        found["reasons"] = why
    return found


def reasons(results: Any) -> list[str]:
    """Why rules did not pass, in the service's words."""
    if not isinstance(results, list):
        return []
    failed = [one for one in results if isinstance(one, dict) and one.get("passed") is False]
    return [str(one.get("reason") or one.get("type"))[:500] for one in failed[:16]]
