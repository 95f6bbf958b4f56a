package deltafifo

import (
	"slices"

	"github.com/leatproject/leat/api"
)

// chunk is the number of versions that are copied when one of them changes.
const chunk = 16

// scopeVersions is the Scopes of a batch. It never changes; the next one shares with it what has not changed.
type scopeVersions struct {
	byNamespace map[string]namespaceScopes
	chunks      []*[chunk]scopeVersion // by slot
}

type scopeVersion struct {
	used    bool // false if the slot is free
	listed  bool
	version string
}

// namespaceScopes are the scopes with one namespace.
type namespaceScopes struct {
	slots     []int
	selectors []api.Selector
}

// nextVersions returns the versions after the published changes. It takes time in proportion to the number of changed
// versions, and to the number of scopes if some were added or removed.
func (m *Scopes[T]) nextVersions() *scopeVersions {
	next := &scopeVersions{byNamespace: m.versions.byNamespace, chunks: slices.Clone(m.versions.chunks)}
	copied := map[int]bool{}
	for _, s := range m.published {
		s.pending = false
		at := s.slot / chunk
		for at >= len(next.chunks) {
			copied[len(next.chunks)] = true
			next.chunks = append(next.chunks, &[chunk]scopeVersion{})
		}
		if !copied[at] {
			own := *next.chunks[at]
			next.chunks[at], copied[at] = &own, true
		}
		switch m.slots[s.slot] {
		case s:
			if s.held == 0 {
				s.visible = s.reached
			}
			next.chunks[at][s.slot%chunk] = scopeVersion{true, s.isListed, s.visible}
		case nil:
			next.chunks[at][s.slot%chunk] = scopeVersion{}
		}
	}
	m.published = m.published[:0]
	if m.layout {
		m.layout = false
		next.byNamespace = make(map[string]namespaceScopes, len(m.byNamespace))
		for namespace, scopes := range m.byNamespace {
			var n namespaceScopes
			for _, s := range scopes {
				n.slots, n.selectors = append(n.slots, s.slot), append(n.selectors, s.selector)
			}
			next.byNamespace[namespace] = n
		}
	}
	return next
}

// scopesOf calls f with each scope that can have objects of a namespace, until f returns false.
func (v *scopeVersions) scopesOf(namespace string, f func(scopeVersion) bool) {
	for _, slot := range v.byNamespace[namespace].slots {
		if !f(v.chunks[slot/chunk][slot%chunk]) {
			return
		}
	}
	if namespace != "" {
		for _, slot := range v.byNamespace[""].slots {
			if !f(v.chunks[slot/chunk][slot%chunk]) {
				return
			}
		}
	}
}

// Version implements api.Scopes.
func (v *scopeVersions) Version(namespace string) string {
	var oldest oldestVersion
	v.scopesOf(namespace, func(s scopeVersion) bool {
		oldest.add(s.version)
		return true
	})
	return oldest.version
}

// oldestVersion is the oldest one of the versions that were added.
type oldestVersion struct {
	version  string
	has, bad bool // bad means that a version was empty or had no order
}

func (o *oldestVersion) add(version string) {
	order, ok := api.CompareVersions(version, o.version)
	switch {
	case o.bad:
	case version == "" || o.has && !ok:
		*o = oldestVersion{bad: true}
	case !o.has || order < 0:
		o.version, o.has = version, true
	}
}

// Listed implements api.Scopes.
func (v *scopeVersions) Listed(namespace string) bool {
	found, all := false, true
	v.scopesOf(namespace, func(s scopeVersion) bool {
		found, all = true, s.listed
		return all
	})
	return found && all
}

// Selectors implements api.Scopes.
func (v *scopeVersions) Selectors(namespace string) []api.Selector {
	own, all := v.byNamespace[namespace].selectors, v.byNamespace[""].selectors
	switch {
	case namespace == "" || len(own) == 0:
		return all
	case len(all) == 0:
		return own
	}
	return slices.Concat(own, all)
}

// Oldest implements api.Scopes.
func (v *scopeVersions) Oldest() string {
	var oldest oldestVersion
	for _, c := range v.chunks {
		for _, s := range c {
			if s.used {
				oldest.add(s.version)
			}
		}
	}
	return oldest.version
}
