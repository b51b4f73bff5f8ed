"""The common list of cases, for the Python clients: how to load it and how values read as text."""
import datetime
import decimal
import json
import os
import pathlib

URI = os.environ["SKUA_URI"]
# Of the servers with TLS and a login; others have none of it.
USER = os.environ.get("SKUA_USER")
PASSWORD = os.environ.get("SKUA_PASSWORD")
CA = pathlib.Path(os.environ["SKUA_CA"]).read_text() if "SKUA_CA" in os.environ else None
ALL = json.loads((pathlib.Path(__file__).parent / "cases.json").read_text())
CASES = [c for c in ALL if "sql" in c]
DOINGS = {c["do"]: c["name"] for c in ALL if "do" in c}


def text(value):
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%f")
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)


def rows(table):
    return [[text(v) for v in row.values()] for row in table.to_pylist()]


def expect(case, table):
    assert table.column_names == case["columns"]
    assert rows(table) == case["rows"]


def expect_error(case, error):
    message = str(error)
    assert case["error"] in message
    assert case.get("hint", "") in message
    assert len(message) < 1500


def parameters(case):
    return [list(p.values())[0] for p in case["params"]]
