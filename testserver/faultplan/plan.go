package faultplan

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/internal/quote"
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

// MaxPlan limits the text of a plan, in bytes. It has room for thousands of faults. The YAML package takes a second for
// a megabyte of wrong lines, and its error has all of them.
const MaxPlan = 256 << 10

// ParsePlan reads a plan in YAML. An error quotes the beginning of a long text.
func ParsePlan(text []byte) (Plan, error) {
	if len(text) > MaxPlan {
		return Plan{}, fmt.Errorf("the plan has %d bytes; a plan has at most %d", len(text), MaxPlan)
	}
	var d document
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		return Plan{}, fmt.Errorf("a plan has the fields seed and faults, and each fault is a text in quotes: %s",
			quote.Short(err.Error(), maxError))
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
