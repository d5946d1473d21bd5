package main

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"
)

// asked is a value of a store, the paths that are looked for in it, and a Secret that is written as a whole.
type asked struct {
	Value  []byte            `json:"value"`
	Paths  []string          `json:"paths"`
	Secret map[string][]byte `json:"secret"`
}

// fields has what gjson finds under each path, null for nothing, the escaped form of each, the fields of the value if it
// is an object, and the Secret.
type fields struct {
	Valid   bool              `json:"valid"`
	Found   [][]byte          `json:"found"`
	Escaped []string          `json:"escaped"`
	Object  map[string][]byte `json:"object"`
	Whole   []byte            `json:"whole"`
}

// property looks into values with gjson and writes maps with encoding/json, as External Secrets Operator does.
func property(line []byte) (any, error) {
	var given asked
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	answer := fields{Valid: json.Valid(given.Value), Found: [][]byte{}, Escaped: []string{}}
	for _, path := range given.Paths {
		var found []byte
		if result := gjson.Get(string(given.Value), path); result.Exists() {
			found = append([]byte{}, result.String()...)
		}
		answer.Found = append(answer.Found, found)
		answer.Escaped = append(answer.Escaped, gjson.Escape(path))
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(given.Value, &object) == nil && object != nil {
		answer.Object = map[string][]byte{}
	}
	for key, raw := range object {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			raw = json.RawMessage(text)
		}
		answer.Object[key] = append([]byte{}, raw...)
	}
	texts := map[string]string{}
	for key, value := range given.Secret {
		texts[key] = string(value)
	}
	var whole bytes.Buffer
	encoder := json.NewEncoder(&whole)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(texts)
	answer.Whole = bytes.TrimRight(whole.Bytes(), "\n")
	return answer, err
}
