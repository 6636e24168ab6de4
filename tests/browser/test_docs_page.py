"""The contract as a page, in a real browser: every operation is there, found, linked; nothing is from elsewhere."""

import contextlib
import io
import json
import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.held_contract import Place, of_body
from tests.fixtures.listed_codes import contract
from tests.fixtures.server import Service
from tests.outside.browser import browser_page

pytestmark = pytest.mark.long
# What the page shows as samples, of every operation.
SAMPLES = """operations().filter((one) => one.method !== "event").map((one) => {
  const request = requestOf(one.method, one.path, one.operation, one.shared, followed);
  const url = contract.servers[0].url;
  return { ...request, id: one.id, python: pythonOf(request, url), curl: curlOf(request, url) };
})"""


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


def test_an_operation_is_drawn_when_it_is_opened(service: Service) -> None:
    with browser_page(service.url) as visit:
        page = visit.page
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto("/docs")
        expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")
        article = page.locator("article#createAgent")

        assert page.locator("article dl").count() == 0
        assert page.evaluate("document.querySelectorAll('*').length") < 15 * page.locator("article").count()
        article.locator("h3").click()
        expect(article.locator("dl").first).to_be_visible()
        expect(page).to_have_url(f"{service.url}/docs#createAgent")
        # What a search had hidden is shown when a link leads there, and the search does not cover it.
        page.get_by_role("searchbox").fill("sign-typed-data")
        expect(page.get_by_role("status")).to_have_text(re.compile("^[1-9] found$"))
        expect(article).to_be_hidden()
        page.evaluate("location.hash = 'listIntents'")
        line = page.locator("article#listIntents h3")
        expect(line).to_be_in_viewport()
        expect(page.locator("article#listIntents dl").first).to_be_visible()
        covered = page.evaluate("document.querySelector('header label').getBoundingClientRect().bottom")
        assert page.evaluate("document.querySelector('#listIntents h3').getBoundingClientRect().top") >= covered
        assert visit.faults == []


def test_the_page_says_without_javascript_where_the_contract_is(service: Service) -> None:
    with browser_page(service.url) as visit:
        browser = visit.page.context.browser
        assert browser is not None
        with browser.new_page(base_url=service.url, java_script_enabled=False) as plain:
            plain.goto("/docs")

            expect(plain.locator("main").get_by_role("link", name="/openapi.json")).to_be_visible()
            expect(plain.get_by_text("is loading")).to_have_count(0)
            expect(plain.get_by_text("Find")).to_be_hidden()


def test_a_field_says_what_it_means_also_where_its_type_is_shared(service: Service, as_nobody: Client) -> None:
    name = as_nobody.get("/openapi.json").json()["paths"]["/agents"]["post"]["operationId"]

    with browser_page(service.url) as visit:
        visit.page.goto(f"/docs#{name}")
        operation = visit.page.locator(f"article#{name}")
        operation.locator("summary", has_text="201").click()

        expect(operation.get_by_text("Address for payments.").first).to_be_visible()


def test_a_contract_that_does_not_load_is_said(service: Service) -> None:
    with browser_page(service.url) as visit:
        visit.page.route("**/openapi.json", lambda route: route.abort())
        visit.page.goto("/docs")

        expect(visit.page.get_by_role("alert")).to_contain_text("did not load")


def test_the_contents_list_methods_and_paths_and_a_second_name_stands_beside_its_first(service: Service) -> None:
    with browser_page(service.url) as visit:
        visit.page.goto("/docs#createDigitalAssetAccount")
        expect(visit.page.locator("main")).not_to_have_attribute("aria-busy", "true")
        link = visit.page.locator("nav a[href='#createDigitalAssetAccount']")

        expect(link).to_have_text("POST/accounts")
        body = visit.page.locator("article#createDigitalAssetAccount dl").nth(1)
        expect(body.locator("dt", has_text="walletIds").first).to_be_visible()
        expect(body.locator("dt", has_text="wallet_ids")).to_have_count(0)
        expect(body.get_by_text("Also wallet_ids.", exact=False).first).to_be_visible()


def test_each_operation_has_samples_whose_bodies_it_takes(service: Service, tenant: Tenant) -> None:
    with browser_page(service.url) as visit:
        visit.page.goto("/docs#createAgent")
        expect(visit.page.locator("main")).not_to_have_attribute("aria-busy", "true")
        visit.page.locator("article#createAgent .samples summary", has_text="curl").click()
        sample = visit.page.locator("article#createAgent .samples pre")
        expect(sample).to_contain_text('-H "X-Service-Key: $key"')
        samples = {one["id"]: one for one in visit.page.evaluate(SAMPLES)}
        assert visit.faults == []

    for one in samples.values():
        compile(one["python"], one["id"], "exec")
        operation = contract()["paths"][one["path"]][one["method"]]
        assert (one.get("body") is not None) == ("requestBody" in operation), one["id"]
        if one.get("media") == "application/json":
            request = httpx.Request(one["method"], service.url, json=one["body"])
            assert of_body(request, Place(one["path"], one["method"], operation, {})) is None, one["id"]
    # As they stand, one after the other.
    made = ran(samples["createAgent"]["python"], key=tenant.key)
    assert made["id"] == "payer-1"
    token = ran(samples["createAgentToken"]["python"], key=tenant.key)["token"]
    assert ran(samples["signEvmTransaction"]["python"], token=token)["txHash"].startswith("0x")


def ran(program: str, **variables: str) -> dict[str, str]:
    """The data of the answer that a sample prints."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        made: dict[str, Any] = dict(variables)
        exec(compile(program, "sample", "exec"), made)
    made["api"].close()
    status, _, answer = said.getvalue().partition(" ")
    assert status in ("200", "201"), said.getvalue()
    data: dict[str, str] = json.loads(answer)["data"]
    return data
