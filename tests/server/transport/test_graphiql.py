"""Which requests get the page, and what it may load. tests/browser opens it."""

import re
from collections.abc import Iterator

import httpx
import pytest

from server.graphiql import FOLDER
from tests.server.process import Server

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture(scope="module", params=[True, False])
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the page, and one without."""
    folder = tmp_path_factory.mktemp("own")
    server = Server(folder / "data", folder / "log", "--graphiql" if request.param else "--no-graphiql")
    server.start()
    yield server
    server.end()


@pytest.mark.parametrize("own", [True], indirect=True)
def test_a_browser_gets_a_page_with_only_our_own_files(own: Server) -> None:
    with httpx.Client(base_url=own.url, verify=False) as http:
        page = http.get("/graphql", headers=BROWSER)
        assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
        policy = dict(rule.split(" ", 1) for rule in page.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == "'self'"
        loaded = re.findall(r'(?:src|href)="(/[^"]*)"', page.text)
        assert len(loaded) == 2
        for path in loaded:
            assert http.get(path).status_code == 200
        assert not re.search(r"<style|<script(?! src)|style=| on\w+=", page.text)
        hostile = http.get("/graphql", headers=BROWSER | {"host": "x; script-src *"})
        assert "script-src *" not in hostile.headers.get("content-security-policy", "")


@pytest.mark.parametrize("own", [True], indirect=True)
def test_queries_by_get_are_answered_in_a_browser_too(own: Server) -> None:
    answer = httpx.get(f"{own.graphql}?query={{viewer{{space}}}}", headers=BROWSER, verify=False)
    assert answer.json()["data"] == {"viewer": {"space": "default"}}


@pytest.mark.parametrize("own", [False], indirect=True)
def test_without_graphiql_there_is_no_page(own: Server) -> None:
    answer = httpx.get(own.graphql, headers=BROWSER, verify=False)
    assert answer.status_code == 400 and answer.headers["content-type"].startswith("application/json")
    assert httpx.get(f"{own.url}/graphiql/graphiql.js", verify=False).status_code == 404


def test_the_licences_of_served_files_are_beside_them() -> None:
    licences = (FOLDER / "LICENSES").read_text()
    for package in ("graphiql 4.1.2: MIT", "react 19.3.1: MIT", "graphql 16.15.0: MIT", "graphql-ws 6.4.2: MIT"):
        assert package in licences


def test_no_address_of_the_page_can_be_framed(shared: Server) -> None:
    for address in (shared.graphql, shared.graphql.replace("/graphql", "/graphiql/index.html")):
        answer = httpx.get(address, headers=BROWSER, verify=False)
        assert answer.status_code == 200
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
