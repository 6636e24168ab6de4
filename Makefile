# Every target is one command; scripts/set-up prepares .venv first and is instant when nothing changed.
.DEFAULT_GOAL := help
.PHONY: help set-up run api signer identity scheduler proxy console mcp openers migrate demo doctor test test-fast test-long check fix snapshots openapi examples protocol contract sdk compose bench clients bench-compare bench-figures reliability flaky mutants attacks version release lock

custody := .venv/bin/custody
python := .venv/bin/python -P

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 22

set-up: ## prepare .venv from the lock
	@scripts/set-up

run: ## set up and run everything here, with the demo on the first start (Ctrl-C stops)
	@scripts/set-up --for-run && exec $(custody) up

api: set-up ## run only the HTTP process
	@exec $(custody) api

signer: set-up ## run only the process that holds the keys
	@exec $(custody) signer

identity: set-up ## run only the process that knows people
	@exec $(custody) identity

scheduler: set-up ## run only the periodic work
	@exec $(custody) scheduler

proxy: set-up ## run only the process that calls APIs for agents
	@exec $(custody) proxy

console: set-up ## open the approvals console (the approvals queue)
	@exec $(custody) console

mcp: ## prepare .venv-mcp for `custody mcp`, an agent's tools for a model (Python 3.13)
	@PROJECT_VENV=.venv-mcp PROJECT_LOCK=locks/mcp.lock scripts/set-up

openers: ## prepare .venv-openers: what opens a sealed key file by a cloud or an HSM, and its tests
	@PROJECT_VENV=.venv-openers PROJECT_LOCK=locks/openers.lock scripts/set-up

migrate: set-up ## bring the database up to date
	@exec $(custody) migrate

demo: set-up ## run a demo against the local service
	@exec $(custody) demo

doctor: set-up ## say what is wrong here and how to mend it
	@exec $(custody) doctor

test: set-up ## run every test
	@exec scripts/test

test-fast: set-up ## run the tests that need no process and no database
	@exec $(python) -m pytest tests/rules tests/structure

test-long: set-up ## the first start, kills, browsers, generated requests, backup, rotation: what CI runs after `make check`
	@exec scripts/test --long

check: set-up ## format, lint, types, import contracts, every test but the long ones
	@exec scripts/check

fix: set-up ## format, and mend what the linter can
	@$(python) -m ruff check --fix --quiet . ; exec $(python) -m ruff format .

snapshots: set-up ## redraw the console's pictures (look at them before you keep them)
	@exec $(python) -m pytest -q tests/console --snapshot-update

openapi: set-up ## write the committed contract, what clients are made from, and the page of error codes
	@$(custody) openapi > openapi.json.new && mv openapi.json.new openapi.json
	@scripts/sdk
	@exec $(python) -m tests.structure.errors_page

examples: set-up ## write the examples of the contract from what tests send and get; then `make openapi`: make examples ONLY=tests/routes/agents
	@exec scripts/keep-examples $(ONLY)

protocol: set-up ## write the tables of the workers' messages from their declarations
	@exec $(python) -m tests.structure.protocol_page

contract: set-up ## write all that follows from declarations: the contract, its examples, pages of errors and messages: make contract ONLY=tests/routes/agents
	@$(MAKE) --no-print-directory openapi protocol
	@scripts/keep-examples $(ONLY)
	@exec $(MAKE) --no-print-directory openapi

sdk: set-up ## write what clients of agents are made from, and the types of these clients
	@exec scripts/sdk

compose: set-up ## write into compose.yaml which settings reach which container
	@exec $(python) -m tests.structure.compose_settings

bench: set-up ## measure side by side with the bare database
	@exec $(python) -m bench

clients: set-up ## run each client of docs/proxy.md through the proxy, print what came of it, and write that table
	@TEST_CLIENTS=all $(python) -m pytest -q tests/clients
	@exec $(python) -m tests.clients.page

bench-compare: set-up ## measure this tree and another revision side by side: make bench-compare REV=...
	@exec $(python) -m bench.compare $(REV)

bench-figures: set-up ## measure, keep the line of this revision, and write docs/operate.md's tables
	@exec $(python) -m bench.figures

reliability: set-up ## kill, stop, tamper and draw for a long time, and look for what was lost
	@TEST_THOROUGHNESS=25 $(python) -m pytest -q tests/execution tests/rules/policies tests/rules/identity/test_quorums.py tests/rules/identity/test_strict_xml.py tests/rules/identity/test_saml_mutations.py tests/table/test_fuzz.py tests/promises/test_intent_races.py
	@$(python) -m bench.reliability
	@exec $(python) -m bench.reliability.attacks

flaky: set-up ## run every test ten times in random order beside busy loops, and name what failed even once (a night)
	@exec scripts/flaky

mutants: set-up ## change the code that judges, spot by spot, and name what no pure test notices: make mutants ONLY=custody/policies
	@exec env PYTHONHASHSEED=0 $(python) -m tests.mutants $(ONLY)

attacks: set-up ## slow, fill and blind the service in two dozen ways, and show what an innocent tenant notices
	@exec $(python) -m bench.reliability.attacks

version: set-up ## move the version of the service, its contract and its clients: make version TO=1.2.3
	@$(python) -m tests.structure.versions $(TO)
	@exec $(MAKE) --no-print-directory openapi

release: ## build wheels, packages, lists of what is in them and checksums into dist/, twice, from what is committed
	@scripts/release --twice

lock: ## write requirements.lock and locks/*.lock anew (needs uv)
	@exec scripts/lock
