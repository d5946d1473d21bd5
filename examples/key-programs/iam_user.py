#!/usr/bin/env python3
# /// script
# dependencies = ["boto3"]
# ///
# pyright: reportMissingImports=false
"""Access keys of an IAM user of AWS, of which there are two at most.

The user may do iam:ListAccessKeys, CreateAccessKey and DeleteAccessKey on itself. Fields of the credential:
accessKeyID, secretAccessKey, and region where it is not one of the public cloud.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from contract import Credential, RejectedError, main


class AccessKeys:
    """The access keys of the user that one of them signs in as."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential
        session = boto3.Session(
            credential["accessKeyID"],
            credential["secretAccessKey"],
            region_name=credential.get("region", "us-east-1"),
        )
        patient = Config(connect_timeout=10, read_timeout=20, retries={"mode": "standard"})
        self._iam, self._sts = (session.client(name, config=patient) for name in ("iam", "sts"))

    def test(self) -> None:
        """Ask who this is, which needs no permission."""
        self.identify()

    def identify(self) -> tuple[str, str]:
        """Return the account's number and the id of the access key."""
        with _rejections():
            return self._sts.get_caller_identity()["Account"], self._credential["accessKeyID"]

    def list(self) -> list[str]:
        """Return the ids of the user's access keys, active or not."""
        with _rejections():
            return [each["AccessKeyId"] for each in self._iam.list_access_keys()["AccessKeyMetadata"]]

    def create(self) -> tuple[str, Credential]:
        """Make an access key."""
        with _rejections():
            made = self._iam.create_access_key()["AccessKey"]
        changed = {"accessKeyID": made["AccessKeyId"], "secretAccessKey": made["SecretAccessKey"]}
        return made["AccessKeyId"], {**self._credential, **changed}

    def remove(self, key_id: str) -> None:
        """Delete an access key."""
        with _rejections():
            try:
                self._iam.delete_access_key(AccessKeyId=key_id)
            except self._iam.exceptions.NoSuchEntityException:
                return


@contextmanager
def _rejections() -> Generator[None]:
    """Tell a key that AWS does not know from all else: a signature may be wrong by the clock, too."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] == "InvalidClientTokenId":
            raise RejectedError from None
        raise


if __name__ == "__main__":
    main(AccessKeys)
