"""Writes the vectors of docs/saml.md: `python -m tests.outside.saml_vectors`, once, because each run makes new keys.

Every answer was made for this by tests/outside/saml_answers.py; no identity provider ever sent one of them.
"""

import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.outside import saml_answers as saml

FOLDER = Path(__file__).parents[1] / "vectors" / "saml"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANSWER = saml.Answer(now=NOW)
RSA, P256 = saml.key("rsa"), saml.key("p256")
SAID = {
    "assertionId": "_assertion1",
    "nameId": "ann@example.com",
    "nameIdFormat": saml.EMAIL,
    "email": "ann@example.com",
    "groups": ["staff", "admins"],
    "notOnOrAfter": "2026-01-01T12:07:00+00:00",
    "sessionNotOnOrAfter": "2026-01-01T20:00:00+00:00",
    "authnInstant": "2026-01-01T11:59:55+00:00",
}


def good_answers() -> dict[str, tuple[bytes, dict[str, Any]]]:
    """Answers that must be read, and what they say."""
    indented = ANSWER.tree()
    saml.etree.indent(indented)
    persistent = ANSWER.but(name_id="p-1", name_id_format=saml.PERSISTENT, attributes={"mail": ["ann@example.com"]})
    return {
        "assertion-signed-rsa": (ANSWER.sign(RSA), SAID),
        "both-signed-p256": (ANSWER.sign(P256, "both"), SAID),
        "prefix-list": (saml.sign_tree(ANSWER.tree(), RSA, "both", "#default saml xs"), SAID),
        "indented": (saml.sign_tree(indented, RSA), SAID),
        "persistent": (
            persistent.sign(RSA),
            SAID | {"nameId": "p-1", "nameIdFormat": saml.PERSISTENT, "groups": []},
        ),
    }


def bad_answers() -> dict[str, tuple[bytes, dict[str, Any]]]:
    """Answers that must be refused, with the code and the check."""
    wrapped = saml.etree.fromstring(ANSWER.sign(RSA))
    evil = copy.deepcopy(saml.the(wrapped, "Assertion"))
    evil.remove(evil[1])
    evil.set("ID", "_forged")
    saml.the(evil, "NameID").text = "eve@example.com"
    saml.the(wrapped, "Assertion").addprevious(evil)
    genuine = ANSWER.sign(RSA)
    old = ANSWER.but(now=NOW - timedelta(minutes=11), lifetime=timedelta(hours=1))
    failed = ANSWER.but(status="urn:oasis:names:tc:SAML:2.0:status:Responder")
    other = ANSWER.but(sp_entity_id="https://other.example/metadata")
    cases: dict[str, tuple[bytes, str, str]] = {
        "comment-in-name-id": (genuine.replace(b"ann@", b"ann<!---->@"), "saml_xml", "xml"),
        "doctype": (b"<!DOCTYPE x>" + genuine, "saml_xml", "xml"),
        "status-responder": (failed.sign(RSA, "response"), "saml_idp_refused", "status"),
        "forged-assertion-before": (saml.to_bytes(wrapped), "saml_assertion_twice", "assertion"),
        "response-signed-only": (ANSWER.sign(RSA, "response"), "saml_assertion_unsigned", "signed"),
        "changed-after-signing": (genuine.replace(b"ann@", b"eve@"), "saml_digest_mismatch", "signature"),
        "by-another-key": (ANSWER.sign(saml.key("p256", "other")), "saml_signature_invalid", "signature"),
        "unsolicited": (ANSWER.but(request_id=None).sign(RSA), "saml_unsolicited", "request"),
        "eleven-minutes-old": (old.sign(RSA), "saml_too_old", "times"),
        "another-audience": (other.sign(RSA), "saml_audience", "audience"),
        "no-authn-statement": (
            ANSWER.but(authentication=False).sign(RSA),
            "saml_authn_statement_missing",
            "authentication",
        ),
    }
    return {name: (content, {"code": code, "check": check}) for name, (content, code, check) in cases.items()}


def main() -> None:
    """Write every answer, and the list of them."""
    listed: dict[str, Any] = {
        "expected": {
            "idpEntityId": ANSWER.idp_entity_id,
            "spEntityId": ANSWER.sp_entity_id,
            "acsUrl": ANSWER.acs_url,
            "requestId": ANSWER.request_id,
            "groupsAttribute": "groups",
            "now": NOW.isoformat(),
            "idpCertPems": [RSA.certificate, P256.certificate],
        },
        "accepted": {},
        "refused": {},
    }
    for kind, answers in (("accepted", good_answers()), ("refused", bad_answers())):
        for name, (content, outcome) in answers.items():
            (FOLDER / f"{name}.xml").write_bytes(content)
            listed[kind][name] = outcome
    (FOLDER / "vectors.json").write_text(json.dumps(listed, indent=2) + "\n")


if __name__ == "__main__":
    main()
