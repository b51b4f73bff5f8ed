"""many.py LAKE DIR N: a warehouse of N tables in ten schemas, whose metadata is that of the demo's lineitem."""
import pathlib
import sys

lake, out, n = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
text = max((lake / "tpch/lineitem/metadata").glob("v*.metadata.json")).read_bytes()
for i in range(n):
    folder = out / f"s{i % 10}" / f"t_{i:04d}" / "metadata"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "v1.metadata.json").write_bytes(text)
    (folder / "version-hint.text").write_text("1")
