"""The contract as a page, in a real browser: every operation is there, found, linked; nothing is from elsewhere."""

import pytest
from playwright.sync_api import expect

from tests.fixtures.callers import Client
from tests.fixtures.server import Service
from tests.outside.browser import browser_page

pytestmark = pytest.mark.long


def test_the_page_shows_every_operation_and_finds_one(service: Service, as_nobody: Client) -> None:
    contract = as_nobody.get("/openapi.json").json()
    events = as_nobody.get("/webhooks.json").json()["webhooks"]
    operations = [one for item in contract["paths"].values() for one in item.values() if "responses" in one]

    with browser_page(service.url) as visit:
        asked: list[str] = []
        visit.page.on("request", lambda request: asked.append(request.url))
        visit.page.goto("/docs")
        expect(visit.page.locator("main")).not_to_have_attribute("aria-busy", "true")

        assert visit.page.locator("article").count() == len(operations) + len(events)
        assert all(url.startswith(service.url) for url in asked)
        visit.page.keyboard.press("/")
        visit.page.keyboard.type("sign-typed-data")
        shown = visit.page.locator("article:visible")
        found = shown.filter(has=visit.page.get_by_text("/vault/{agentId}/sign-typed-data", exact=True))
        expect(found).to_have_count(1)
        assert shown.count() < 12
        # The body's fields are drawn with their types, an answer's when it is opened.
        expect(found.locator("dt code", has_text="primaryType").first).to_be_visible()
        found.locator("summary", has_text="202").click()
        expect(found.get_by_text("approvalId").first).to_be_visible()
        assert visit.faults == []


def test_a_link_leads_to_its_operation(service: Service, as_nobody: Client) -> None:
    name = as_nobody.get("/openapi.json").json()["paths"]["/agents"]["post"]["operationId"]

    with browser_page(service.url) as visit:
        visit.page.goto(f"/docs#{name}")

        expect(visit.page.locator(f"article#{name}")).to_be_in_viewport()


def test_a_field_says_what_it_means_also_where_its_type_is_shared(service: Service, as_nobody: Client) -> None:
    name = as_nobody.get("/openapi.json").json()["paths"]["/agents"]["post"]["operationId"]

    with browser_page(service.url) as visit:
        visit.page.goto(f"/docs#{name}")
        operation = visit.page.locator(f"article#{name}")
        operation.locator("summary", has_text="201").click()

        expect(operation.get_by_text("Where it is paid.").first).to_be_visible()


def test_a_contract_that_does_not_load_is_said(service: Service) -> None:
    with browser_page(service.url) as visit:
        visit.page.route("**/openapi.json", lambda route: route.abort())
        visit.page.goto("/docs")

        expect(visit.page.get_by_role("alert")).to_contain_text("did not load")
