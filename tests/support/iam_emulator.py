# /// script
# requires-python = ">=3.11"
# dependencies = ["boto3==1.44.8", "flask==3.1.3", "flask-cors==6.0.5", "moto==5.2.5"]
# [tool.uv]
# exclude-newer = "2026-11-27T00:00:00Z"
# ///
# pyright: reportMissingImports=false
"""AWS as moto serves it, with a user who may change its own keys: `uv run --script iam_emulator.py`.

Says what starts Python with boto3, the address, and the credential; for each line, which keys are alive.
"""

import json
import os
import sys

os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "3"

import boto3
from moto.core import DEFAULT_ACCOUNT_ID
from moto.iam.models import iam_backends
from moto.server import ThreadedMotoServer

ALLOWED = ["iam:CreateAccessKey", "iam:DeleteAccessKey", "iam:ListAccessKeys"]
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ALLOWED, "Resource": "*"}]}

server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
url = "http://{}:{}".format(*server.get_host_and_port())
iam = boto3.Session("any", "any").client("iam", endpoint_url=url, region_name="us-east-1")
iam.create_user(UserName="robot")
iam.put_user_policy(UserName="robot", PolicyName="own-keys", PolicyDocument=json.dumps(POLICY))
made = iam.create_access_key(UserName="robot")["AccessKey"]
said = [sys.executable, url, DEFAULT_ACCOUNT_ID, made["AccessKeyId"], made["SecretAccessKey"]]
while True:
    sys.stdout.write(f"{json.dumps(said)}\n")
    sys.stdout.flush()
    if not sys.stdin.readline():
        break
    said = [each.access_key_id for each in iam_backends[DEFAULT_ACCOUNT_ID]["aws"].users["robot"].access_keys]
server.stop()
