"""A cluster of the user's own, used in place of the sandbox's: whether it can be used at all."""

from __future__ import annotations

from pathlib import Path

from sandbox.errors import SandboxError


def reach(kubeconfig: Path) -> str:
    """Ask the cluster of the file's current context for its version, and give its address.

    Raises:
        SandboxError: `kubeconfig-unusable`, `cluster-unreachable`, or `cluster-refused` when it answered, but
            not to this user.
    """
    from kubernetes import client, config
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError
    from yaml import YAMLError

    configuration = client.Configuration()
    try:
        config.load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
    except (config.ConfigException, YAMLError, OSError, TypeError) as error:  # TypeError: a list, say
        raise SandboxError(
            code="kubeconfig-unusable",
            place=str(kubeconfig),
            cause=f"this file names no cluster to use ({type(error).__name__})",
            mend="give a kubeconfig file that has a current context (kubectl config current-context)",
        ) from error
    server = str(configuration.host)
    configuration.retries = False
    try:
        with client.ApiClient(configuration) as api:
            client.VersionApi(api).get_code(_request_timeout=10)
    except ApiException as error:
        raise SandboxError(
            code="cluster-refused",
            place=server,
            cause=f"the cluster answered {error.status} to the user of {kubeconfig}",
            mend="log in again, or give a kubeconfig whose user may use this cluster",
        ) from error
    except HTTPError as error:
        raise SandboxError(
            code="cluster-unreachable",
            place=server,
            cause=f"the cluster of {kubeconfig} does not answer ({type(error).__name__})",
            mend="start it or choose another context; without KUBECONFIG the sandbox starts one of its own",
        ) from error
    return server
