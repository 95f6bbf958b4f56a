package plan

// Mask is a tree of what a decoder keeps of an object: fields of structs by their names in JSON, and keys of maps. A
// nil *Mask keeps everything.
type Mask struct {
	names map[string]*Mask
	// every means that all keys of a map are kept, and each what is kept of the values that names does not have.
	every bool
	each  *Mask
}

// Step is a part of a path: the name of a field, a key of a map, or Every key.
type Step struct {
	Name  string
	IsKey bool // or Every
	Every bool
}

// Child returns what is kept below a name, and whether the name is kept.
func (m *Mask) Child(name []byte) (child *Mask, kept bool) {
	if child, kept = m.names[string(name)]; kept {
		return child, true
	}
	return m.each, m.every
}

// Add adds what is at a path, with everything below. It returns the changed Mask, which is nil if it keeps everything.
func (m *Mask) Add(path []Step) *Mask {
	if m == nil || len(path) == 0 {
		return nil
	}
	if path[0].Every {
		for name, child := range m.names {
			m.names[name] = child.Add(path[1:])
		}
		below := m.each
		if !m.every {
			below = &Mask{}
		}
		m.every, m.each = true, below.Add(path[1:])
		return m
	}
	below, kept := m.names[path[0].Name]
	switch {
	case kept:
	case m.every:
		below = m.each.clone()
	default:
		below = &Mask{}
	}
	if m.names == nil {
		m.names = map[string]*Mask{}
	}
	m.names[path[0].Name] = below.Add(path[1:])
	return m
}

func (m *Mask) clone() *Mask {
	if m == nil {
		return nil
	}
	c := &Mask{names: make(map[string]*Mask, len(m.names)), every: m.every, each: m.each.clone()}
	for name, child := range m.names {
		c.names[name] = child.clone()
	}
	return c
}

// Children yields what is kept below each name, and of each value of a map.
func (m *Mask) Children(yield func(*Mask) bool) {
	for _, child := range m.names {
		if !yield(child) {
			return
		}
	}
	if m.every {
		yield(m.each)
	}
}
