package faultplan

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// Plan is a list of faults with a seed. Its YAML has the fields seed and faults.
type Plan struct {
	Seed   uint64
	Faults []Fault
}

// document is the form of a plan in YAML.
type document struct {
	Seed   uint64   `json:"seed"`
	Faults []string `json:"faults"`
}

// ParsePlan reads a plan in YAML.
func ParsePlan(text []byte) (Plan, error) {
	var d document
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		return Plan{}, fmt.Errorf("a plan has the fields seed and faults, and each fault is a text in quotes: %w", err)
	}
	p := Plan{Seed: d.Seed}
	for i, line := range d.Faults {
		f, err := Parse(line)
		if err != nil {
			return Plan{}, fmt.Errorf("faults[%d]: %w", i, err)
		}
		p.Faults = append(p.Faults, f)
	}
	return p, nil
}

// YAML returns the text of the plan. ParsePlan reads it.
func (p Plan) YAML() []byte {
	d := document{Seed: p.Seed, Faults: []string{}}
	for _, f := range p.Faults {
		d.Faults = append(d.Faults, f.String())
	}
	text, err := yaml.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("faultplan: encode numbers and texts: %v", err))
	}
	return text
}
