"""The contract as a file for the generators."""

import json
from pathlib import Path

import pytest

from api.http import openapi
from api.routes import endpoints


@pytest.fixture(scope="session")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The contract as this source tree makes it."""
    file = tmp_path_factory.mktemp("contract") / "openapi.json"
    file.write_text(json.dumps(openapi.document(endpoints(), "http://localhost:3200")))
    return file


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its plain form."""
    file = tmp_path_factory.mktemp("plain") / "openapi-plain.json"
    file.write_text(json.dumps(openapi.documents(endpoints(), "http://localhost:3200")[openapi.PLAIN]))
    return file
