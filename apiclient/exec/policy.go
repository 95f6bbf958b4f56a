package exec

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// PolicyType is the rule of a Policy.
type PolicyType string

// The types. An empty one is AllowAll.
const (
	AllowAll  PolicyType = "AllowAll"  // any command may run
	DenyAll   PolicyType = "DenyAll"   // no command may run
	Allowlist PolicyType = "Allowlist" // the commands of the list may run
)

// Policy selects the commands that a kubeconfig may run. It follows KEP-3104, which has the same policy for kubectl in
// kuberc, and corresponds to PluginPolicy of client-go.
type Policy struct {
	Type PolicyType
	// Allowlist has names or absolute paths of commands. PATH resolves a name when the plugin starts. If Type is
	// Allowlist, the list must not be empty; otherwise it must be empty, so that nothing is allowed by mistake.
	Allowlist []string
}

func (p Policy) validate() error {
	switch p.Type {
	case "", AllowAll, DenyAll:
		if len(p.Allowlist) > 0 {
			return fmt.Errorf("there is an allow-list, and the type is %q: write %s", p.Type, Allowlist)
		}
		return nil
	case Allowlist:
	default:
		return fmt.Errorf("type %.80q is not known; %s, %s and %s are", p.Type, AllowAll, DenyAll, Allowlist)
	}
	if len(p.Allowlist) == 0 {
		return fmt.Errorf("the allow-list is empty: write %s if that is meant", DenyAll)
	}
	for _, entry := range p.Allowlist {
		switch {
		case entry == "":
			return errors.New("an entry of the allow-list is empty")
		case filepath.Base(entry) != entry && !filepath.IsAbs(entry):
			return fmt.Errorf("the entry %q of the allow-list is neither a name nor an absolute path", entry)
		}
	}
	return nil
}

// allows reports whether a command may run. It checks the resolved path, which is the path that runs.
func (p Policy) allows(path string) bool {
	switch p.Type {
	case "", AllowAll:
		return true
	case Allowlist:
		return slices.ContainsFunc(p.Allowlist, func(entry string) bool {
			allowed, err := resolve(entry, "")
			return err == nil && allowed == path
		})
	}
	return false
}
