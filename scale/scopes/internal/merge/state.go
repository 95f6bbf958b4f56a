package merge

import (
	"slices"

	"github.com/leatproject/leat/api"
)

// chunk is the number of versions that are copied when one of them changes.
const chunk = 16

// State is the note of a batch: the streams that the state after the batch was read from, and the version of each. It
// never changes. The next State shares its unchanged parts.
type State struct {
	byNamespace map[string]namespaceStreams
	chunks      []*[chunk]streamVersion // by slot
	oldest      string                  // see oldestVersion
	applied     []chan struct{}
}

type streamVersion struct {
	used    bool // false if the slot is free
	listed  bool
	version string
}

// namespaceStreams are the streams with one namespace.
type namespaceStreams struct {
	slots     []int
	selectors []api.Selector
}

// nextState sets state to the one after the published changes. It takes time in proportion to the number of changed
// versions, and to the number of streams if some were added or removed, or if the oldest version has changed.
func (m *Merger[T]) nextState() {
	if len(m.published) == 0 && !m.layout && len(m.applied) == 0 && len(m.state.applied) == 0 {
		return
	}
	last := m.state
	next := &State{byNamespace: last.byNamespace, chunks: slices.Clone(last.chunks), oldest: last.oldest, applied: m.applied}
	m.state, m.applied = next, nil
	newOldest := m.layout || next.oldest == ""
	copied := map[int]bool{}
	for _, s := range m.published {
		s.pending = false
		at := s.slot / chunk
		for at >= len(next.chunks) {
			copied[len(next.chunks)] = true
			next.chunks = append(next.chunks, &[chunk]streamVersion{})
		}
		if !copied[at] {
			own := *next.chunks[at]
			next.chunks[at], copied[at] = &own, true
		}
		v := &next.chunks[at][s.slot%chunk]
		before := v.version
		switch m.slots[s.slot] {
		case s:
			if s.held == 0 {
				s.visible = s.reached
			}
			*v = streamVersion{true, s.isListed, s.visible}
		case nil:
			*v = streamVersion{}
		}
		order, ordered := api.CompareVersions(v.version, next.oldest)
		newOldest = newOldest || before == next.oldest || !ordered || order < 0
	}
	m.published = m.published[:0]
	if m.layout {
		m.layout = false
		next.byNamespace = make(map[string]namespaceStreams, len(m.byNamespace))
		for namespace, streams := range m.byNamespace {
			var n namespaceStreams
			for _, s := range streams {
				n.slots, n.selectors = append(n.slots, s.slot), append(n.selectors, s.selector)
			}
			next.byNamespace[namespace] = n
		}
	}
	if newOldest {
		next.oldest = next.oldestOfAll()
	}
}

// Applied closes the channels of the lists and removals that the batch of this state contains. It must be called once,
// when the batch is in the cache.
func (s *State) Applied() {
	for _, c := range s.applied {
		close(c)
	}
}

// streamsOf calls f with each stream that can have objects of a namespace, until f returns false.
func (s *State) streamsOf(namespace string, f func(streamVersion) bool) {
	for _, slot := range s.byNamespace[namespace].slots {
		if !f(s.chunks[slot/chunk][slot%chunk]) {
			return
		}
	}
	if namespace != "" {
		for _, slot := range s.byNamespace[""].slots {
			if !f(s.chunks[slot/chunk][slot%chunk]) {
				return
			}
		}
	}
}

// Version returns the oldest version among the streams that can have objects of a namespace. It is empty if there is no
// such stream, if one of them has not listed yet, or if their versions have no order. The namespace of cluster-scoped
// objects is empty.
func (s *State) Version(namespace string) string {
	var oldest oldestVersion
	s.streamsOf(namespace, func(v streamVersion) bool {
		oldest.add(v.version)
		return !oldest.bad
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

// Listed reports whether there are streams that can have objects of a namespace, and all of them have their first list.
func (s *State) Listed(namespace string) bool {
	found, all := false, true
	s.streamsOf(namespace, func(v streamVersion) bool {
		found, all = true, v.listed
		return all
	})
	return found && all
}

// Selectors returns the selector of each stream that can have objects of a namespace. The caller must not change the
// slice.
func (s *State) Selectors(namespace string) []api.Selector {
	own, all := s.byNamespace[namespace].selectors, s.byNamespace[""].selectors
	switch {
	case namespace == "" || len(own) == 0:
		return all
	case len(all) == 0:
		return own
	}
	return slices.Concat(own, all)
}

// oldestOfAll returns the oldest version of all streams. It is empty in the same cases as Version.
func (s *State) oldestOfAll() string {
	var oldest oldestVersion
	for _, c := range s.chunks {
		for _, v := range c {
			if v.used {
				oldest.add(v.version)
			}
			if oldest.bad {
				return ""
			}
		}
	}
	return oldest.version
}
