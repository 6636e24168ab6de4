"""The table of chains as an operator sets it: built in, from SERVICE_CHAINS_FILE, and SERVICE_RPC_URL_<id>."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from custody.chains import families
from custody.chains.bitcoin.bounds import Bounds
from custody.chains.bitcoin.networks import NETWORKS
from custody.chains.family import Chain
from custody.chains.table import ChainTable


def load(environment: Mapping[str, str]) -> ChainTable:
    """Build the table from the environment; a bad file or id raises ValueError with the variable's name."""
    chains = {chain.id: chain for family in families.wallets().values() for chain in family.chains}
    bounds = {name: Bounds() for name in NETWORKS}
    if path := environment.get("SERVICE_CHAINS_FILE", "").strip():
        rows = _rows(Path(path))
        chains |= _from_file(rows.get("chains", []), chains)
        bounds |= _bounds_from_file(rows.get("bitcoin", []))
    prefix = "SERVICE_RPC_URL_"
    for name, url in environment.items():
        if not name.startswith(prefix) or not url.strip():
            continue
        reference = name.removeprefix(prefix)
        if not reference.isdecimal() or int(reference) not in chains:
            raise ValueError(f"{name}: no chain with that id; add it to SERVICE_CHAINS_FILE first")
        if not _is_web_address(url):
            # Not repeated: many a provider's address has a key in it.
            raise ValueError(f"{name}: must look like https://node.example.com")
        chains[int(reference)] = msgspec.structs.replace(chains[int(reference)], rpc_urls=(url,))
    declared = [chain.id for chain in chains.values() if chain.active]
    default = environment.get("SERVICE_DEFAULT_CHAIN_ID", "").strip() or str(declared[0] if declared else 1)
    if not default.isdecimal():
        raise ValueError("SERVICE_DEFAULT_CHAIN_ID must be a number")
    return ChainTable(chains, int(default), {"bitcoin": bounds})


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    try:
        return msgspec.convert(tomllib.loads(path.read_text()), dict[str, list[dict[str, Any]]])
    except (OSError, ValueError) as problem:
        raise ValueError(f"SERVICE_CHAINS_FILE: {problem}") from problem


def _bounds_from_file(rows: Any) -> dict[str, Bounds]:
    """Read the bounds on fees and outputs of Bitcoin networks: `[[bitcoin]]`, each with its `network`."""
    found = {}
    for row in rows:
        name, bounds = row.get("network"), {key: value for key, value in row.items() if key != "network"}
        if name not in NETWORKS:
            raise ValueError(f"SERVICE_CHAINS_FILE: network of [[bitcoin]] must be one of {', '.join(NETWORKS)}")
        try:
            found[name] = msgspec.convert(bounds, Bounds)
        except msgspec.ValidationError as problem:
            raise ValueError(f"SERVICE_CHAINS_FILE: bitcoin {name}: {problem}") from problem
    return found


def _from_file(rows: Any, known: Mapping[int, Chain]) -> dict[int, Chain]:
    found = {}
    for row in rows:
        base = known.get(row.get("id"))
        merged = {**(msgspec.structs.asdict(base) if base else {}), **row}
        try:
            chain = msgspec.convert(merged, Chain)
        except msgspec.ValidationError as problem:
            raise ValueError(f"SERVICE_CHAINS_FILE: {problem}") from problem
        if not 0 <= chain.min_priority_fee_per_gas <= min(chain.max_priority_fee_per_gas, chain.max_fee_per_gas):
            raise ValueError(
                f"SERVICE_CHAINS_FILE: min_priority_fee_per_gas of chain {chain.id} must be at most both of its caps"
            )
        if chain.family not in families.wallets():
            raise ValueError(
                f"SERVICE_CHAINS_FILE: family of chain {chain.id} must be one of {', '.join(families.wallets())}"
            )
        if not all(map(_is_web_address, chain.rpc_urls)):
            raise ValueError(
                f"SERVICE_CHAINS_FILE: rpc_urls of chain {chain.id} must look like https://node.example.com"
            )
        found[chain.id] = chain
    return found
