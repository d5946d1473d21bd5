// The genuine Kubernetes provider of Pulumi, from the newest module that the Go proxy serves.
package main

import (
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

func main() {
	provider.Serve("kubernetes", version.Version, beside("schema.json"), beside("terraform-mapping.json"))
}

// beside reads a file that the provider's own module has, which go:embed cannot reach from this one.
func beside(name string) []byte {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	content, err := os.ReadFile(filepath.Join(filepath.Dir(program), name))
	if err != nil {
		panic(err)
	}
	return content
}
