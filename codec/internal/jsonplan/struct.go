package jsonplan

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/leatproject/leat/codec/internal/plan"
)

// structPlan decodes into the structs of one type.
type structPlan struct {
	fields []structField
	table  []*structField // open addressing, by hashName
	// quantity is set if the struct has a quantity. One that the text does not have is zero, and its String stores what
	// it returns too.
	quantity bool
}

// structField is a member name and the struct field that it is decoded into.
type structField struct {
	Member
	decode decode
	share  shareKind
	part   plan.PartKind // of values that objects share
	place  uint64        // of a struct that objects share, in Reader.structs
}

func (c *compiler) structOf(t reflect.Type) *structPlan {
	p := &structPlan{quantity: plan.HasQuantity(t)}
	c.structs[t] = p
	for _, m := range members(t) {
		p.fields = append(p.fields, structField{Member: m, decode: c.field(m), share: shareOf(m), part: plan.NewPartKind(false)})
	}
	p.index()
	return p
}

// field returns the decoder of a field. It cannot call methods of a field behind an unexported name.
func (c *compiler) field(m Member) decode {
	var d decode
	if m.hidden && m.Type.Kind() == reflect.Struct {
		d = c.structOf(m.Type).decode
	} else {
		d = c.compile(m.Type)
	}
	if m.quoted {
		d = quoted(d, m.Type)
	}
	return d
}

// index fills the table, which is at most a quarter full.
func (p *structPlan) index() {
	size := 4
	for size < 4*len(p.fields) {
		size *= 2
	}
	p.table = make([]*structField, size)
	for i := range p.fields {
		at := hashName([]byte(p.fields[i].Name))
		for p.table[at&(size-1)] != nil {
			at++
		}
		p.table[at&(size-1)] = &p.fields[i]
	}
}

// hashName combines what differs most between field names: the length and a few letters.
func hashName(name []byte) int {
	n := len(name)
	if n == 0 {
		return 0
	}
	return int((uint32(n) | uint32(name[0])<<8 | uint32(name[n-1])<<16 | uint32(name[n/2])<<24) * 0x9E3779B1 >> 16)
}

// find returns the field with the given name, or nil.
func (p *structPlan) find(name []byte) *structField {
	for at := hashName(name); ; at++ {
		f := p.table[at&(len(p.table)-1)]
		if f == nil || f.Name == string(name) {
			return f
		}
	}
}

func (p *structPlan) decode(r *Reader, v reflect.Value) error {
	switch r.Kind() {
	case '{':
	case 'n':
		return setNull(r, v)
	default:
		return r.mismatch(v.Type())
	}
	if p.quantity {
		r.quantities++
	}
	for end := r.Enter(); r.K < end; {
		if err := r.breaks.Pause(r.K); err != nil {
			return err
		}
		f := p.find(r.Content())
		if f == nil {
			r.Skip()
			continue
		}
		to, err := f.of(v)
		switch {
		case err != nil:
		case r.parts != nil && f.share != shareNothing:
			err = f.decodeShared(r, to)
		default:
			err = f.decode(r, to)
		}
		if err != nil {
			return plan.Within(f.Name, err)
		}
	}
	r.K++
	return nil
}

// withoutManagedFields returns a copy of p, the plan of an object, that skips metadata.managedFields. It returns nil if
// the metadata is not decoded into fields of its own.
func (c *compiler) withoutManagedFields(p *structPlan) decode {
	without := &structPlan{fields: slices.Clone(p.fields), quantity: p.quantity}
	for i := range without.fields {
		f := &without.fields[i]
		if f.Name != "metadata" {
			continue
		}
		t, isPointer := f.Type, f.Type.Kind() == reflect.Pointer
		if isPointer {
			t = t.Elem()
		}
		metadata, ok := c.structs[t]
		if !ok || readsItself(t) || isPointer && f.Type.Implements(unmarshalerType) {
			return nil
		}
		pruned := &structPlan{quantity: metadata.quantity}
		for _, f := range metadata.fields {
			if f.Name != "managedFields" {
				pruned.fields = append(pruned.fields, f)
			}
		}
		pruned.index()
		inner := compiler{decoders: map[reflect.Type]*decode{}, structs: c.structs, maps: c.maps}
		d := decode(pruned.decode)
		inner.decoders[t] = &d
		f.decode = inner.compile(f.Type)
	}
	without.index()
	return without.decode
}

// Member is a name that encoding/json decodes into a struct.
type Member struct {
	Name   string
	Index  []int // as for reflect.Value.FieldByIndex
	Type   reflect.Type
	tagged bool // the name comes from a tag
	quoted bool // with the option string
	hidden bool // an embedded struct whose own name is not exported, but which has a name in JSON
}

// of returns the member's field in the struct v. It creates the embedded structs on the way.
func (m *Member) of(v reflect.Value) (reflect.Value, error) {
	if len(m.Index) == 1 {
		return v.Field(m.Index[0]), nil
	}
	for i, at := range m.Index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !v.CanSet() {
					return v, fmt.Errorf("an embedded pointer to %s cannot be set from outside of its package", v.Type().Elem())
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(at)
	}
	return v, nil
}

// level is a struct whose fields are visited, and the path to it.
type level struct {
	typ   reflect.Type
	index []int
}

// members returns the names that are decoded into a struct, in the order of its fields, by the rules of encoding/json.
// Fields of an embedded struct without a JSON name count as fields of the outer struct. Among fields of one name, the
// outermost wins, then the one with a tag; if several remain, all are ignored.
func members(t reflect.Type) []Member {
	var found []Member
	visited := map[reflect.Type]bool{}
	for levels, times := []level{{typ: t}}, map[reflect.Type]int{}; len(levels) > 0; {
		var next []level
		nextTimes := map[reflect.Type]int{}
		for _, l := range levels {
			if visited[l.typ] {
				continue
			}
			visited[l.typ] = true
			for i := range l.typ.NumField() {
				m, inner, ok := memberOf(l.typ.Field(i))
				if !ok {
					continue
				}
				m.Index = append(slices.Clone(l.index), i)
				switch {
				case inner == nil && times[l.typ] > 1:
					found = append(found, m, m) // added twice, so that it is ignored
				case inner == nil:
					found = append(found, m)
				default:
					if nextTimes[inner]++; nextTimes[inner] == 1 {
						next = append(next, level{inner, m.Index})
					}
				}
			}
		}
		levels, times = next, nextTimes
	}
	return dominant(found)
}

// memberOf classifies a field: a member, or an embedded struct whose fields are visited instead.
func memberOf(f reflect.StructField) (m Member, inner reflect.Type, ok bool) {
	tag := f.Tag.Get("json")
	t := f.Type
	if f.Anonymous && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if tag == "-" || !f.IsExported() && (!f.Anonymous || t.Kind() != reflect.Struct) {
		return m, nil, false
	}
	name, options, _ := strings.Cut(tag, ",")
	if !isValidName(name) {
		name = ""
	}
	if name == "" && f.Anonymous && t.Kind() == reflect.Struct && (f.Type.Kind() != reflect.Pointer || f.Type.Name() == "") {
		return m, t, true
	}
	m = Member{Name: name, Type: f.Type, tagged: name != "", hidden: !f.IsExported()}
	if name == "" {
		m.Name = f.Name
	}
	m.quoted = strings.Contains(","+options+",", ",string,") && canBeQuoted(f.Type)
	return m, nil, true
}

// canBeQuoted reports whether the option string has an effect on the type.
func canBeQuoted(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return false
}

// isValidName reports whether encoding/json accepts a name from a tag.
func isValidName(name string) bool {
	for _, c := range name {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) {
			return false
		}
	}
	return name != ""
}

// dominant returns the members that encoding/json decodes, among members that may have equal names: those of a lower
// rank than all others of their name.
func dominant(found []Member) []Member {
	var out []Member
	for i, m := range found {
		unique := true
		for k := range found {
			unique = unique && (i == k || !m.yieldsTo(&found[k]))
		}
		if unique {
			out = append(out, m)
		}
	}
	// sort.Slice is slower than slices.SortFunc, and adds 13 KB less to a program.
	sort.Slice(out, func(i, j int) bool { return slices.Compare(out[i].Index, out[j].Index) < 0 })
	return out
}

// yieldsTo reports whether m is not decoded because of another member.
func (m *Member) yieldsTo(other *Member) bool {
	return m.Name == other.Name && m.rank() >= other.rank()
}

// rank orders members of one name: the lower rank wins. Outer members come first, then those with a tag.
func (m *Member) rank() int {
	if m.tagged {
		return 2 * len(m.Index)
	}
	return 2*len(m.Index) + 1
}

// Members returns the members that are decoded into the struct t. It returns none if t has its own UnmarshalJSON.
func Members(t reflect.Type) []Member {
	if readsItself(t) {
		return nil
	}
	return members(t)
}
