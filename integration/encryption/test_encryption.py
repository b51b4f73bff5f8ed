"""Encrypted tables through a server that asks real key management services: local-kms and moto, which checks rights."""
import base64
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import adbc_driver_flightsql.dbapi as flightsql
import boto3
import pytest

import lake

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
TOKENS = {"alice": "alice has a token of her own", "bob": "bob has one as well, of course"}
TABLES = {
    f"pyarrow_{bits}_v{version[0]}_{'clear' if clear else 'sealed'}": dict(bits=bits, version=version, plaintext_footer=clear)
    for bits in (128, 192, 256) for version in ("1.0", "2.0") for clear in (False, True)
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def process(args, log, answers, **env):
    """Runs a process until the block ends; answers() says when it is ready."""
    with open(log, "w") as out:
        p = subprocess.Popen(args, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **env})
        try:
            for _ in range(600):
                if p.poll() is not None:
                    pytest.fail(f"{args[0]} ended:\n{pathlib.Path(log).read_text()}")
                if found := answers():
                    break
                time.sleep(0.1)
            else:
                pytest.fail(f"{args[0]} does not answer:\n{pathlib.Path(log).read_text()}")
            yield found
        finally:
            p.send_signal(signal.SIGTERM)
            p.wait(30)


def listens(port):
    def check():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return f"http://127.0.0.1:{port}"

    return check


@contextlib.contextmanager
def skua(tmp, warehouse, kms, **encryption):
    """A server over the warehouse, which alice and bob may use. Gives its address and its log."""
    config, log = tmp / "skua.json", tmp / "skua.log"
    config.write_text(json.dumps({
        "listen": {"flight": "127.0.0.1:0"}, "catalogs": {"lake": {"properties": {"warehouse": str(warehouse)}}},
        "auth": {"tokens": [{"name": n, "secret": s} for n, s in TOKENS.items()]}, "encryption": {"kms": kms, **encryption},
        "observability": {"log": {"level": "debug", "format": "json"}},
    }))

    def address():
        for line in log.read_text().splitlines():
            with contextlib.suppress(ValueError):
                if a := json.loads(line).get("address"):
                    return "grpc://" + a

    with process([str(BUILD / "skua"), "serve", "--config", str(config)], log, address) as uri:
        yield uri, log


def query(uri, sql, who="alice"):
    with flightsql.connect(uri, {"adbc.flight.sql.authorization_header": "Bearer " + TOKENS[who]}, autocommit=True) as c, c.cursor() as cur:
        cur.execute(sql)
        return cur.fetch_arrow_table()


def client(service, url, key="test", secret="test", token=None):
    return boto3.client(service, region_name="us-east-1", endpoint_url=url, aws_access_key_id=key, aws_secret_access_key=secret, aws_session_token=token)


@pytest.fixture(scope="module")
def local_kms(tmp_path_factory):
    port, tmp = free_port(), tmp_path_factory.mktemp("local-kms")
    with process([str(BUILD / "local-kms")], tmp / "log", listens(port), PORT=str(port), KMS_REGION="us-east-1", KMS_ACCOUNT_ID="111122223333",
                 KMS_DATA_PATH=str(tmp)) as url:
        yield url


def properties(url, key="test", secret="test"):
    return {"client.region": "us-east-1", "kms.endpoint": url, "sts.endpoint": url, "kms.access-key-id": key, "kms.secret-access-key": secret}


def wrapper(kms, master):
    return lambda key: kms.encrypt(KeyId=master, Plaintext=key)["CiphertextBlob"]


def test_pyarrow_files(local_kms, tmp_path):
    kms = client("kms", local_kms)
    master = kms.create_key()["KeyMetadata"]["KeyId"]
    secrets = []
    for name, how in TABLES.items():
        secrets += lake.table(tmp_path / "w" / "ns" / name, wrapper(kms, master), master, **how)
    lake.table(tmp_path / "w" / "ns" / "ctr", wrapper(kms, master), master, encryption_algorithm="AES_GCM_CTR_V1")
    want = lake.rows(20_000)
    with skua(tmp_path, tmp_path / "w", {"type": "aws", "properties": properties(local_kms)}) as (uri, log):
        for name in TABLES:
            got = query(uri, f"SELECT id, name, x FROM lake.ns.{name} ORDER BY id")
            assert got.to_pydict() == want.to_pydict(), name
            assert query(uri, f"SELECT name FROM lake.ns.{name} WHERE id = 12345").to_pydict() == {"name": ["name 45"]}, name
            assert query(uri, f'SELECT key_metadata FROM lake.ns."{name}$files"').to_pydict() == {"key_metadata": [None]}
        with pytest.raises(Exception, match="AES_GCM_CTR_V1.*unauthenticated-pages"):
            query(uri, "SELECT * FROM lake.ns.ctr")
        kms.disable_key(KeyId=master)
        assert query(uri, f"SELECT count(*) AS n FROM lake.ns.{name}").to_pydict() == {"n": [20_000]}, "kept for alice"
        with pytest.raises(Exception, match="(?s)AWS KMS does not let.*disabled"):
            query(uri, f"SELECT * FROM lake.ns.{name}", "bob")
        kms.enable_key(KeyId=master)
        text = log.read_text()
        for s in secrets:
            for form in (s.hex(), base64.b64encode(s).decode(), base64.b64encode(s).decode().rstrip("="), repr(s)[2:-1]):
                assert form not in text, "a key stands in the log"
    with skua(tmp_path, tmp_path / "w", {"type": "aws", "properties": properties(local_kms)}, accept=["unauthenticated-pages"]) as (uri, _):
        assert query(uri, "SELECT id, name, x FROM lake.ns.ctr ORDER BY id").to_pydict() == want.to_pydict()


def moto_call(url, path, body=""):
    urllib.request.urlopen(urllib.request.Request(url + path, data=body.encode(), headers={"Content-Type": "text/plain"}, method="POST")).read()


def test_rights_of_principals(tmp_path):
    """moto checks IAM policies: alice's role may decrypt and bob's may not, whatever is kept for alice."""
    port = free_port()
    with process([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], tmp_path / "moto.log", listens(port),
                 INITIAL_NO_AUTH_ACTION_COUNT="100") as url:
        kms, iam = client("kms", url), client("iam", url)
        master = kms.create_key()["KeyMetadata"]["Arn"]
        trust = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]})
        roles = {}
        for name in ("reader", "nobody"):
            roles[name] = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        iam.put_role_policy(RoleName="reader", PolicyName="p", PolicyDocument=json.dumps(
            {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "kms:Decrypt", "Resource": "*"}]}))
        iam.create_user(UserName="skua")
        iam.put_user_policy(UserName="skua", PolicyName="p", PolicyDocument=json.dumps(
            {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]}))
        key = iam.create_access_key(UserName="skua")["AccessKey"]
        lake.table(tmp_path / "w" / "ns" / "t", wrapper(kms, master), master)
        moto_call(url, "/moto-api/reset-auth", "0")
        settings = {"type": "aws", "properties": properties(url, key["AccessKeyId"], key["SecretAccessKey"]), "identities": {
            "alice": {"client.assume-role.arn": roles["reader"]}, "bob": {"client.assume-role.arn": roles["nobody"]}}}
        with skua(tmp_path, tmp_path / "w", settings) as (uri, log):
            for _ in range(2):
                assert query(uri, "SELECT count(*) AS n, sum(id) AS s FROM lake.ns.t").to_pydict() == {"n": [20_000], "s": [199_990_000]}
                with pytest.raises(Exception, match="AWS KMS does not let"):
                    query(uri, "SELECT count(*), sum(id) FROM lake.ns.t", "bob")
            assert key["SecretAccessKey"] not in log.read_text()
