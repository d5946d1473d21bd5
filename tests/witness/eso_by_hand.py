"""Specs of providers of External Secrets Operator that reach a selector which no made-up spec reaches.

Each has what the provider's own code demands before it looks for the selector, or before it refuses that: an
id of the right form, an address that answers, contents of a certain kind. Texts are made up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tests.support.certificates import certificate_pem, only_key, rsa_key

ID: Final = "11111111-1111-4111-8111-111111111111"

Block: TypeAlias = Mapping[str, Any]
Given: TypeAlias = Callable[[str], Any]
"""Returns a selector of a kind, under a name that nobody had."""


@dataclass(frozen=True, slots=True)
class ByHand:
    """An embedded block, and what is around it.

    keys: of every object, beside k, which says x. environment: of the operator.
    """

    block: Callable[[Given], Block]
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def _akeyless(given: Given) -> Block:
    named = {
        "accessID": given("secret"),
        "accessType": {**given("secret"), "key": "type"},
        "accessTypeParam": given("secret"),
    }
    auth = {"secretRef": named, "serviceAccountRef": given("account")}
    return {"akeylessGWApiURL": "https://HERE/", "authSecretRef": auth}


def _akeyless_by_kubernetes(given: Given) -> Block:
    login = {"accessID": "x", "k8sConfName": "x", "serviceAccountRef": given("account")}
    return {"akeylessGWApiURL": "https://HERE/", "authSecretRef": {"kubernetesAuth": login}}


def _azure_certificate(given: Given) -> Block:
    login = {"clientId": given("secret"), "clientCertificate": {**given("secret"), "key": "pem"}}
    by = {"authType": "ServicePrincipal", "environmentType": "PublicCloud", "authSecretRef": login}
    return {"vaultUrl": "https://HERE/", "tenantId": ID, **by}


def _azure_tenant(given: Given) -> Block:
    login = {"clientId": given("secret"), "tenantId": given("secret")}
    by = {"authType": "WorkloadIdentity", "serviceAccountRef": given("account"), "authSecretRef": login}
    return {"vaultUrl": "https://HERE/", **by}


def _beyondtrust(given: Given) -> Block:
    auth = {"clientId": {"secretRef": given("secret")}, "clientSecret": {"secretRef": given("secret")}}
    url = "https://HERE/BeyondTrust/api/public/v3"
    return {"auth": auth, "server": {"apiUrl": url, "retrievalType": "SECRET", "verifyCA": False}}


def _beyondtrust_workload(given: Given) -> Block:
    server = {"apiUrl": "https://HERE/", "siteId": ID}
    return {"auth": {"apikey": {"token": given("secret")}}, "server": server}


def _cloudru(given: Given) -> Block:
    keys = {"accessKeyIDSecretRef": given("secret"), "accessKeySecretSecretRef": given("secret")}
    return {"auth": {"secretRef": keys}, "projectID": ID}


def _conjur(given: Given) -> Block:
    login = {"account": "x", "apiKeyRef": given("secret"), "userRef": given("secret")}
    return {"url": "https://HERE/", "auth": {"apikey": login}, "caProvider": given("certificates")}


def _delinea(given: Given) -> Block:
    named = {name: {"secretRef": given("secret")} for name in ("clientId", "clientSecret")}
    return {"tenant": "x", **named}


def _federated(given: Given) -> Block:
    login = {"audience": "x", "serviceAccountRef": given("account")}
    return {"projectID": "x", "auth": {"workloadIdentityFederation": login}}


def _gitlab(given: Given) -> Block:
    login = {"SecretRef": {"accessToken": given("secret")}}
    return {"auth": login, "url": "https://HERE/", "projectID": "7", "caProvider": _authority(given)}


def _authority(given: Given) -> Block:
    return {**given("certificates"), "key": "pem"}


def _nebius(name: str) -> Callable[[Given], Block]:
    def block(given: Given) -> Block:
        certificates = {"certSecretRef": {**given("secret"), "key": "pem"}}
        return {"apiDomain": "api.example.com", "auth": {name: given("secret")}, "caProvider": certificates}

    return block


def _oracle(given: Given) -> Block:
    return {
        **{"region": "eu-frankfurt-1", "vault": "x", "principalType": "Workload"},
        "serviceAccountRef": given("account"),
    }


def _ovh(given: Given) -> Block:
    login = {
        "certSecretRef": {**given("secret"), "key": "pem"},
        "keySecretRef": {**given("secret"), "key": "key"},
        "caProvider": _authority(given),
    }
    return {"server": "https://HERE/", "okmsid": ID, "auth": {"mtls": login}}


def _scaleway(given: Given) -> Block:
    named = {name: {"secretRef": given("secret")} for name in ("accessKey", "secretKey")}
    return {"projectId": ID, "region": "fr-par", **named}


def _secretserver(given: Given) -> Block:
    named = {name: {"secretRef": given("secret")} for name in ("username", "password")}
    return {"serverURL": "https://HERE/", **named}


def _vault(given: Given) -> Block:
    login = {"role": "x", "path": "gcp", "serviceAccountRef": given("account")}
    return {"server": "http://HERE", "path": "x", "version": "v2", "auth": {"gcp": login}}


def _webhook(given: Given) -> Block:
    login = {"usernameSecret": given("secret"), "passwordSecret": given("secret")}
    return {"url": "https://HERE/", "result": {}, "auth": {"ntlm": login}}


def _webhook_secrets(given: Given) -> Block:
    return {
        "url": "https://HERE/",
        "result": {},
        "secrets": [{"name": "x", "secretRef": given("secret")}],
    }


_CERTIFICATE: Final = {"pem": certificate_pem(rsa_key()).decode(), "key": only_key().decode()}

SPECS: Final[Mapping[str, Mapping[str, ByHand]]] = {
    "akeyless": {
        "authSecretRef.kubernetesAuth.serviceAccountRef": ByHand(_akeyless_by_kubernetes),
        "authSecretRef.serviceAccountRef": ByHand(_akeyless, {"type": "azure_ad"}),
    },
    "azurekv": {
        "authSecretRef.clientCertificate": ByHand(
            _azure_certificate, {"pem": _CERTIFICATE["pem"] + _CERTIFICATE["key"]}
        ),
        "authSecretRef.tenantId": ByHand(_azure_tenant),
    },
    "beyondtrust": dict.fromkeys(
        ("auth.clientId.secretRef", "auth.clientSecret.secretRef"), ByHand(_beyondtrust)
    ),
    "beyondtrustworkloadcredentials": {
        "auth.apikey.token": ByHand(_beyondtrust_workload),
        "caProvider": ByHand(
            lambda given: {**_beyondtrust_workload(given), "caProvider": _authority(given)}, _CERTIFICATE
        ),
    },
    "cloudrusm": dict.fromkeys(
        ("auth.secretRef.accessKeyIDSecretRef", "auth.secretRef.accessKeySecretSecretRef"),
        ByHand(_cloudru, {}, {"CLOUDRU_CSM_ADDRESS": "HERE", "CLOUDRU_IAM_ADDRESS": "HERE"}),
    ),
    "conjur": {"caProvider": ByHand(_conjur)},
    "delinea": dict.fromkeys(("clientId.secretRef", "clientSecret.secretRef"), ByHand(_delinea)),
    "gcpsm": {"auth.workloadIdentityFederation.serviceAccountRef": ByHand(_federated)},
    "gitlab": {"caProvider": ByHand(_gitlab, _CERTIFICATE)},
    "nebiusmysterybox": {
        "auth.serviceAccountCredsSecretRef": ByHand(_nebius("serviceAccountCredsSecretRef"), _CERTIFICATE),
        "auth.tokenSecretRef": ByHand(_nebius("tokenSecretRef"), _CERTIFICATE),
        "caProvider.certSecretRef": ByHand(_nebius("tokenSecretRef"), _CERTIFICATE),
    },
    "onepasswordSDK": {
        "auth.serviceAccountSecretRef": ByHand(
            lambda given: {"vault": "x", "auth": {"serviceAccountSecretRef": given("secret")}}
        )
    },
    "oracle": {"serviceAccountRef": ByHand(_oracle)},
    "ovh": {"auth.mtls.caProvider": ByHand(_ovh, _CERTIFICATE)},
    "scaleway": dict.fromkeys(("accessKey.secretRef", "secretKey.secretRef"), ByHand(_scaleway)),
    "secretserver": {"password.secretRef": ByHand(_secretserver)},
    "vault": {
        "auth.gcp.serviceAccountRef": ByHand(_vault, {}, {"GCE_METADATA_HOST": "HERE"}),
    },
    "webhook": {
        "secrets.secretRef": ByHand(_webhook_secrets),
        **dict.fromkeys(("auth.ntlm.usernameSecret", "auth.ntlm.passwordSecret"), ByHand(_webhook)),
    },
}
"""Key of the embedded block → path of the selector → how it is reached."""
