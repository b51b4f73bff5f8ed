"""Writes how each case of the common list went with a client, for docs/CLIENTS.md."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

results = {}


def pytest_runtest_logreport(report):
    # test_case[name of the case], and test_do[what is done]
    if report.when != "call" and not report.failed or "[" not in report.nodeid:
        return
    folder = pathlib.Path(report.nodeid.split("::")[0]).parent.name
    name = report.nodeid.split("[", 1)[1].rstrip("]")
    results.setdefault(folder, {})[name] = "yes" if report.passed else "no"


def pytest_sessionfinish():
    where = os.environ.get("SKUA_RESULTS")
    if not where or not results:
        return
    import cases
    import clients
    for folder, outcomes in results.items():
        if folder not in clients.NAMES:
            continue
        name, version, has_not = clients.NAMES[folder]
        told = {cases.DOINGS.get(k, k): v for k, v in outcomes.items()}
        told.update({cases.DOINGS[d]: why for d, why in has_not.items()})
        path = pathlib.Path(where) / f"{folder}.json"
        path.write_text(json.dumps({"client": name, "version": version, "cases": told}, indent=1))
