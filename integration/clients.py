"""What the Python clients are called, their versions, and what they have no call for."""
import importlib.metadata

NAMES = {
    "adbc": ("ADBC (Python, adbc_driver_flightsql)", importlib.metadata.version("adbc-driver-flightsql"), {}),
    "pyarrow": ("pyarrow.flight", importlib.metadata.version("pyarrow"), {
        "tables": "no call", "prepare": "no call", "bind": "no call", "session": "no call",
    }),
}
