"""Starts Skua and the services around it for tests, on loopback, and ends them."""
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

BUILD = pathlib.Path(__file__).resolve().parents[1] / "build"
TOKENS = {"alice": "alice has a token of her own", "bob": "bob has one as well, of course"}


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
def skua(tmp, **config):
    """A server with the given settings, which alice and bob may use. Gives its address and its log."""
    file, log = tmp / "skua.json", tmp / "skua.log"
    file.write_text(json.dumps({
        "listen": {"flight": "127.0.0.1:0"}, "auth": {"tokens": [{"name": n, "secret": s} for n, s in TOKENS.items()]},
        "observability": {"log": {"level": "debug", "format": "json"}}, **config,
    }))

    def address():
        for line in log.read_text().splitlines():
            with contextlib.suppress(ValueError):
                if a := json.loads(line).get("address"):
                    return "grpc://" + a

    with process([str(BUILD / "skua"), "serve", "--config", str(file)], log, address) as uri:
        yield uri, log


def query(uri, sql, who="alice"):
    with flightsql.connect(uri, {"adbc.flight.sql.authorization_header": "Bearer " + TOKENS[who]}, autocommit=True) as c, c.cursor() as cur:
        cur.execute(sql)
        return cur.fetch_arrow_table()


def aws(service, url, key="test", secret="test", token=None):
    return boto3.client(service, region_name="us-east-1", endpoint_url=url, aws_access_key_id=key, aws_secret_access_key=secret, aws_session_token=token)


@contextlib.contextmanager
def moto(log):
    """AWS by moto, which lets everything pass until strict() is called."""
    port = free_port()
    with process([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], log, listens(port), INITIAL_NO_AUTH_ACTION_COUNT="1000000") as url:
        yield url


def strict(url):
    """From here on moto checks signatures and policies."""
    urllib.request.urlopen(urllib.request.Request(url + "/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"}, method="POST")).read()


def policy(actions, resource="*"):
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": resource}]})


TRUST = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]})


def user(iam, name, actions):
    """An IAM user who may do so much; gives its keys."""
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=policy(actions))
    return iam.create_access_key(UserName=name)["AccessKey"]


def role(iam, name, actions=None, resource="*"):
    """A role that anybody may assume; gives its ARN."""
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
    if actions:
        iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=policy(actions, resource))
    return arn
