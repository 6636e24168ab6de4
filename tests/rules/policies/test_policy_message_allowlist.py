"""message-allowlist: which messages pass unasked, and that everything else asks where anything is limited."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.message_effects import subject_of
from custody.chains.message_orders import EvmMessageOrder, SolanaMessageOrder
from custody.chains.message_reading import read
from custody.chains.types import Subject
from custody.kit.clock import iso
from custody.policies.coverage import without_listed
from custody.policies.judge import judge, judge_evaded
from custody.policies.tighten import widening
from custody.policies.types import InvalidPolicy, Verdict
from tests.rules.policies.makers import NOON, facts, native, rule, rules

US = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
SOLANA_US = "3uTFpmpBvStn9yCtFNvPQXqX7SsXwZwQXLLsUdMTEcBZ"
SITE = "app.example.com"
LISTED = rule("message-allowlist", {"siweDomains": [SITE], "siwsDomains": ["sol.example.com"],
                                    "patterns": ["Example: log in as *", "Example terms *\nversion *."]})  # fmt: skip
LIMIT = rule("spending-limit", {"maxPerDay": "1000"})


def sign_in(
    *,
    domain: str = SITE,
    uri: str = f"https://{SITE}/login",
    chain: int = 1,
    issued: timedelta = timedelta(),
    expires: timedelta | None = None,
    begins: timedelta | None = None,
    tail: str = "",
) -> str:
    lines = [f"{domain} wants you to sign in with your Ethereum account:", US, "", "", f"URI: {uri}", "Version: 1",
             f"Chain ID: {chain}", "Nonce: 12345678", f"Issued At: {iso(NOON + issued)}"]  # fmt: skip
    if expires is not None:
        lines.append(f"Expiration Time: {iso(NOON + expires)}")
    if begins is not None:
        lines.append(f"Not Before: {iso(NOON + begins)}")
    return "\n".join(lines) + tail


def solana(domain: str = "sol.example.com", tail: str = "") -> str:
    return f"{domain} wants you to sign in with your Solana account:\n{SOLANA_US}{tail}"


def evm(text: str | None = None, raw: bytes | None = None, chain: int | None = 1) -> Subject:
    hexed = None if raw is None else "0x" + raw.hex()
    message = read("evm", text, hexed)
    return subject_of(EvmMessageOrder(text, hexed), message, US, chain, chain and f"eip155:{chain}")


def of_solana(text: str) -> Subject:
    return subject_of(SolanaMessageOrder(text), read("solana", text, None), SOLANA_US, 101, "solana:x")


MESSAGES = {
    "siweDomains": (["a.example", "b.example"], ["a.example"]),
    "siwsDomains": (["a.example", "b.example"], ["a.example"]),
    "patterns": (["Example: one *", "Example: two *"], ["Example: one *"]),
}


@pytest.mark.parametrize("field", MESSAGES)
def test_a_list_of_messages_is_tighter_only_where_no_part_of_it_is_wider(field):
    def terms(**config):
        (parsed,) = rules(rule("message-allowlist", config))
        return parsed.terms

    wide, narrow = MESSAGES[field]
    others = {name: values[0] for name, values in MESSAGES.items() if name != field}
    fewer = {name: values[1] for name, values in MESSAGES.items() if name != field}
    assert terms(**others, **{field: narrow}).tightens(terms(**others, **{field: wide}))
    assert terms(**others, **{field: wide}).tightens(terms(**others, **{field: wide}))
    for rest in (others, fewer, {}):
        assert not terms(**rest, **{field: wide}).tightens(terms(**others, **{field: narrow}))
        assert terms(**rest, **{field: wide}).beyond([terms(**others, **{field: narrow})]) is not None
    assert terms(**fewer, **{field: narrow}).beyond([terms(**others), terms(**{field: wide})]) is None


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("Example: ab*ab", "Example: abab", True),
        ("Example: ab*ab", "Example: ab", False),
        ("Example: *xy*y", "Example: xyy", True),
        ("Example: *xy*y", "Example: xy", False),
        ("Example: *mple*", "Example: none", False),
        ("Example: *mple*", "Example: a simple one", True),
        ("Example: *a*b*c", "Example: a b a c", True),
        ("Example: *a*b*c", "Example: b a c", False),
        ("Example: *a*b*", "Example: b", False),
        ("Example: *a*b*", "Example: a", False),
        ("Example: *a*b*", "Example: ab", True),
        ("Example:\n*x*", "Example:\nx", True),
        ("Example:\n*x*", "Example:\ny", False),
        ("Example:\n*", "Example:\n", True),
        ("Example:\n*", "Example:", False),
        ("Example:\n*", "Example:\na\nb", False),
    ],
)
def test_a_pattern_fits_piece_by_piece_from_the_left(pattern, text, fits):
    verdict = verdict_on(evm(text), rule("message-allowlist", {"patterns": [pattern]}))
    assert verdict.decision == ("sign" if fits else "queue")


@pytest.mark.parametrize(("scheme", "decision"), [("http", "sign"), ("HTTPS", "sign"), ("ftp", "queue")])
def test_a_site_is_signed_in_to_over_the_web_alone(scheme, decision):
    assert verdict_on(evm(f"{scheme}://{sign_in()}"), LISTED).decision == decision


@pytest.mark.parametrize("field", ["siweDomains", "siwsDomains"])
def test_a_site_that_is_none_is_refused_by_its_field(field):
    with pytest.raises(InvalidPolicy, match=f"`{field}` entry 'https://app.example.com'"):
        rules(rule("message-allowlist", {field: ["https://app.example.com"]}))


def test_every_list_must_list_a_message():
    """As every rule must pass: a second list does not widen the first."""
    said = evm("Example: log in as somebody")
    other = rule("message-allowlist", {"siweDomains": ["other.example.com"]})
    assert verdict_on(said, LISTED).decision == "sign"
    for both in ((LISTED, other), (other, LISTED)):
        verdict = verdict_on(said, *both)
        assert verdict.decision == "queue"
        # What is no message is no business of theirs.
        assert verdict_on(native(5), *both).decision == "sign"
    assert without_listed(rules(LISTED, LISTED), said, NOON).effects == ()
    assert without_listed(rules(LISTED, other), said, NOON) == said
    assert without_listed(rules(), said, NOON) == said
    assert without_listed(rules(LISTED), native(5), NOON) == native(5)


def verdict_on(subject: Subject, *given: object, **known: object) -> Verdict:
    return judge(rules(*given), subject, facts(**known))


def reasons(verdict: Verdict) -> list[str]:
    return [one.reason for one in verdict.results if not one.passed]


@pytest.mark.parametrize(
    "text",
    [
        sign_in(),
        sign_in(domain=f"https://{SITE}"),
        sign_in(domain="App.Example.com", uri="https://APP.example.com"),
        sign_in(expires=timedelta(seconds=1), begins=timedelta(minutes=5)),
        sign_in(issued=timedelta(minutes=-60)),
        sign_in(issued=timedelta(minutes=5)),
        sign_in(tail="\nResources:\n- https://elsewhere.example/1"),
        "Example: log in as *",
        "Example: log in as ",
        "Example: log in as Jürgen 17",
        "Example terms of use\nversion 3.",
    ],
)  # fmt: skip
def test_a_listed_message_is_signed_under_any_limit(text: str) -> None:
    others = [rule("approved-addresses", {"addresses": []}), rule("contract-allowlist", {"contracts": []})]
    for beside in ([], [LIMIT], others, [rule("allowed-chains", {"chains": [1]})]):
        verdict = verdict_on(evm(text), LISTED, *beside)

        assert verdict.decision == "sign", reasons(verdict)
        assert verdict.charges == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (sign_in(domain="evil.example"), "the site evil.example is not listed"),
        (sign_in(domain=f"{SITE}:8443"), f"the site {SITE}:8443 is not listed"),
        (sign_in(domain=f"{SITE}."), f"the site {SITE}. is not listed"),
        (sign_in(domain=f"user@{SITE}"), f"the site user@{SITE} is not listed"),
        (sign_in(domain=f"evil.{SITE}"), f"the site evil.{SITE} is not listed"),
        (sign_in(domain="sol.example.com"), "the site sol.example.com is not listed"),
        (sign_in(domain="xn--pp-6kc.example.com"), "the site xn--pp-6kc.example.com is not listed"),
        (sign_in(uri="https://evil.example/login"), f"the URI of the sign-in is not of {SITE}"),
        (sign_in(uri=f"https://{SITE}@evil.example/"), f"the URI of the sign-in is not of {SITE}"),
        (sign_in(uri=f"https://{SITE}:8443/"), f"the URI of the sign-in is not of {SITE}"),
        (sign_in(uri=f"https://{SITE}\\@evil.example"),
         "the message looks like a sign-in, and is none to the letter"),
        (sign_in(uri=f"did:key:{SITE}"), f"the URI of the sign-in is not of {SITE}"),
        (sign_in(domain=f"ftp://{SITE}"), f"the URI of the sign-in is not of {SITE}"),
        (sign_in(tail="\nResources:\n- urn:recap:eyJhdHQiOnt9fQ"), "the sign-in gives others a capability (urn:recap)"),
        (sign_in(issued=timedelta(minutes=-61)), "the sign-in was not issued now"),
        (sign_in(issued=timedelta(minutes=6)), "the sign-in was not issued now"),
        (sign_in(begins=timedelta(minutes=6)), "the sign-in is not good yet"),
        (sign_in(expires=timedelta()), "the sign-in has expired"),
        (sign_in() + "\n", "the message looks like a sign-in, and is none to the letter"),
        (sign_in().replace("\n", "\r\n"), "the message looks like a sign-in, and is none to the letter"),
        ("Example: log in as x wants you to sign in with your Ethereum account:",
         "the message looks like a sign-in, and is none to the letter"),
        ("Example: log in as \nroot", "the message fits no pattern"),
        (" Example: log in as x", "the message fits no pattern"),
        ("Example: log in as\u00a0x", "the message is not plain text"),
        ("Example: log in as x\u202e", "the message is not plain text"),
        ("Example: log in as x\0", "the message is not plain text"),
        ("Example terms of use\nversion 3", "the message fits no pattern"),
        ("hello", "the message fits no pattern"),
    ],
)  # fmt: skip
def test_an_unlisted_message_asks_a_person_and_says_why(text: str, why: str) -> None:
    asked, approved = verdict_on(evm(text), LISTED), verdict_on(evm(text), LISTED, approving=True)

    assert (asked.decision, reasons(asked)) == ("queue", [f"{why}; a person must approve it"])
    assert (approved.decision, approved.results[0].reason) == ("sign", f"{why}; a person approved it")


def test_bytes_that_are_no_text_are_on_no_list() -> None:
    assert verdict_on(evm(raw=b"\xff\xfe" * 20), LISTED).decision == "queue"


def test_the_same_bytes_are_judged_alike_in_either_form() -> None:
    for text in (sign_in(), "Example: log in as me", "hello"):
        assert verdict_on(evm(text), LISTED) == verdict_on(evm(raw=text.encode()), LISTED)


def test_sites_are_listed_for_each_family_by_itself() -> None:
    assert verdict_on(of_solana(solana()), LISTED).decision == "sign"
    assert verdict_on(of_solana(solana(SITE)), LISTED).decision == "queue"
    assert verdict_on(of_solana(solana(tail="\n\nURI: https://sol.example.com/in")), LISTED).decision == "sign"
    assert verdict_on(of_solana(solana(tail="\n\nURI: https://evil.example/in")), LISTED).decision == "queue"


LIMITING = {
    "spending-limit": LIMIT,
    "spending-limit on a token": rule("spending-limit", {"maxPerDay": "1", "asset": "evm:1:0x" + "7a" * 20}),
    "auto-approve-threshold": rule("auto-approve-threshold", {"threshold": "1000"}),
    "approved-addresses": rule("approved-addresses", {"addresses": []}),
    "blocked addresses": rule("approved-addresses", {"addresses": [], "mode": "blacklist"}),
    "contract-allowlist": rule("contract-allowlist", {"contracts": []}),
    "allowed-chains": rule("allowed-chains", {"chains": [1]}),
    "message-allowlist": rule("message-allowlist", {}),
}


@pytest.mark.parametrize("name", LIMITING)
@pytest.mark.parametrize("uncovered", ["queue", "allow"])
@pytest.mark.parametrize("text", ["hello", sign_in()])
def test_under_any_limit_no_setting_lets_a_message_pass_unasked(name: str, uncovered: str, text: str) -> None:
    verdict = verdict_on(evm(text), LIMITING[name], uncovered=uncovered)

    assert verdict.decision == "queue"
    assert verdict_on(evm(text), LIMITING[name], uncovered=uncovered, approving=True).decision == "sign"
    if name != "message-allowlist":
        assert reasons(verdict) == ["no enabled message-allowlist lists the message; a person must approve it"]


def test_a_tenant_that_refuses_what_nobody_reads_refuses_messages() -> None:
    assert verdict_on(evm("hello"), LIMIT, uncovered="refuse").decision == "refuse"
    assert verdict_on(evm("hello"), LISTED, uncovered="refuse").decision == "refuse"
    assert verdict_on(evm(sign_in()), LISTED, uncovered="refuse").decision == "sign"


def test_without_limits_messages_are_signed() -> None:
    window, rate = rule("time-window", {"allowedDays": [1]}), rule("rate-limit", {"maxTxPerDay": 5})
    disabled = rule("spending-limit", {"maxPerDay": "1"}, enabled=False)

    for harmless in ((), (window,), (rate,), (window, rate, disabled)):
        assert verdict_on(evm("hello"), *harmless).decision == "sign"
    assert verdict_on(evm("hello"), rule("time-window", {"allowedDays": [2]})).decision == "refuse"
    assert verdict_on(evm(sign_in()), LISTED, rate, orders_last_day=5).decision == "refuse"


def test_a_disabled_list_lists_nothing() -> None:
    disabled = rule("message-allowlist", LISTED.config, enabled=False)

    assert verdict_on(evm(sign_in()), disabled, LIMIT).decision == "queue"


def test_two_lists_hold_together() -> None:
    narrow = rule("message-allowlist", {"siweDomains": [SITE]})

    assert verdict_on(evm(sign_in()), LISTED, narrow).decision == "sign"
    assert verdict_on(evm("Example: log in as me"), LISTED, narrow).decision == "queue"


@pytest.mark.parametrize(
    ("subject", "decision"),
    [
        (evm(sign_in(chain=1), chain=1), "sign"),
        (evm(sign_in(chain=137), chain=137), "refuse"),
        (evm("Example: log in as me", chain=1), "sign"),
        (evm("Example: log in as me", chain=None), "refuse"),
    ],
)
def test_the_chain_of_a_message_must_be_allowed(subject: Subject, decision: str) -> None:
    verdict = verdict_on(subject, LISTED, rule("allowed-chains", {"chains": [1]}))

    assert verdict.decision == decision
    if subject.chain_id is None:
        assert reasons(verdict) == ["the message names no chain; send `chainId`, the chain that it is meant for"]


VOTERS = {"threshold": 1, "approvers": [{"userId": "00000000-0000-4000-8000-000000000001", "keys": ["1" * 64]}]}


def test_a_message_needs_votes_unless_it_is_listed() -> None:
    quorum = rule("approval-quorum", {**VOTERS, "above": "1000"})

    assert verdict_on(evm("hello"), LISTED, quorum, approving=True).decision == "queue"
    assert verdict_on(evm(sign_in()), LISTED, quorum).decision == "sign"
    assert verdict_on(evm(sign_in()), LISTED, rule("approval-quorum", VOTERS)).decision == "queue"


@pytest.mark.parametrize(
    "config",
    [
        {"siweDomains": ["https://example.com"]},
        {"siweDomains": ["example.com/login"]},
        {"siweDomains": ["*.example.com"]},
        {"siweDomains": ["user@example.com"]},
        {"siweDomains": ["exаmple.com"]},  # noqa: RUF001 - a Cyrillic letter
        {"siwsDomains": ["example.com."]},
        {"siwsDomains": [""]},
        {"siwsDomains": ["example.com\n"]},
        {"patterns": ["*"]},
        {"patterns": ["Sign in*"]},
        {"patterns": ["********"]},
        {"patterns": ["Example: **"]},
        {"patterns": ["Example:\r\n x"]},
        {"patterns": ["Example:\u202e x"]},
        {"siweDomains": ["a.example"] * 101},
        {"patterns": ["Example: " + "x" * 1_100]},
        {"domains": ["example.com"]},
    ],
)
def test_a_list_that_would_match_nothing_or_anything_is_refused(config: dict[str, list[str]]) -> None:
    with pytest.raises(InvalidPolicy):
        rules(rule("message-allowlist", config))


def test_an_agent_may_shorten_its_list_and_not_extend_it() -> None:
    less, more = ({"siweDomains": []}, {**LISTED.config, "patterns": [*LISTED.config["patterns"], "Example: pay *"]})
    old = rules(LISTED)

    assert widening(old, rules(rule("message-allowlist", {**LISTED.config, **less}))) is None
    assert widening(old, rules(rule("message-allowlist", more))) is not None
    assert widening(old, rules()) is not None
    assert widening(rules(LIMIT), rules(LIMIT, LISTED)) is not None
    assert widening(rules(LIMIT), rules(LIMIT, rule("message-allowlist", {}))) is None


LETTERS = st.text("ab \n", max_size=6)


@given(st.lists(LETTERS, min_size=1, max_size=4), LETTERS | st.none())
def test_a_star_stands_for_anything_within_its_line(pieces: list[str], filling: str | None) -> None:
    """A text made of a pattern fits it; one with a line end in place of a star does not."""
    pattern = "Example " + "*".join(pieces)
    text = pattern if filling is None else pattern.replace("*", filling)
    if "**" in pattern:
        return

    fits = verdict_on(evm(text), rule("message-allowlist", {"patterns": [pattern]})).decision == "sign"

    assert fits or (filling is not None and "\n" in filling)
    if filling is not None and "\n" in filling and "*" in pattern:
        assert text.count("\n") != pattern.count("\n")
        assert not fits


@pytest.mark.parametrize(("expires", "evades"), [(timedelta(hours=1), False), (timedelta(hours=-1), True)])
def test_a_listed_sign_in_evades_no_rule_that_a_signer_names_while_it_lasts(expires, evades):
    subject = evm(sign_in(issued=timedelta(), expires=expires))

    found = judge_evaded(rules(LISTED, LIMIT), subject, facts(uncovered="refuse"))

    assert [outcome for _, outcome in found] == ["refuse"] * evades
