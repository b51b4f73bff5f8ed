"""Encrypted tables through a server that asks real key management services: local-kms and moto, which checks rights."""
import base64

import pytest

import lake
import services

TABLES = {
    f"pyarrow_{bits}_v{version[0]}_{'clear' if clear else 'sealed'}": dict(bits=bits, version=version, plaintext_footer=clear)
    for bits in (128, 192, 256) for version in ("1.0", "2.0") for clear in (False, True)
}


def server(tmp, kms, **encryption):
    return services.skua(tmp, catalogs={"lake": {"properties": {"warehouse": str(tmp / "w")}}}, encryption={"kms": kms, **encryption})


@pytest.fixture(scope="module")
def local_kms(tmp_path_factory):
    port, tmp = services.free_port(), tmp_path_factory.mktemp("local-kms")
    with services.process([str(services.BUILD / "local-kms")], tmp / "log", services.listens(port), PORT=str(port), KMS_REGION="us-east-1", KMS_ACCOUNT_ID="111122223333",
                 KMS_DATA_PATH=str(tmp)) as url:
        yield url


def properties(url, key="test", secret="test"):
    return {"client.region": "us-east-1", "kms.endpoint": url, "sts.endpoint": url, "kms.access-key-id": key, "kms.secret-access-key": secret}


def wrapper(kms, master):
    return lambda key: kms.encrypt(KeyId=master, Plaintext=key)["CiphertextBlob"]


def test_pyarrow_files(local_kms, tmp_path):
    kms = services.aws("kms", local_kms)
    master = kms.create_key()["KeyMetadata"]["KeyId"]
    secrets = []
    for name, how in TABLES.items():
        secrets += lake.table(tmp_path / "w" / "ns" / name, wrapper(kms, master), master, **how)
    lake.table(tmp_path / "w" / "ns" / "ctr", wrapper(kms, master), master, encryption_algorithm="AES_GCM_CTR_V1")
    want = lake.rows(20_000)
    with server(tmp_path, {"type": "aws", "properties": properties(local_kms)}) as (uri, log):
        for name in TABLES:
            got = services.query(uri, f"SELECT id, name, x FROM lake.ns.{name} ORDER BY id")
            assert got.to_pydict() == want.to_pydict(), name
            assert services.query(uri, f"SELECT name FROM lake.ns.{name} WHERE id = 12345").to_pydict() == {"name": ["name 45"]}, name
            assert services.query(uri, f'SELECT key_metadata FROM lake.ns."{name}$files"').to_pydict() == {"key_metadata": [None]}
        with pytest.raises(Exception, match="AES_GCM_CTR_V1.*unauthenticated-pages"):
            services.query(uri, "SELECT * FROM lake.ns.ctr")
        kms.disable_key(KeyId=master)
        assert services.query(uri, f"SELECT count(*) AS n FROM lake.ns.{name}").to_pydict() == {"n": [20_000]}, "kept for alice"
        with pytest.raises(Exception, match="(?s)AWS KMS does not let.*disabled"):
            services.query(uri, f"SELECT * FROM lake.ns.{name}", "bob")
        kms.enable_key(KeyId=master)
        text = log.read_text()
        for s in secrets:
            for form in (s.hex(), base64.b64encode(s).decode(), base64.b64encode(s).decode().rstrip("="), repr(s)[2:-1]):
                assert form not in text, "a key stands in the log"
    with server(tmp_path, {"type": "aws", "properties": properties(local_kms)}, accept=["unauthenticated-pages"]) as (uri, _):
        assert services.query(uri, "SELECT id, name, x FROM lake.ns.ctr ORDER BY id").to_pydict() == want.to_pydict()


def test_rights_of_principals(tmp_path):
    """moto checks IAM policies: alice's role may decrypt and bob's may not, whatever is kept for alice."""
    with services.moto(tmp_path / "moto.log") as url:
        kms, iam = services.aws("kms", url), services.aws("iam", url)
        master = kms.create_key()["KeyMetadata"]["Arn"]
        reader, nobody = services.role(iam, "reader", "kms:Decrypt"), services.role(iam, "nobody")
        key = services.user(iam, "skua", "sts:AssumeRole")
        lake.table(tmp_path / "w" / "ns" / "t", wrapper(kms, master), master)
        services.strict(url)
        settings = {"type": "aws", "properties": properties(url, key["AccessKeyId"], key["SecretAccessKey"]), "identities": {
            "alice": {"client.assume-role.arn": reader}, "bob": {"client.assume-role.arn": nobody}}}
        with server(tmp_path, settings) as (uri, log):
            for _ in range(2):
                assert services.query(uri, "SELECT count(*) AS n, sum(id) AS s FROM lake.ns.t").to_pydict() == {"n": [20_000], "s": [199_990_000]}
                with pytest.raises(Exception, match="AWS KMS does not let"):
                    services.query(uri, "SELECT count(*), sum(id) FROM lake.ns.t", "bob")
            assert key["SecretAccessKey"] not in log.read_text()
