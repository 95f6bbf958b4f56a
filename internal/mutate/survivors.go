package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed survivors.txt
var survivorsText string

// parseSurvivors reads the list of mutants that may survive: a line names one, and the indented lines below it say why.
func parseSurvivors(text string) (map[string]string, error) {
	reasons := map[string]string{}
	name := ""
	for i, line := range strings.Split(text, "\n") {
		switch indented := strings.HasPrefix(line, "\t"); {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case indented && name == "":
			return nil, fmt.Errorf("survivors.txt:%d: a reason of no mutant", i+1)
		case indented:
			reasons[name] = strings.TrimSpace(reasons[name] + " " + strings.TrimSpace(line))
		default:
			if _, twice := reasons[line]; twice {
				return nil, fmt.Errorf("survivors.txt:%d: %s is listed twice", i+1, line)
			}
			name = line
			reasons[name] = ""
		}
	}
	for name, reason := range reasons {
		if reason == "" {
			return nil, fmt.Errorf("survivors.txt: %s has no reason", name)
		}
	}
	return reasons, nil
}

// outdated returns the entries about a package that name none of its mutants.
func outdated(reasons map[string]string, pkg string, mutants []*mutant) []string {
	known := map[string]bool{}
	for _, m := range mutants {
		known[m.name] = true
	}
	var names []string
	for name := range reasons {
		if strings.HasPrefix(name, pkg+"/") && !known[name] {
			names = append(names, name)
		}
	}
	return names
}
