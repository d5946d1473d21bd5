package main

import (
	"encoding/json"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/credentialprovider/secrets"
)

// taken is what kubelet makes of a pull secret: user and password by entry, and the registries that it looks images up
// by, which leaves out what is not a registry to it.
type taken struct {
	Refused    bool                 `json:"refused"`
	Logins     map[string][2][]byte `json:"logins"`
	Registries []string             `json:"registries"`
}

// pullSecret reads a Secret as kubelet does for the images of a Pod.
func pullSecret(line []byte) (any, error) {
	var content []byte
	if err := json.Unmarshal(line, &content); err != nil {
		return nil, err
	}
	secret := v1.Secret{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{v1.DockerConfigJsonKey: content}}
	keyring, err := secrets.MakeDockerKeyring([]v1.Secret{secret}, &credentialprovider.BasicDockerKeyring{})
	answer := taken{Refused: err != nil, Logins: map[string][2][]byte{}, Registries: []string{}}
	union, made := keyring.(credentialprovider.UnionDockerKeyring)
	if err != nil || !made {
		return answer, nil
	}
	var read credentialprovider.DockerConfigJSON
	if err := json.Unmarshal(content, &read); err != nil {
		return nil, err
	}
	for name, entry := range read.Auths {
		answer.Logins[name] = [2][]byte{[]byte(entry.Username), []byte(entry.Password)}
	}
	index := reflect.ValueOf(union[0]).Elem().FieldByName("index")
	for each := range index.Len() {
		answer.Registries = append(answer.Registries, index.Index(each).String())
	}
	return answer, nil
}
