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

// bindings are those of an application, in the order in which the API server lists them.
type bindings []struct {
	Label, Name, InstanceGUID, InstanceName, BindingGUID string
	BindingName                                          *string
	Tags                                                 []string
	Credentials                                          []byte
}

// details is an entry of VCAP_SERVICES, field for field as Korifi's builder has it.
type details struct {
	Label          string         `json:"label"`
	Name           string         `json:"name"`
	Tags           []string       `json:"tags"`
	InstanceGUID   string         `json:"instance_guid"`
	InstanceName   string         `json:"instance_name"`
	BindingGUID    string         `json:"binding_guid"`
	BindingName    *string        `json:"binding_name"`
	Credentials    map[string]any `json:"credentials"`
	SyslogDrainURL *string        `json:"syslog_drain_url"`
	VolumeMounts   []string       `json:"volume_mounts"`
}

// vcap joins the bindings of an application, as Korifi's VCAPServicesEnvValueBuilder does.
func vcap(line []byte) (any, error) {
	var given bindings
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	services := map[string][]details{}
	for _, one := range given {
		entry := details{one.Label, one.Name, one.Tags, one.InstanceGUID, one.InstanceName, one.BindingGUID,
			one.BindingName, map[string]any{}, nil, []string{}}
		if err := json.Unmarshal(one.Credentials, &entry.Credentials); err != nil {
			return nil, err
		}
		services[one.Label] = append(services[one.Label], entry)
	}
	return json.Marshal(services)
}
