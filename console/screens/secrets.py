"""Secrets, credential and payment routes: what is known of them, which is never a value."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from console.dialogs.explain import Explain, Request
from console.dialogs.shown import Shown
from console.screens.page import Page
from console.widgets.listing import Column, Listing
from console.widgets.plain_text import PlainText
from console.wire.api_client import Page as Listed
from console.wire.shapes_secrets import (
    CredentialRoute,
    Explanation,
    PaymentRoute,
    Secret,
    expiry,
    explanation_in_lines,
    injection,
    most_per_call,
    payees,
    target,
)
from words.texts.fields import Field
from words.texts.moments import ago, clock, moment
from words.texts.plain import clip

NEVER_SHOWN = "Values are sealed and cannot be displayed. Only the proxy puts them into requests."


class Secrets(Page):
    """Secrets above, routes below, those that pay last, if there are any; tab moves between them."""

    PLACE = "secrets"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "explain", "Explain a request"),
        Binding("r", "reload", "Reload"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[str, str] = {}
        self._request = Request()

    def body(self) -> ComposeResult:
        yield PlainText(NEVER_SHOWN, classes="caption")
        yield Listing[Secret](
            [
                Column("Secret", lambda one: one.name, 16, 2),
                Column("Description", lambda one: one.description or "", 12, 3),
                Column("Version", lambda one: str(one.version), 7, right=True),
                Column("Expires in", lambda one: expiry(one, self.app.now()), 10, right=True),
                Column("Rotated", lambda one: self._ago(one.rotated_at), 7, right=True),
            ],
            lambda one: one.id,
            empty="No secrets.",
            id="secrets",
        )
        yield PlainText("Credential routes", id="routes-caption", classes="caption")
        yield Listing[CredentialRoute](
            [
                Column("Request", target, 20, 3),
                Column("Inserted text", injection, 16, 3),
                Column("Secret", self._secret_of, 10, 1),
                Column("Priority", lambda one: f"{one.priority:,}", 8, right=True),
                Column("State", lambda one: "enabled" if one.enabled else ("disabled", "warn"), 8),
            ],
            lambda one: one.id,
            empty="No credential routes: the proxy forwards nothing.",
            id="routes",
        )
        yield PlainText("", id="payment-routes-caption", classes="caption")
        yield Listing[PaymentRoute](
            [
                Column("Paid request", target, 20, 3),
                Column("One call at most", lambda one: "; ".join(most_per_call(one)), 16, 3),
                Column("Pays to", payees, 10, 2),
                Column("Priority", lambda one: f"{one.priority:,}", 8, right=True),
                Column("State", lambda one: "enabled" if one.enabled else ("disabled", "warn"), 8),
            ],
            lambda one: one.id,
            empty="No payment routes: the proxy pays for nothing.",
            id="payment-routes",
        )

    async def load(self) -> None:
        secrets = await self.app.client.get_page("/secrets", Secret)
        routes = await self.app.client.get_page("/secrets/routes", CredentialRoute)
        self._names = {one.id: one.name for one in secrets.items}
        self._secrets.show(secrets.items)
        # In the order in which the proxy tries them: the highest priority, then the oldest, which comes last.
        self._routes.show(sorted(routes.items, key=lambda one: one.priority)[::-1])
        self.query_one("#routes-caption", PlainText).update(f"Credential routes, in evaluation order{_most(routes)}")
        paying = await self.app.client.get_page("/payment-routes", PaymentRoute)
        self._payment_routes.show(sorted(paying.items, key=lambda one: one.priority)[::-1])
        caption = self.query_one("#payment-routes-caption", PlainText)
        caption.update(f"Payment routes, in evaluation order{_most(paying)}")
        caption.display = self._payment_routes.display = bool(paying.items)

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        if isinstance(event.row, Secret):
            self.app.push_screen(Shown("Secret", self._secret_text(event.row)))
        elif isinstance(event.row, PaymentRoute):
            self.app.push_screen(Shown("Payment route", _payment_route_text(event.row)))
        else:
            self.app.push_screen(Shown("Credential route", self._route_text(event.row)))

    def action_explain(self) -> None:
        """Ask; what was typed the last time stands there again."""
        self.app.push_screen(Explain(self._request), self._show_explanation)

    def _show_explanation(self, answer: tuple[Request, Explanation] | None) -> None:
        if answer is None:
            return
        self._request, found = answer
        asked = f"{self._request.method} {self._request.url}\nby agent {self._request.agent}\n\n"
        routes = {one.id: one for one in self._routes.rows}
        self.app.push_screen(Shown("What the proxy would do", asked + explanation_in_lines(found, routes, self._names)))

    def _secret_text(self, secret: Secret) -> list[Field]:
        shown = expiry(secret, self.app.now())
        return [
            ("Name", secret.name),
            ("Description", clip(secret.description or "-", 1_000)),
            ("Version", str(secret.version)),
            ("Expires", clock(moment(secret.expires_at))),
            ("Expires in", shown if isinstance(shown, str) else shown[0]),
            ("Made", clock(moment(secret.created_at))),
            ("Rotated", clock(moment(secret.rotated_at))),
            ("Id", secret.id),
            ("Value", "sealed; never displayed"),
        ]

    def _route_text(self, route: CredentialRoute) -> list[Field]:
        return [
            ("Host", route.host_pattern),
            ("Path", route.path_pattern),
            ("Method", "any" if route.method == "*" else route.method),
            ("Put in", injection(route)),
            ("Secret", self._secret_of(route)),
            *(("Also put in", injection(one)) for one in route.also_inject),
            ("Agents", ", ".join(route.agents) or "all"),
            ("Priority", f"{route.priority:,}"),
            ("State", "enabled" if route.enabled else "disabled"),
            ("Made", clock(moment(route.created_at))),
            ("Id", route.id),
        ]

    def _secret_of(self, route: CredentialRoute) -> str:
        return "none" if route.secret_id is None else self._names.get(route.secret_id, "deleted, or not loaded")

    def _ago(self, text: str | None) -> str:
        return ago(moment(text), self.app.now())

    @property
    def _payment_routes(self) -> Listing[PaymentRoute]:
        return self.query_one("#payment-routes", Listing)

    @property
    def _secrets(self) -> Listing[Secret]:
        return self.query_one("#secrets", Listing)

    @property
    def _routes(self) -> Listing[CredentialRoute]:
        return self.query_one("#routes", Listing)


def _most(page: Listed[CredentialRoute] | Listed[PaymentRoute]) -> str:
    return "" if len(page.items) == page.total else f"; the newest {len(page.items):,} of {page.total:,}"


def _payment_route_text(route: PaymentRoute) -> list[Field]:
    return [
        ("Host", route.host_pattern),
        ("Path", route.path_pattern),
        ("Method", "any" if route.method == "*" else route.method),
        *(("One call at most", most) for most in most_per_call(route)),
        *(("Pays to", address) for address in route.pay_to),
        ("Others", "anybody" if route.allow_unknown_pay_to else "whom a rule of the agent names"),
        ("Schemes", ", ".join(route.schemes)),
        ("Agents", ", ".join(route.agents) or "all"),
        ("Priority", f"{route.priority:,}"),
        ("State", "enabled" if route.enabled else "disabled"),
        ("Made", clock(moment(route.created_at))),
        ("Id", route.id),
    ]
