"""The fields that cannot change in a live object, so that a change replaces the object.

The genuine provider's list (pulumi-kubernetes 4.34); the API server refuses some further changes itself.
"""

from typing import Final

from pulumi_sandbox.protocol.paths import Path
from pulumi_sandbox.protocol.values import Properties, Value, text

_IDENTITY: Final[tuple[Path, ...]] = (("metadata", "name"), ("metadata", "namespace"))


def _spec(*fields: str) -> tuple[Path, ...]:
    return tuple(("spec", field) for field in fields)


_ROLE_BINDING: Final[tuple[Path, ...]] = (("roleRef",),)
_FIELDS: Final[dict[tuple[str, str], tuple[Path, ...]]] = {
    ("apps/v1", "DaemonSet"): _spec("selector"),
    ("apps/v1", "Deployment"): _spec("selector"),
    ("apps/v1", "StatefulSet"): _spec(
        "podManagementPolicy", "revisionHistoryLimit", "selector", "serviceName", "volumeClaimTemplates"
    ),
    ("batch/v1", "Job"): _spec("completions", "parallelism", "selector", "template"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): _ROLE_BINDING,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): _ROLE_BINDING,
    ("storage.k8s.io/v1", "StorageClass"): (("parameters",), ("provisioner",)),
    ("v1", "PersistentVolume"): _spec(
        *("awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume"),
        *("flocker", "gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs"),
        *(
            "photonPersistentDisk",
            "portworxVolume",
            "quobyte",
            "rbd",
            "scaleIO",
            "storageos",
            "vsphereVolume",
        ),
    ),
    ("v1", "PersistentVolumeClaim"): _spec("accessModes", "selector", "storageClassName", "volumeName"),
    ("v1", "Pod"): (("spec",),),
    ("v1", "ResourceQuota"): _spec("scopes"),
    ("v1", "Service"): _spec("clusterIP"),
}


def fields(inputs: Properties, *, secrets_mutable: bool, config_maps_mutable: bool) -> tuple[Path, ...]:
    """Return the paths that a change of these inputs must not touch; `*` stands for any index.

    Whether the data of Secrets and ConfigMaps may change is the provider's options to say, unless the
    object itself is `immutable: true`.
    """
    kind = (text(inputs.get("apiVersion")), text(inputs.get("kind")))
    sealed = inputs.get("immutable") is True
    if kind == ("v1", "Secret"):
        data: tuple[Path, ...] = (("stringData",), ("data",)) if sealed or not secrets_mutable else ()
        return (*_IDENTITY, ("type",), *data)
    if kind == ("v1", "ConfigMap") and (sealed or not config_maps_mutable):
        return (*_IDENTITY, ("binaryData",), ("data",))
    return (*_IDENTITY, *_FIELDS.get(kind, ()))


def touched(path: Path, value: Value, pattern: Path) -> bool:
    """Whether a change at `path` to `value` reaches the field, something in it, or around it."""
    for depth, wanted in enumerate(pattern):
        if depth < len(path):
            if wanted not in ("*", path[depth]):
                return False
        elif isinstance(value, dict) and isinstance(wanted, str) and wanted in value:
            value = value[wanted]
        else:
            return False
    return True
