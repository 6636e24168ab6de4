"""Bodies that a receiver is sent: the same fields and the same bytes each time."""

import msgspec

from custody.webhooks.envelope import envelope

SIGNED = {
    "id": "6d1f1a5c-5f57-4b57-9c5e-0a7c1c9c3a11",
    "event": "tx.signed",
    "tenant": "acme",
    "agent": "payer",
    "timestamp": "2026-03-01T12:00:00.000Z",
}


def test_an_envelope_has_these_fields_in_this_order_and_its_data_as_it_was_stored():
    sent = envelope(**SIGNED, data='{"value":"1","to":null}')

    assert sent == (
        b'{"id":"6d1f1a5c-5f57-4b57-9c5e-0a7c1c9c3a11","event":"tx.signed","tenantId":"acme","agentId":"payer",'
        b'"timestamp":"2026-03-01T12:00:00.000Z","data":{"value":"1","to":null}}'
    )
    assert sent == envelope(**SIGNED, data='{"value":"1","to":null}')


def test_an_event_of_no_agent_says_so():
    assert msgspec.json.decode(envelope(**{**SIGNED, "agent": None}, data="{}"))["agentId"] is None
