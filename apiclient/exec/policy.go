package exec

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// PolicyType says how a Policy decides.
type PolicyType string

// The types. An empty one is AllowAll.
const (
	AllowAll  PolicyType = "AllowAll"  // any command may run
	DenyAll   PolicyType = "DenyAll"   // none may
	Allowlist PolicyType = "Allowlist" // those of the list may
)

// Policy says which commands a program lets a kubeconfig run. It follows KEP-3104, whose kuberc has the same policy for
// kubectl, and corresponds to PluginPolicy of client-go.
type Policy struct {
	Type PolicyType
	// Allowlist are commands by name or by absolute path. A name means what PATH leads to when the plugin is to run. It
	// must be empty unless Type is Allowlist, and must not be if it is: nothing is allowed by mistake.
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

// allows decides about a command by the path that it was resolved to, and that will be run.
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
