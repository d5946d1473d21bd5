package main

import (
	"bytes"
	"encoding/json"
	"text/template"
)

// rendered has Go make of a text what External Secrets Operator has it make: null for a text or key that it refuses.
func rendered(line []byte) (any, error) {
	var given struct {
		Text string            `json:"text"`
		Data map[string][]byte `json:"data"`
	}
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for key, value := range given.Data {
		values[key] = string(value)
	}
	made := bytes.NewBuffer([]byte{})
	parsed, err := template.New("k").Option("missingkey=error").Parse(given.Text)
	if err != nil || parsed.Execute(made, values) != nil {
		return nil, nil
	}
	return made.Bytes(), nil
}
