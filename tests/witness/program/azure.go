package main

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// secret is a scoped Secret and the operator that reads it. Environment is that of the operator's pod.
type secret struct {
	Data        map[string][]byte
	Strict      bool
	MultiEnv    bool
	Environment map[string]string
}

// verdict says whether ASO gets a credential of a Secret, which method it chose, and else what refused it, in
// the words of the library.
type verdict struct {
	Accepted bool   `json:"accepted"`
	Method   string `json:"method"`
	Refused  string `json:"refused"`
}

const tokenFile = "/var/run/secrets/tokens/azure-identity"

// A ServiceAccount's name is a DNS subdomain: the rule of k8s.io/apimachinery, IsDNS1123Subdomain.
var subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// azure makes the credential as the credential provider of Azure Service Operator does: the keys that are
// present decide, and azidentity does the rest.
func azure(line []byte) (any, error) {
	var given secret
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	os.Clearenv()
	for key, value := range given.Environment {
		os.Setenv(key, value)
	}
	return given.verdict(), nil
}

func refused(method, why string) verdict { return verdict{Method: method, Refused: why} }

func (s secret) verdict() verdict {
	for _, key := range []string{"AZURE_SUBSCRIPTION_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_ID"} {
		if _, there := s.Data[key]; !there {
			return refused("", "does not contain key")
		}
	}
	options, why := s.options()
	if why != "" {
		return refused("", why)
	}
	tenant, client := string(s.Data["AZURE_TENANT_ID"]), string(s.Data["AZURE_CLIENT_ID"])
	tenants := s.tenants()

	if password, there := s.Data["AZURE_CLIENT_SECRET"]; there {
		_, err := azidentity.NewClientSecretCredential(tenant, client, string(password),
			&azidentity.ClientSecretCredentialOptions{ClientOptions: options, AdditionallyAllowedTenants: tenants})
		return judged("servicePrincipalSecret", err)
	}
	if certificate, there := s.Data["AZURE_CLIENT_CERTIFICATE"]; there {
		certificates, key, err := azidentity.ParseCertificates(certificate, s.Data["AZURE_CLIENT_CERTIFICATE_PASSWORD"])
		if err != nil {
			return judged("servicePrincipalCertificate", err)
		}
		_, err = azidentity.NewClientCertificateCredential(tenant, client, certificates, key,
			&azidentity.ClientCertificateCredentialOptions{ClientOptions: options, AdditionallyAllowedTenants: tenants})
		return judged("servicePrincipalCertificate", err)
	}
	switch string(s.Data["AUTH_MODE"]) {
	case "podidentity":
		_, err := azidentity.NewManagedIdentityCredential(
			&azidentity.ManagedIdentityCredentialOptions{ClientOptions: options, ID: azidentity.ClientID(client)})
		return judged("podIdentity", err)
	case "", "workloadidentity":
		return s.workloadIdentity(tenant, client, options, tenants)
	}
	return refused("", "authorization mode not valid")
}

func (s secret) workloadIdentity(tenant, client string, options azcore.ClientOptions, tenants []string) verdict {
	const method = "workloadIdentity"
	if !s.Strict {
		_, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientID: client, TenantID: tenant, TokenFilePath: tokenFile,
			ClientOptions: options, AdditionallyAllowedTenants: tenants})
		return judged(method, err)
	}
	if account, there := s.Data["AZURE_WORKLOAD_IDENTITY_SERVICE_ACCOUNT"]; there {
		if name := string(account); len(name) > 253 || !subdomain.MatchString(name) {
			return refused(method, "invalid ServiceAccount name")
		}
	}
	assertion := func(context.Context) (string, error) { return "", nil }
	_, err := azidentity.NewClientAssertionCredential(tenant, client, assertion,
		&azidentity.ClientAssertionCredentialOptions{ClientOptions: options, AdditionallyAllowedTenants: tenants})
	return judged(method, err)
}

// options are those of the Secret's own cloud: three keys together, and only if the operator allows it.
func (s secret) options() (azcore.ClientOptions, string) {
	host, endpoint, audience := string(s.Data["AZURE_AUTHORITY_HOST"]),
		string(s.Data["AZURE_RESOURCE_MANAGER_ENDPOINT"]), string(s.Data["AZURE_RESOURCE_MANAGER_AUDIENCE"])
	given := 0
	for _, key := range []string{"AZURE_AUTHORITY_HOST", "AZURE_RESOURCE_MANAGER_ENDPOINT", "AZURE_RESOURCE_MANAGER_AUDIENCE"} {
		if _, there := s.Data[key]; there {
			given++
		}
	}
	if given == 0 {
		return azcore.ClientOptions{}, ""
	}
	if !s.MultiEnv {
		return azcore.ClientOptions{}, "needs ALLOW_MULTI_ENV_MANAGEMENT"
	}
	if host == "" || endpoint == "" || audience == "" {
		return azcore.ClientOptions{}, "cloud keys go together"
	}
	return azcore.ClientOptions{Cloud: cloud.Configuration{
		ActiveDirectoryAuthorityHost: host,
		Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
			cloud.ResourceManager: {Endpoint: endpoint, Audience: audience},
		},
	}}, ""
}

func (s secret) tenants() []string {
	var found []string
	for _, tenant := range strings.Split(string(s.Data["AZURE_ADDITIONAL_TENANTS"]), ",") {
		if tenant = strings.TrimSpace(tenant); tenant != "" {
			found = append(found, tenant)
		}
	}
	return found
}

func judged(method string, err error) verdict {
	if err != nil {
		return refused(method, err.Error())
	}
	return verdict{Accepted: true, Method: method}
}
