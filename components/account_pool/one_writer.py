"""Writers of a declared account's credential: the stack, or a later rotation.

A rotation records on the account which configured credential it replaced. While that one stays configured,
the rotated credential is kept, also by a refresh; a newly configured one is written. Data of any other writer
is not overwritten until an operator decides which of the two to keep.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import pulumi

from components.account_pool.core.keys import KEY_PHASE, KEY_REPLACED
from components.account_pool.core.model import JsonObject, Member, list_data_writes
from components.connection import MERGE_PATCH, ClusterTarget, NoReply, connect
from components.errors import CredfleetError
from components.http_answers import HttpOutcome
from components.naming import config_path
from components.projection.kubernetes_secrets import path_of
from components.projection.model import SecretRef

Digest: TypeAlias = Callable[[str], str | None]
"""Returns the digest of the configured credential, for the uid of a Secret; None if it is unknown."""

_STACK: Final = "pulumi-kubernetes"
"""Field manager that writes a configured credential over a rotated one; the provider takes over from it."""
_FORMER: Final = "credfleet-stack"
"""Former name of that manager: its fields conflict with the provider's until another manager writes them."""
_DECLARING: Final = "pulumi"
_LOOKS: Final = ThreadPoolExecutor(4, thread_name_prefix="credfleet-key")


def find_writers(managed: tuple[JsonObject, ...]) -> set[str]:
    """Return the managers that wrote the present data of a Secret, except the declaring provider."""
    names = {str(each.get("manager")) for each in list_data_writes(managed)}
    return {name for name in names if not name.startswith(_DECLARING)}


@dataclass(frozen=True, slots=True)
class DataWriters:
    """Accounts of a pool as they were read, and the digests of their configured credentials."""

    cluster: ClusterTarget
    namespace: str
    seen: Mapping[str, Member]
    configured: Mapping[str, Digest]

    def options(self, name: str) -> pulumi.ResourceOptions:
        """Return the options of an account's Secret: `data` is ignored if a rotation wrote it since."""
        member = self.seen.get(name)
        if member is None or not (find_writers(member.managed) or KEY_REPLACED in member.annotations):
            return pulumi.ResourceOptions()

        async def guard(args: pulumi.ResourceHookArgs) -> None:
            """Reject overwriting another writer's data, or take it over."""
            data: Any = await pulumi.Output.from_input((args.new_inputs or {}).get("data")).future()
            if isinstance(data, dict):
                stack, is_preview = pulumi.get_stack(), pulumi.runtime.is_dry_run()
                work = partial(self._settle, name, data, stack, is_preview=is_preview)
                await asyncio.get_running_loop().run_in_executor(_LOOKS, work)

        preview_too = pulumi.ResourceHookOptions(on_dry_run=True)
        hook = pulumi.ResourceHook(f"one-writer-of-{name}", guard, preview_too)
        return pulumi.ResourceOptions(
            ignore_changes=["data"] if self.keeps(name) else None,
            hooks=pulumi.ResourceHookBinding(before_update=[hook]),
        )

    def keeps(self, name: str) -> bool:
        """Return whether an account keeps its rotated credential, whatever is configured."""
        member = self.seen.get(name)
        return member is not None and self._is_kept(name, member.uid, member.annotations)

    def _is_kept(self, name: str, uid: str, annotations: Mapping[str, str]) -> bool:
        """Return whether the configured credential is the one that a rotation replaced, or unknown."""
        replaced = annotations.get(KEY_REPLACED)
        digest = self.configured[name](uid) if name in self.configured else None
        return replaced is not None and digest in (None, replaced)

    def _settle(self, name: str, data: Mapping[str, str], stack: str, *, is_preview: bool) -> None:
        path = path_of(SecretRef(self.namespace, name))
        try:
            connection = connect(self.cluster).patient
            reply = connection.call("GET", path)
            if reply.answer is not HttpOutcome.DONE or (reply.body.get("data") or {}) == data:
                return
            self._refuse(name, reply.body, stack)
            if is_preview:
                return
            written = connection.call(
                "PATCH",
                f"{path}?fieldManager={_STACK}",
                body=_taken_over(reply.body, data),
                content_type=MERGE_PATCH,
            )
        except (CredfleetError, NoReply) as error:
            raise pulumi.RunError(f"{_place(name)}: its credential was not written: {error}") from None
        if written.answer is not HttpOutcome.DONE:
            raise pulumi.RunError(f"{_place(name)}: its credential was not written: {written.reason}")

    def _refuse(self, name: str, found: JsonObject, stack: str) -> None:
        metadata = found["metadata"]
        annotations: Mapping[str, str] = metadata.get("annotations") or {}
        if phase := (metadata.get("labels") or {}).get(KEY_PHASE):
            raise pulumi.RunError(
                f"{_place(name)}: its key is being rotated ({phase}), so no other one is written\n"
                f"→ credfleet pool rotate {name} --complete --stack {stack}"
            )
        if self._is_kept(name, metadata["uid"], annotations):
            raise pulumi.RunError(
                f"{_place(name)}: this state remembers the credential from before a rotation\n"
                f"→ pulumi up --refresh --stack {stack}"
            )
        others = find_writers(tuple(metadata.get("managedFields") or ())) - {_FORMER}
        if others and KEY_REPLACED not in annotations:
            note = f"kubectl annotate secret {name} -n {self.namespace} {KEY_REPLACED}="
            digest = (self.configured[name](metadata["uid"]) if name in self.configured else None) or "kept"
            raise pulumi.RunError(
                f"{_place(name)}: {', '.join(sorted(others))} wrote another credential than is configured\n"
                f"→ {note}{digest} keeps that one; {note}other has the configured one written"
            )


def _taken_over(found: JsonObject, data: Mapping[str, str]) -> JsonObject:
    """Return the patch that writes a configured credential; equal values cause no conflict."""
    gone = dict.fromkeys((found.get("data") or {}).keys() - data.keys())
    metadata = {
        "resourceVersion": found["metadata"]["resourceVersion"],
        "annotations": {KEY_REPLACED: None},
    }
    return {"metadata": metadata, "data": {**gone, **data}}


def _place(name: str) -> str:
    return config_path("accountPool", "members", name)
