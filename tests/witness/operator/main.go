// Answers, one JSON line for each on standard input, in which namespaces a provider of External Secrets Operator looks
// for what its store names: before anybody calls, and for a caller. It is built inside the operator's own source, with
// its providers: tests/witness/eso_habits.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	_ "github.com/external-secrets/external-secrets/pkg/register"
	"github.com/external-secrets/external-secrets/runtime/feature"
)

// question is an embedded block in a store of the whole cluster or of namespace home, and who calls; nobody: empty.
// HERE in the block and the environment is the address of a server that answers. Keys are of every object, beside k.
type question struct {
	Provider    json.RawMessage   `json:"provider"`
	Clusterwide bool              `json:"clusterwide"`
	Caller      string            `json:"caller"`
	Keys        map[string]string `json:"keys"`
	Environment map[string]string `json:"environment"`
}

// answer has what the provider says of the store, of a client, of that one's validity and of a read, and name and
// namespace of each object that was looked for.
type answer struct {
	Store    string      `json:"store"`
	Client   string      `json:"client"`
	Validity string      `json:"validity"`
	Read     string      `json:"read"`
	Reads    [][2]string `json:"reads"`
}

const patience = 20 * time.Second

var (
	lock  sync.Mutex
	reads [][2]string
	keys  map[string]string
	here  string
)

func note(namespace, name string) {
	lock.Lock()
	defer lock.Unlock()
	reads = append(reads, [2]string{name, namespace})
}

// contents are those of every object: k says x, and others what the question says.
func contents() map[string][]byte {
	lock.Lock()
	defer lock.Unlock()
	found := map[string][]byte{"k": []byte("x")}
	for key, value := range keys {
		found[key] = []byte(value)
	}
	return found
}

// get answers the operator's client: every object is there.
func get(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	note(key.Namespace, key.Name)
	switch found := object.(type) {
	case *corev1.Secret:
		found.Data = contents()
		found.Labels = map[string]string{"external-secrets.io/type": "webhook"}
	case *corev1.ConfigMap:
		found.Data = map[string]string{}
		for key, value := range contents() {
			found.Data[key] = string(value)
		}
	case *corev1.ServiceAccount:
		found.Secrets = []corev1.ObjectReference{{Name: key.Name}}
	}
	object.SetName(key.Name)
	object.SetNamespace(key.Namespace)
	return nil
}

// serve answers the clients that providers make themselves: tokens, Secrets and ServiceAccounts; and is a metadata service
// of Google and a Vault for who asks for these.
func serve(writer http.ResponseWriter, request *http.Request) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch parts[0] {
	case "computeMetadata":
		writer.Header().Set("Metadata-Flavor", "Google")
		_, _ = writer.Write([]byte("x"))
		return
	case "v1":
		_ = json.NewEncoder(writer).Encode(map[string]any{
			"auth": map[string]string{"client_token": "x"}, "data": map[string]any{"data": map[string]string{"x": "x"}},
		})
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	if len(parts) < 6 || parts[2] != "namespaces" {
		writer.WriteHeader(http.StatusNotFound)
		return
	}
	note(parts[3], parts[5])
	said := map[string]any{"metadata": map[string]string{"name": parts[5], "namespace": parts[3]}}
	if parts[len(parts)-1] == "token" {
		until := time.Now().Add(time.Hour).Format(time.RFC3339)
		said["status"] = map[string]string{"token": "x", "expirationTimestamp": until}
	}
	said["data"] = contents()
	_ = json.NewEncoder(writer).Encode(said)
}

// within runs a part and returns what it says, for a provider may wait for a server that is not there.
func within(part func() string) string {
	said := make(chan string, 1)
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				said <- fmt.Sprint("panic: ", fault)
			}
		}()
		said <- part()
	}()
	select {
	case text := <-said:
		return text
	case <-time.After(patience):
		return "no answer"
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func store(given question) (esv1.GenericStore, error) {
	var provider esv1.SecretStoreProvider
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(given.Provider), "HERE", here)), &provider); err != nil {
		return nil, err
	}
	spec := esv1.SecretStoreSpec{Provider: &provider}
	if given.Clusterwide {
		kind := metav1.TypeMeta{Kind: "ClusterSecretStore", APIVersion: "external-secrets.io/v1"}
		return &esv1.ClusterSecretStore{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Name: "store"}, Spec: spec}, nil
	}
	kind := metav1.TypeMeta{Kind: "SecretStore", APIVersion: "external-secrets.io/v1"}
	return &esv1.SecretStore{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Name: "store", Namespace: "home"}, Spec: spec}, nil
}

func ask(given question, kube client.Client) (answer, error) {
	lock.Lock()
	reads, keys = [][2]string{}, given.Keys
	lock.Unlock()
	for name, value := range given.Environment {
		os.Setenv(name, strings.ReplaceAll(value, "HERE", here))
		defer os.Unsetenv(name)
	}
	about, err := store(given)
	if err != nil {
		return answer{}, err
	}
	provider, err := esv1.GetProvider(about)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	said := answer{}
	said.Store = within(func() string { _, err := provider.ValidateStore(about); return text(err) })
	var made esv1.SecretsClient
	said.Client = within(func() string {
		found, err := provider.NewClient(ctx, about, kube, given.Caller)
		made = found
		return text(err)
	})
	if said.Client == "" && made != nil {
		said.Validity = within(func() string { result, err := made.Validate(); return result.String() + " " + text(err) })
		if given.Caller != "" {
			said.Read = within(func() string {
				_, err := made.GetSecret(ctx, esv1.ExternalSecretDataRemoteRef{Key: "x"})
				return text(err)
			})
		}
	}
	lock.Lock()
	defer lock.Unlock()
	said.Reads = append([][2]string{}, reads...)
	return said, nil
}

func main() {
	server := httptest.NewServer(http.HandlerFunc(serve))
	here = strings.TrimPrefix(server.URL, "http://")
	os.Setenv("HTTP_PROXY", server.URL) // for http://metadata
	folder, _ := os.MkdirTemp("", "habits")
	path := filepath.Join(folder, "kubeconfig")
	config := fmt.Sprintf(`{"clusters": [{"name": "c", "cluster": {"server": %q}}], "users": [{"name": "c", "user": {"token": "t"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}], "current-context": "c"}`, server.URL)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		panic(err)
	}
	os.Setenv("KUBECONFIG", path)
	for _, each := range feature.Features() {
		if each.Initialize != nil {
			each.Initialize()
		}
	}
	kube := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{Get: get}).Build()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var given question
		said, err := answer{}, json.Unmarshal(lines.Bytes(), &given)
		if err == nil {
			said, err = ask(given, kube)
		}
		if err != nil {
			said = answer{Store: err.Error(), Reads: [][2]string{}}
		}
		line, _ := json.Marshal(said)
		fmt.Println(string(line))
	}
}
