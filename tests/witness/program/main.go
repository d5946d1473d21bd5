// Answers, one JSON line for each on standard input, what software that others wrote makes of a document:
// `witness azure` for Secrets of Azure Service Operator, `witness json` and `witness vcap` for what Korifi makes of
// credentials, `witness gjson` and `witness template` for what External Secrets Operator takes out of values and makes of
// them, `witness pull-secret` for what kubelet takes of pull secrets.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
)

func main() {
	answers := map[string]func([]byte) (any, error){
		"azure": azure, "json": korifi, "vcap": vcap, "gjson": property, "pull-secret": pullSecret,
		"template": rendered,
	}
	if len(os.Args) == 2 && os.Args[1] == "versions" {
		versions()
		return
	}
	if len(os.Args) != 2 || answers[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: witness azure|json|vcap|gjson|template|pull-secret|versions")
		os.Exit(2)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		answer, err := answers[os.Args[1]](lines.Bytes())
		if err == nil {
			err = json.NewEncoder(out).Encode(answer)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// versions prints what the program was built from, as the binary itself says it.
func versions() {
	build, _ := debug.ReadBuildInfo()
	fmt.Println("go", build.GoVersion)
	for _, module := range build.Deps {
		fmt.Println(module.Path, module.Version)
	}
}
