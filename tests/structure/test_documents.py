"""The documents say what is there: records, links, file names, settings and grants are held against the tree."""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from custody.database.texts import read
from tests.fixtures.each import each

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
RECORDS = sorted((DOCS / "decisions").glob("*.md"))
CODE = ("custody", "ops", "signer", "identity", "api", "scheduler", "proxy_addon", "console", "tenant_command", "words")
# Folders that pages name files of.
FOLDERS = "|".join((*CODE, "tests", "docs", "scripts", "bench", "sdk"))
# A page of more lines says at its top what is in it, and no section has more.
SHORT = 150
HEADING = re.compile(r"^(#+) (.+)\n((?:(?!#+ ).*\n)*)", re.MULTILINE)
PARTS = ("Status", "Context", "Decision", "Consequences", "Alternatives", "Enforced by")


def text(page: str) -> str:
    return (DOCS / page).read_text()


@cache
def sources() -> dict[Path, str]:
    """Everything we wrote that may cite a document."""
    found: list[Path] = []
    for folder in (*CODE, "tests"):
        for place, below, files in (ROOT / folder).walk():
            # Not even looked into: what others wrote has ten times as many files.
            below[:] = [name for name in below if name not in {"node_modules", "__pycache__"}]
            found += [place / file for file in files if file.endswith((".py", ".sql"))]
    return {file: file.read_text() for file in [*found, ROOT / "pyproject.toml", *PAGES]}


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the tables below a heading."""
    section = re.split(r"^## ", text(page).split(f"## {heading}\n", 1)[1], flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def find_cited(pattern: str) -> dict[str, Path]:
    """Find what is cited, each with one place."""
    return {number: file for file, content in sources().items() for number in re.findall(pattern, content)}


@each("record", RECORDS, ids=lambda record: record.stem)
def test_a_record_has_its_parts_in_order(record: Path) -> None:
    content = record.read_text()
    assert re.match(rf"# {record.stem[:4]} \S", content)
    assert re.findall(r"^\*\*([A-Z][\w ]+)\.\*\*", content, re.MULTILINE) == list(PARTS)
    assert len(content.splitlines()) <= 30


def test_each_record_has_a_number_of_its_own() -> None:
    # Gaps may be: a number belongs to the branch that took it, whichever of two is merged first.
    numbers = [record.stem[:4] for record in RECORDS]
    assert sorted(set(numbers)) == numbers


def test_every_cited_record_exists() -> None:
    records = find_cited(r"\bDecision (\d{4})\b")
    assert {number: file for number, file in records.items() if number not in {r.stem[:4] for r in RECORDS}} == {}


def test_every_cited_promise_is_explained() -> None:
    promises = {cells[0] for cells in rows("threats.md", "Promises")}
    assert {
        number: file for number, file in find_cited(r"\b[Pp]romise (P\d+)\b").items() if number not in promises
    } == {}


def test_nothing_cites_a_paper_that_is_not_in_the_repository() -> None:
    """A reader has the records and pages in docs/, and no other specification or design."""
    elsewhere = re.compile(r"\b(?:[Ss]pec|[Ss]pecification|[Dd]ecisions|[Dd]esign) \d")
    assert [file for file, content in sources().items() if file.suffix != ".sql" and elsewhere.search(content)] == []


@each("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_and_files_on_a_page_resolve(page: Path) -> None:
    content = page.read_text()
    linked = [page.parent / target for target in re.findall(r"\]\((?!https://)([^)#]+)(?:#[^)]*)?\)", content)]
    assert [target for target in linked if not target.exists()] == []
    named = re.findall(rf"`((?:{FOLDERS})/[\w./]*(?:/|\.(?:py|sql|json|md)))`", content)
    assert [name for name in named if not (ROOT / name).exists()] == []


@each("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_file_without_a_folder_is_in_the_one_that_the_page_speaks_of(page: Path) -> None:
    assert list(find_lost(page.read_text())) == []


def test_the_index_leads_to_every_page() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)[^)]*\)", text("README.md")))
    assert {page.name for page in DOCS.glob("*.md")} - linked == {"README.md"}


def test_a_file_of_another_folder_is_noticed() -> None:
    assert list(find_lost("`proxy_addon/` judges by `addresses.py`.")) == ["addresses.py"]
    assert list(find_lost("| `signer/` | `table.py` |\n| `identity/` | `decide.py` |")) == ["decide.py"]
    assert (
        list(find_lost("Files without a folder are of `proxy_addon/`.\n\n`signer/reveal.py`, after `mask.py`.")) == []
    )
    section = "## A\nFiles without a folder are of\n`{}`.\n\nSee `{}`.\n"
    right = section.format("proxy_addon/", "mask.py") + section.format("signer/", "decide.py")
    wrong = section.format("signer/", "mask.py") + section.format("proxy_addon/", "decide.py")
    assert (list(find_lost(right)), list(find_lost(wrong))) == ([], ["mask.py", "decide.py"])


def find_lost(content: str) -> Iterator[str]:
    """Names of files that are in no folder of their paragraph, row or item, nor of the one before that has some."""
    for section in re.split(r"^## ", content, flags=re.MULTILINE):
        seen = of_page = said_of(section) or said_of(content)
        for block in re.split(r"\n\n|\n(?=\d+\. |- |\|)", section):
            own = spoken_of(block)
            where = (own or seen or spoken_of(content)) | of_page
            for name in re.findall(r"`(\w+\.(?:py|sql))`", block):
                if not any((folder / name).exists() or any(folder.glob(f"*/{name}")) for folder in where):
                    yield name
            seen = own or seen


def said_of(content: str) -> set[Path]:
    return {ROOT / folder for folder in re.findall(r"without a folder are of\s+`([\w/]+)`", content)}


def spoken_of(content: str) -> set[Path]:
    named = [ROOT / name for name in re.findall(rf"`((?:{FOLDERS})/[\w./]*)", content)]
    return {path if path.is_dir() else path.parent for path in named}


def test_the_signers_own_page_names_files_that_are_there() -> None:
    folder = ROOT / "signer"
    named = re.findall(r"`([\w./]+(?:/|\.(?:py|toml)))`", (folder / "README.md").read_text())
    assert [name for name in named if not (folder / name).exists() and not (ROOT / name).exists()] == []


def test_pages_list_the_kinds_of_orders_that_the_contract_knows() -> None:
    schemas = json.loads((ROOT / "openapi.json").read_text())["components"]["schemas"]
    of_events = next(cells[1] for cells in rows("webhooks.md", "Events") if cells[0] == "`kind`")
    assert sorted(re.findall(r"`(\w+)`", of_events)) == schemas["Transaction"]["properties"]["kind"]["enum"]

    simulated = text("receipts.md").partition('`{"kind": ')[2].partition(', "request"')[0]
    assert set(re.findall(r'"(\w+)"', simulated)) == set(schemas["Question"]["discriminator"]["mapping"])


def test_every_use_case_names_the_files_it_goes_through() -> None:
    stories = re.split(r"^## ", text("follow-a-request.md"), flags=re.MULTILINE)[1:]
    assert len(stories) >= 16
    for story in stories:
        files = re.findall(r"`((?:custody|signer|identity|api|scheduler|proxy_addon)/[\w./]+\.(?:py|sql))`", story)
        assert files, story.splitlines()[0]


def test_every_function_named_in_a_use_case_exists() -> None:
    sql = "".join(content for file, content in sources().items() if file.suffix == ".sql")
    steps = text("follow-a-request.md").partition("## The sign path, file by file")[0]
    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", steps)) - {"tx_id"}
    assert {name for name in named if f"FUNCTION {name}(" not in sql} == set()


def test_the_sign_path_is_twelve_files_whose_functions_exist() -> None:
    path = text("follow-a-request.md").partition("## The sign path, file by file")[2]
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", path, flags=re.MULTILINE)
    files = [file for file, _ in rows]

    assert 10 <= len(files) == len(set(files)) <= 12
    for file, functions in rows:
        content = (ROOT / file).read_text()
        defined = set(re.findall(r"(?:\bdef|FUNCTION) (\w+)", content))
        assert set(re.findall(r"`(\w+)`", functions)) <= defined, file


@cache
def sections(page: Path) -> tuple[tuple[int, str, str], ...]:
    """The sections of a page: level, heading and text, without the code of a block."""
    prose = re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return tuple((len(marks), title, text) for marks, title, text in HEADING.findall(f"{prose}\n"))


def anchor_of(heading: str) -> str:
    """The address of a section, as forges make it of its heading."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")


@each("page", [*PAGES, *ROOT.glob("*.md")], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_to_a_section_finds_its_heading(page: Path) -> None:
    linked = re.findall(r"\]\(((?!https?:)[^)#]*\.md|)#([^)]+)\)", page.read_text())
    assert [(target, anchor) for target, anchor in linked if anchor not in anchors(page.parent / target, page)] == []


def anchors(target: Path, page: Path) -> set[str]:
    return {anchor_of(title) for _, title, _ in sections(target if target.is_file() else page)}


@each("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_long_page_begins_with_links_to_its_sections(page: Path) -> None:
    """One need is one page, and its parts are seen when it is opened; Decision 0135."""
    (_, _, beginning), *_ = sections(page)
    own = [anchor_of(title) for level, title, _ in sections(page) if level == 2]
    if page.name != "errors.md" and len(page.read_text().splitlines()) > SHORT:
        assert own == re.findall(r"\]\(#([^)]+)\)", beginning.partition("On this page:")[2])


def test_no_section_is_longer_than_a_page_was() -> None:
    long = {
        page.name
        for page in PAGES
        for part in re.split(r"^## ", page.read_text(), flags=re.MULTILINE)
        if len(part.splitlines()) > SHORT
    }
    # One table by the alphabet.
    assert long <= {"errors.md"}


def test_an_anchor_is_made_as_forges_make_it() -> None:
    assert anchor_of("Sign: `POST /vault/{agentId}/sign`") == "sign-post-vaultagentidsign"
    assert anchor_of("Whose answer is it?") == "whose-answer-is-it"


def names_in(file: Path) -> Iterator[str]:
    """The texts of a module, if any of them can name a variable."""
    if "SERVICE_" in (source := file.read_text()):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_the_page_lists_exactly_the_variables_that_code_knows() -> None:
    name = re.compile(r"(SERVICE_[A-Z][A-Z_]*?)_?(?:\d+|<\w+>)?\Z")
    files = [file for folder in CODE for file in (ROOT / folder).rglob("*.py")]
    known = {match[1] for file in files for string in names_in(file) if (match := name.match(string))}
    listed = {match[1] for span in re.findall(r"`([^`]+)`", text("environment.md")) if (match := name.match(span))}
    assert listed - known == set(), "listed, but no code knows it"
    assert known - listed == set(), "code knows it, but it is not listed"


def migrations() -> str:
    return "\n".join(file.read_text() for file in sorted((ROOT / "custody/migrations").glob("*.sql")))


# What a role may do with a table, as the page says it.
SAID = {
    frozenset({"SELECT"}): "R",
    frozenset({"SELECT", "INSERT"}): "R, appends",
    frozenset({"SELECT", "DELETE"}): "R, deletes",
    frozenset({"SELECT", "INSERT", "UPDATE"}): "W, no deleting",
    frozenset({"SELECT", "INSERT", "UPDATE", "DELETE"}): "W",
}


def grants_of(role: str) -> dict[str, str]:
    """Read from the migrations what a role may do with which table."""
    found: dict[str, set[str]] = {}
    columns: dict[str, str] = {}
    changed: dict[str, list[str]] = {}
    for rights, tables, roles in re.findall(
        r"GRANT ((?:SELECT|INSERT|UPDATE|DELETE)[^;]*?)\sON\s([^;]*?)\sTO\s([^;]*?);", migrations()
    ):
        if role in re.split(r"[\s,]+", roles):
            for table in re.split(r"[\s,]+", tables.strip()):
                if rights.startswith("UPDATE ("):
                    changed.setdefault(table, []).extend(re.findall(r"\w+", rights.partition("(")[2]))
                elif "(" in rights:
                    columns[table] = "some columns"
                else:
                    found.setdefault(table, set()).update(re.findall(r"[A-Z]+", rights))
    said = columns | {table: SAID[frozenset(rights)] for table, rights in found.items()}
    return said | {
        table: f"{said[table]}, and {', '.join(f'`{column}`' for column in names)}" for table, names in changed.items()
    }


def tables_of_the_page() -> list[list[str]]:
    """The rows of docs/database.md that say a table's grants."""
    return [cells for cells in rows("database.md", "Tables") if cells[0].startswith("`")]


@each(("place", "process"), [(1, "api"), (2, "signer"), (3, "identity"), (4, "scheduler")])
def test_the_page_states_the_grants_of_the_migrations(place: int, process: str) -> None:
    listed = {cells[0].strip("`"): cells[place] for cells in tables_of_the_page()}
    assert len(listed) == len(tables_of_the_page())
    assert set(listed) == set(re.findall(r"CREATE TABLE (\w+)", migrations()))
    assert {table: said for table, said in listed.items() if said} == grants_of(f"custody_{process}")


def test_the_page_lists_every_function_that_runs_above_row_level_security() -> None:
    listed = {cells[0].strip("`") for cells in rows("database.md", "Functions that look across tenants")}
    assert listed - {"Function"} == {text.name for text in read() if text.runs_as == "definer"}


def test_the_map_shows_every_folder() -> None:
    shown = " ".join(cells[0] for cells in rows("map.md", "The tree"))
    folders = [
        file.parent.relative_to(ROOT) for area in ("custody", "api") for file in (ROOT / area).glob("*/__init__.py")
    ]
    assert [folder for folder in folders if f"`{folder}/`" not in shown] == []
