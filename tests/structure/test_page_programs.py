"""Every program on a page of docs/ is run by a test as it stands there, or its page says why none can run it."""

from pathlib import Path

from tests.fixtures.pages import programs_of

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").glob("*.md")))]
# Where a page's programs are run. Each of these tests counts them, so that a new one is run as well.
RUN = {
    "README.md": "tests/paths/test_walk_through.py",
    "docs/api.md": "tests/paths/test_page_commands.py",
    "docs/bitcoin.md": "tests/routes/vault/test_bitcoin_page.py, tests/judges/test_bitcoin_watching.py",
    "docs/call-openai.md": "tests/proxy/test_guide.py",
    "docs/commands.md": "tests/tenant_command/test_commands_page.py",
    "docs/external-check.md": "tests/routes/vault/test_external_checks.py",
    "docs/wallets.md": "tests/routes/vault/test_imports_page.py",
    "docs/orders.md": "tests/paths/test_page_commands.py",
    "docs/mcp.md": "tests/tools/test_guide.py",
    "docs/operate.md": "tests/paths/test_page_commands.py",
    "docs/pay-an-invoice.md": "tests/paths/test_guides.py",
    "docs/pay-for-an-api-call.md": "tests/paths/test_paying_guide.py",
    "docs/set-up-a-company.md": "tests/paths/test_guides.py",
    "docs/tenant-file.md": "tests/paths/test_tenant_file_guide.py",
    "docs/web-applications.md": "tests/routes/auth/test_sign_on_page.py",
    "docs/sign-on.md": "tests/routes/auth/test_sign_on_page.py",
    "docs/signers.md": "tests/routes/vault/test_signers_page.py",
    "docs/tell-slack.md": "tests/paths/test_guides.py",
    "docs/users-with-wallets.md": "tests/browser/test_shop.py",
    "docs/webhooks.md": "tests/routes/webhooks/test_guide.py",
}
# How many programs of a page no test runs, and why.
NOT_RUN = {
    "docs/contract.md": (2, "they fetch generators, which tests/generators runs, the outcomes in its job.ts"),
    "docs/console.md": (2, "they open a screen; tests/console presses its keys"),
    "docs/operate.md": (2, "one builds images, one makes users; tests/setup holds both (test_compose, test_uid_base)"),
    "docs/recipes.md": (5, "parts of files, for who changes them"),
    "docs/recovery.md": (1, "it runs in containers; tests/setup/test_compose.py compares it with them"),
    "docs/sign-on.md": (2, "they are for a Windows server"),
    "docs/web-applications.md": (2, "the two of a page in a browser"),
}

# How many are run of a page that has others too.
RUN_BESIDE = {"docs/operate.md": 1, "docs/sign-on.md": 6, "docs/web-applications.md": 1}


def test_every_program_has_a_test_or_a_reason() -> None:
    with_programs = {page for page in PAGES if programs_of(page)}

    assert with_programs == RUN.keys() | NOT_RUN.keys()


def test_every_test_reads_the_page_whose_programs_it_runs() -> None:
    pairs = [(page, ROOT / file) for page, files in RUN.items() for file in files.split(", ")]

    assert [page for page, test in pairs if Path(page).stem not in test.read_text()] == []


def test_programs_that_no_test_runs_are_counted() -> None:
    spoken = {page: len(programs_of(page)) for page in NOT_RUN}

    assert {*RUN_BESIDE} == RUN.keys() & NOT_RUN.keys()
    assert spoken == {page: count + RUN_BESIDE.get(page, 0) for page, (count, _) in NOT_RUN.items()}
