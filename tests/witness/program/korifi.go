package main

import "encoding/json"

// bound is what Korifi makes of the text under `credentials`: the object written again, the data of the
// binding's Secret and its type. Refused: the text could not be read.
type bound struct {
	Refused bool              `json:"refused"`
	Source  []byte            `json:"source"`
	Type    string            `json:"type"`
	Data    map[string][]byte `json:"data"`
}

// korifi reads and writes credentials by encoding/json, as Korifi's package credentials does.
func korifi(line []byte) (any, error) {
	var text []byte
	if err := json.Unmarshal(line, &text); err != nil {
		return nil, err
	}
	members := map[string]any{}
	if json.Unmarshal(text, &members) != nil {
		return bound{Refused: true}, nil
	}
	source, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	answer := bound{Source: source, Type: "servicebinding.io/user-provided", Data: map[string][]byte{}}
	for key, value := range members {
		if text, is := value.(string); is {
			answer.Data[key] = []byte(text)
		} else if answer.Data[key], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	if named, is := members["type"].(string); is {
		answer.Type = "servicebinding.io/" + named
	} else if members["type"] == nil {
		if _, there := members["type"]; !there {
			answer.Data["type"] = []byte("user-provided")
		}
	}
	return answer, nil
}
