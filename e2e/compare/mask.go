package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// mask replaces what differs between any two servers: times, UIDs, versions, generated names, addresses. A UID or a
// version becomes a name that says whose it is and which one, so that equal ones stay equal and different ones stay
// different. A mask belongs to one scenario on one server.
type mask struct {
	address  string
	folder   string
	replaced []replacement // of generated names
	uids     map[string]string
	versions map[string]string
	names    map[string]string // generated ones
	counts   map[string]int
}

type replacement struct {
	needs string // a text without it is not searched, because searching a large document takes seconds
	old   *regexp.Regexp
	new   string
}

var patterns = []replacement{
	{":", regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z`), "<microtime>"},
	{":", regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)`), "<time>"},
	{":", regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4} \w+( m=\S+)?`), "<time>"},
	{":", regexp.MustCompile(`[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}`), "<time>"},
	{"too old", regexp.MustCompile(`(too old resource version: )\d+ \(\d+\)`), "${1}<version> (<version>)"},
	{"ersion", regexp.MustCompile(`(?i)(resource ?version\\*"?:? ?\\*"?)\d+`), "${1}<version>"},
	{"ersion in", regexp.MustCompile(`(?i)(resource ?version in (the )?(record|object meta)[: (]+)\d+`), "${1}<version>"},
	{"current: ", regexp.MustCompile(`(current: )\d+`), "${1}<version>"},
	{"10.0.0.", regexp.MustCompile(`\b10\.0\.0\.\d+\b`), "<address>"},
	{"eyJ", regexp.MustCompile(`\beyJ[\w-]+\.[\w-]+\.[\w-]+`), "<token>"},
	{"v1.3", regexp.MustCompile(`\bv1\.3[67]\.\d+[-+\w.]*`), "<git version>"},
	{"go1.", regexp.MustCompile(`\bgo1\.\d+\.\d+`), "<go version>"},
	{"hash=", regexp.MustCompile(`hash=[0-9A-F]{128}`), "hash=<hash>"},
	{"s", regexp.MustCompile(`\b(\d+m)?\d+s\b`), "<age>"},
	{"m", regexp.MustCompile(`(^| {2,})[2-9]m\b`), "${1}<age>"}, // of a column; elsewhere it may be processor time
}

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

func newMask(url, folder string) *mask {
	return &mask{
		address: strings.TrimPrefix(url, "https://"), folder: folder,
		uids: map[string]string{}, versions: map[string]string{}, names: map[string]string{}, counts: map[string]int{},
	}
}

// answer returns a copy of an answer after masking.
func (m *mask) answer(a *Answer) *Answer {
	masked := *a
	m.learn(a.Value)
	masked.Header = map[string]string{}
	for name, value := range a.Header {
		masked.Header[name] = m.text(value)
	}
	masked.Value = m.value("", a.Value)
	masked.Text, masked.Errors = spaced(m.text(a.Text)), spaced(m.text(a.Errors))
	masked.Failure = m.text(a.Failure)
	return &masked
}

var spaces = regexp.MustCompile(` {2,}|\t+`)

// spaced makes the distance between columns equal, because it depends on the length of ages and names.
func spaced(text string) string {
	lines := strings.Split(spaces.ReplaceAllString(text, "  "), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// learn finds the UID, the version and the generated name of every object in a value, in the order of keys.
func (m *mask) learn(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			m.learn(item)
		}
	case map[string]any:
		if meta, ok := v["metadata"].(map[string]any); ok {
			m.learnMetadata(meta)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			m.learn(v[key])
		}
	}
}

func (m *mask) learnMetadata(meta map[string]any) {
	name, _ := meta["name"].(string)
	if name == "" {
		return
	}
	prefix, _ := meta["generateName"].(string)
	prefix = cut(prefix)
	if suffix, ok := strings.CutPrefix(name, prefix); ok && prefix != "" && len(suffix) == 5 && m.names[name] == "" {
		m.names[name] = prefix + m.numbered("suffix", prefix)
	}
	if known := m.names[name]; known != "" {
		name = known
	}
	if uid, ok := meta["uid"].(string); ok && uid != "" && m.uids[uid] == "" {
		m.uids[uid] = m.numbered("uid", name)
	}
	if version, ok := meta["resourceVersion"].(string); ok && isVersion(version) && m.versions[version] == "" {
		m.versions[version] = m.numbered("version", name)
	}
}

var generateName = regexp.MustCompile(`generateName"?: ?"?([\w.-]+)`)

// learnPrefixes finds generateName in the body of a request, because errors and outputs contain the name alone.
func (m *mask) learnPrefixes(body string) {
	if !strings.Contains(body, "generateName") { // bodies have up to four megabytes
		return
	}
	for _, found := range generateName.FindAllStringSubmatch(body, -1) {
		prefix := cut(found[1])
		m.replaced = append(m.replaced, replacement{prefix, regexp.MustCompile(regexp.QuoteMeta(prefix) + `[a-z0-9]{5}\b`), prefix + "<suffix>"})
	}
}

// cut returns the part of a generateName that fits into a name, whose last five letters are generated.
func cut(prefix string) string { return prefix[:min(len(prefix), 58)] }

// numbered returns a name for one of several UIDs or versions of an object.
func (m *mask) numbered(what, of string) string {
	m.counts[what+of]++
	return fmt.Sprintf("<%s %d of %s>", what, m.counts[what+of], of)
}

func isVersion(text string) bool {
	n, err := strconv.ParseUint(text, 10, 64)
	return err == nil && n > 0
}

// value returns a copy of a value after masking. key is the name of the field that contains it.
func (m *mask) value(key string, value any) any {
	switch v := value.(type) {
	case []any:
		masked := make([]any, len(v))
		for i, item := range v {
			masked[i] = m.value(key, item)
		}
		switch key {
		case "managedFields":
			sortManagers(masked)
		case "resourceRules", "nonResourceRules": // kube-apiserver lists them in random order
			sort.SliceStable(masked, func(i, j int) bool { return fmt.Sprint(masked[i]) < fmt.Sprint(masked[j]) })
		}
		return masked
	case map[string]any:
		masked := make(map[string]any, len(v))
		for name, field := range v {
			masked[m.text(name)] = m.value(name, field)
		}
		// A list, a bookmark or a token has the version of the whole server, and other scenarios write too.
		if version, ok := v["resourceVersion"].(string); ok && key == "metadata" && v["name"] == nil && isVersion(version) {
			masked["resourceVersion"] = "<version>"
		}
		return masked
	case string:
		return m.field(key, v)
	case json.Number:
		if n, err := v.Int64(); err == nil && key == "nodePort" && n >= 30000 {
			return "<port>"
		}
		return v
	}
	return value
}

func (m *mask) field(key, text string) string {
	switch {
	case key == "resourceVersion" && isVersion(text):
		if known := m.versions[text]; known != "" {
			return known
		}
		return "<version>"
	case key == "serverAddress" && strings.Contains(text, ":"):
		return "<server>"
	case key == "continue" && text != "":
		return "<continue>"
	}
	return m.text(text)
}

// text returns a text after masking.
func (m *mask) text(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, m.address, "<server>"), m.folder, "<folder>")
	if strings.Count(text, "-") >= 4 {
		text = m.maskUIDs(text)
	}
	for name, masked := range m.names {
		text = strings.ReplaceAll(text, name, masked)
	}
	for _, r := range m.replaced {
		text = r.apply(text)
	}
	if !strings.ContainsAny(text, "0123456789") {
		return text
	}
	for _, r := range patterns {
		text = r.apply(text)
	}
	return text
}

func (m *mask) maskUIDs(text string) string {
	return uidPattern.ReplaceAllStringFunc(text, func(uid string) string {
		if known := m.uids[uid]; known != "" {
			return known
		}
		return "<uid>"
	})
}

func (r replacement) apply(text string) string {
	if !strings.Contains(text, r.needs) {
		return text
	}
	return r.old.ReplaceAllString(text, r.new)
}

// sortManagers sorts managedFields, which the servers sort by time.
func sortManagers(list []any) {
	key := func(i int) string {
		entry, _ := list[i].(map[string]any)
		return fmt.Sprint(entry["manager"], entry["operation"], entry["subresource"], entry["apiVersion"])
	}
	sort.SliceStable(list, func(i, j int) bool { return key(i) < key(j) })
}
