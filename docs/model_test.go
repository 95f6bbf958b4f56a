package docs_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

var installing sync.Mutex // tests run beside each other, and npm removes what it finds

// quintFolder returns a folder with quint, which comes from npm at the version of the lock file. It is in the user's
// cache. Without make model the test is skipped, because go test must need neither the network nor a minute.
func quintFolder(t *testing.T) string {
	t.Helper()
	if os.Getenv("LEAT_MODEL") == "" {
		t.Skip("make model runs it")
	}
	installing.Lock()
	defer installing.Unlock()
	lock := must.Get(os.ReadFile("model/package-lock.json"))(t)
	folder := filepath.Join(must.Get(os.UserCacheDir())(t), fmt.Sprintf("leat-model-%x", sha256.Sum256(lock))[:27])
	if _, err := os.Stat(filepath.Join(folder, "installed")); err != nil {
		if _, err := exec.LookPath("npm"); err != nil {
			t.Skip("npm is not installed (apt-get install nodejs npm)")
		}
		require.NoError(t, os.MkdirAll(folder, 0o755))
		for _, name := range []string{"package.json", "package-lock.json"} {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), must.Get(os.ReadFile(filepath.Join("model", name)))(t), 0o644))
		}
		install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
		install.Dir = folder
		output, err := install.CombinedOutput()
		require.NoError(t, err, "install quint from npm into %s: %s", folder, output)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "installed"), nil, 0o644))
	}
	return folder
}

// quint runs a command of quint in a folder that contains the specification and another module. The evaluator in
// TypeScript is part of the package from npm. The default one, in Rust, is downloaded from GitHub.
func quint(t *testing.T, specification, module string, args ...string) (output string, err error) {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "informer.qnt"), []byte(specification), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "transcripts.qnt"), []byte(module), 0o644))
	c := exec.CommandContext(t.Context(), filepath.Join(quintFolder(t), "node_modules", ".bin", "quint"), append(args, "--backend=typescript")...)
	c.Dir = folder
	text, err := c.CombinedOutput()
	return string(text), err
}

func specification(t *testing.T) string {
	t.Helper()
	return string(must.Get(os.ReadFile("model/informer.qnt"))(t))
}

// verdicts returns for each run whether it is a run of the specification.
func verdicts(t *testing.T, specification string, runs map[string]string) map[string]bool {
	t.Helper()
	module := "module transcripts {\n  import informer.* from \"./informer\"\n"
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		module += runs[name]
	}
	report := filepath.Join(t.TempDir(), "report.json")
	output, _ := quint(t, specification, module+"}\n", "test", "--max-samples=1", "--out="+report, "transcripts.qnt")
	var found struct {
		Passed, Failed []string
		Errors         []struct{ Explanation string }
	}
	text, err := os.ReadFile(report)
	require.NoError(t, err, output)
	require.NoError(t, json.Unmarshal(text, &found))
	passed := map[string]bool{}
	for _, name := range found.Passed {
		passed[name] = true
	}
	for _, name := range found.Failed {
		passed[name] = false
	}
	require.Equal(t, len(runs), len(passed), "%.3000s\n%.3000v", output, found.Errors)
	return passed
}

func transcripts(t *testing.T) map[string]transcript {
	t.Helper()
	all := map[string]transcript{}
	for _, path := range must.Get(filepath.Glob("../informer/testdata/*.txt"))(t) {
		all[strings.TrimSuffix(filepath.Base(path), ".txt")] = readTranscript(t, path)
	}
	require.NotEmpty(t, all)
	return all
}

// TestModelAcceptsTranscripts checks that each transcript of the informer is a run of the specification.
func TestModelAcceptsTranscripts(t *testing.T) {
	t.Parallel()
	runs := map[string]string{}
	for name, all := range transcripts(t) {
		runs[name+"Test"] = all.run(t, name+"Test")
	}
	for name, passed := range verdicts(t, specification(t), runs) {
		if !passed {
			t.Errorf("%s is no run of the specification", name)
		}
	}
}

// harmless are lines that a client may lack: the event of a WatchList that fails, and the events of a server that
// repeats and delays them.
var harmless = map[string]string{"no_end_of_the_initial_list": "ADDED default/a version 11", "duplicates": "apiclient"}

// TestModelRefusesChangedTranscripts drops each line of a transcript that shows an event or a change, and swaps two
// events of a watch or two changes of one object.
func TestModelRefusesChangedTranscripts(t *testing.T) {
	t.Parallel()
	everyChange := os.Getenv("LEAT_MODEL") == "all" // CI takes a fifth of them, because each takes half a second
	runs, changed, turn := map[string]string{}, map[string]string{}, 0
	for name, all := range transcripts(t) {
		for i, s := range all {
			for j, line := range s.lines {
				if skip, ok := harmless[name]; ok && strings.Contains(line, skip) {
					continue
				}
				add := func(change string, lines []string) {
					other := slices.Clone(all[:i+1]) // a command later, a change may be without effect
					other[i].lines = lines
					id := fmt.Sprintf("m%dTest", len(runs))
					runs[id], changed[id] = other.run(t, id), change+" in "+name+": "+line
				}
				if turn++; !everyChange && turn%5 != 0 {
					continue
				}
				if shows(s, line) {
					add("drop", slices.Delete(slices.Clone(s.lines), j, j+1))
				}
				if j+1 < len(s.lines) && ordered(s.lines[:j], line, s.lines[j+1]) {
					swapped := slices.Clone(s.lines)
					swapped[j], swapped[j+1] = swapped[j+1], swapped[j]
					add("swap", swapped)
				}
			}
		}
	}
	for id, passed := range verdicts(t, specification(t), runs) {
		if passed {
			t.Errorf("%s", changed[id])
		}
	}
	t.Logf("%d changed transcripts are refused", len(runs))
}

// shows reports whether a line shows an event or a change. A resync and a batch without changes show none.
func shows(s step, line string) bool {
	switch stage, _, what := columns(line); stage {
	case "apiclient":
		return wireEvent.MatchString(what) || bookmark.MatchString(what)
	case "cache":
		return slices.ContainsFunc(s.lines, func(l string) bool { return strings.Contains(l, " deltafifo ") })
	default:
		return stage == "deltafifo" || stage == "handler" && !strings.HasSuffix(what, " resync")
	}
}

// ordered reports whether the order of two lines is promised: two events of a watch, or two changes of an object.
func ordered(before []string, a, b string) bool {
	stage, who, what := columns(a)
	stage2, who2, what2 := columns(b)
	switch {
	case stage != stage2 || who != who2 || what == what2:
		return false
	case stage == "apiclient":
		begun := false
		for _, line := range before {
			begun = strings.Contains(line, "with the initial state") || begun && !strings.Contains(line, "is complete")
		}
		return !begun && wireEvent.MatchString(what) && wireEvent.MatchString(what2)
	}
	return (stage == "handler" || stage == "deltafifo") && strings.Fields(strings.ReplaceAll(what, ",", ""))[1] == strings.Fields(strings.ReplaceAll(what2, ",", ""))[1]
}

// TestModelKeepsItsPromises runs the specification at random and checks the promises after each step.
func TestModelKeepsItsPromises(t *testing.T) {
	t.Parallel()
	output, err := quint(t, specification(t), "", "run", "--invariant=promises", "--max-steps=40", "--max-samples=200", "--seed=1", "informer.qnt")
	require.NoError(t, err, output)
	require.Contains(t, output, "No violation found")
}

// TestModelNeedsItsRules removes a rule of the specification. A run is then possible that breaks a promise.
func TestModelNeedsItsRules(t *testing.T) {
	t.Parallel()
	modules, runs, rules := "", map[string]string{}, map[string]string{}
	for rule, broken := range map[string]struct{ without, run string }{
		"client.queue[k - 1].version != client.queue[k].version": {"true", // a batch may end within a list
			`.then(create("a", 1, 11)).then(create("b", 1, 12)).then(watchList(0)).then(initialEvent("a", 11))
			.then(initialEvent("b", 12)).then(initialEnd(12)).then(publish(1))`},
		"skipped.length() == 0": {"true", // a watch may lose an event
			`.then(watchList(0)).then(initialEnd(10)).then(create("a", 1, 11)).then(create("b", 1, 12))
			.then(event(Added, "b", 12)).then(publish(1))`},
		"known.get(n).uid != list.get(n).uid": {"false", // a list hides that an object is another one
			`.then(create("a", 1, 11)).then(watchList(0)).then(initialEvent("a", 11)).then(initialEnd(11)).then(publish(1))
			.then(join("h", false)).then(disconnect).then(remove("a", 12)).then(create("a", 1, 13)).then(watchList(11))
			.then(initialEvent("a", 13)).then(initialEnd(13)).then(publish(1))`},
	} {
		// Each changed specification is a module, and so is its run. One start of quint for all saves a minute.
		i := len(runs) / 2
		run := "start(10)" + broken.run + ".expect(not(promises))\n"
		without := strings.Replace(specification(t), rule, broken.without, 1)
		modules += strings.Replace(without, "module informer {", fmt.Sprintf("module without%d {", i), 1)
		modules += fmt.Sprintf("module broken%d {\n  import without%d.*\n  run broken = %s}\n", i, i, run)
		possible, impossible := fmt.Sprintf("broken%dTest", i), fmt.Sprintf("whole%dTest", i)
		runs[possible] = fmt.Sprintf("  import broken%d from \"./informer\"\n  run %s = broken%d::broken\n", i, possible, i)
		runs[impossible] = fmt.Sprintf("  run %s = %s", impossible, run)
		rules[possible], rules[impossible] = rule, rule
	}
	for name, possible := range verdicts(t, specification(t)+modules, runs) {
		require.Equal(t, strings.HasPrefix(name, "broken"), possible, rules[name])
	}
}

// transcript is a file of informer/testdata: commands, and the lines that follow each.
type transcript []step

type step struct {
	command string
	lines   []string
}

func readTranscript(t *testing.T, path string) (all transcript) {
	t.Helper()
	for line := range strings.Lines(string(must.Get(os.ReadFile(path))(t))) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "> "):
			all = append(all, step{command: line[2:]})
		case strings.HasPrefix(line, "  ") && len(all) > 0:
			last := &all[len(all)-1]
			last.lines = append(last.lines, line)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// replay turns a transcript into a run of the model. It keeps what a transcript does not repeat: the version of the
// server, what the selector selects, and which handlers are busy.
type replay struct {
	t         *testing.T
	out       strings.Builder
	version   int // of the server
	backup    int
	sizes     map[string]int
	selected  map[string]bool
	selector  string
	malformed int      // how many of the next updates cannot be decoded
	unread    []string // such events, which a transcript does not show
	beginning bool     // a WatchList has not ended yet
	paging    bool     // a list has not ended yet
	min       int      // the oldest version that the list accepts
	probing   bool
	handlers  map[string]bool // true: busy
}

func (r *replay) then(format string, args ...any) {
	fmt.Fprintf(&r.out, "    .then("+format+")\n", args...)
}

// run returns the text of a run with this name.
func (all transcript) run(t *testing.T, name string) string {
	r := &replay{t: t, version: 10, sizes: map[string]int{}, selected: map[string]bool{}, handlers: map[string]bool{}}
	fmt.Fprintf(&r.out, "  run %s = start(10)\n", name)
	for _, s := range all {
		fmt.Fprintf(&r.out, "    // > %s\n", s.command)
		for command := range strings.SplitSeq(strings.TrimPrefix(s.command, "together "), ";") {
			r.command(strings.Fields(command))
		}
		r.lines(s.lines)
		for _, h := range slices.Sorted(maps.Keys(r.handlers)) {
			if !r.handlers[h] {
				r.then("quiet(%q)", h)
			}
		}
		r.out.WriteString("    .expect(promises)\n")
	}
	return r.out.String()
}

func (r *replay) number(text string) int { return must.Get(strconv.Atoi(text))(r.t) }

func (r *replay) command(words []string) {
	switch words[0] {
	case "informer":
		for _, word := range words[1:] {
			if selector, ok := strings.CutPrefix(word, "selector="); ok {
				r.selector = selector
			}
		}
	case "create", "update":
		r.write(words[1], r.number(words[2]), words[3:])
	case "delete":
		for _, name := range words[1:] {
			r.drop(name)
		}
	case "backup":
		r.backup = r.version
	case "fault":
		r.fault(words[1:])
	case "handler":
		r.then("join(%q, %v)", words[1], slices.Contains(words, "coalesce"))
		r.handlers[words[1]] = slices.Contains(words, "stuck")
	case "release":
		r.handlers[words[1]] = false
	case "remove":
		r.then("leave(%q)", words[1])
		delete(r.handlers, words[1])
	}
}

// write is a create or an update. For the collection of the informer, an object that begins to match the selector is
// created, and one that stops to match it is deleted.
func (r *replay) write(name string, size int, labels []string) {
	_, exists := r.sizes[name]
	before, after := r.selected[name], r.selected[name]
	if !exists || len(labels) > 0 {
		after = r.selector == "" || slices.Contains(labels, r.selector)
	}
	r.version++
	r.sizes[name], r.selected[name] = size, after
	switch {
	case before && after:
		readable := r.malformed == 0
		if !readable {
			r.malformed--
			r.unread = append(r.unread, fmt.Sprintf("event(Updated, %q, %d)", name, r.version))
		}
		r.then("update(%q, %d, %d, %v)", name, size, r.version, readable)
	case after:
		r.then("create(%q, %d, %d)", name, size, r.version)
	case before:
		r.then("remove(%q, %d)", name, r.version)
	default:
		r.then("other(%d)", r.version)
	}
}

func (r *replay) drop(name string) {
	r.version++
	if r.selected[name] {
		r.then("remove(%q, %d)", name, r.version)
	} else {
		r.then("other(%d)", r.version)
	}
	delete(r.sizes, name)
	delete(r.selected, name)
}

func (r *replay) fault(words []string) {
	switch words[0] {
	case "compact":
		r.then("compact")
	case "restore":
		r.version = r.backup
		r.then("restore(%d)", r.backup)
	case "duplicate", "hold":
		r.then("misbehave")
	case "malform":
		r.malformed = r.number(strings.TrimPrefix(words[1], "times="))
	}
}

var (
	wireEvent  = regexp.MustCompile(`^(ADDED|MODIFIED|DELETED) default/(\S+) version (\d+)$`)
	bookmark   = regexp.MustCompile(`^BOOKMARK version (\d+)(: the initial state is complete)?$`)
	page       = regexp.MustCompile(`^(\d+) objects?, version (\d+)$`)
	request    = regexp.MustCompile(`^(list|watch) (with the initial state|any version|the newest version|the next page|from version (\d+))(?:, not older than version (\d+))?(, at most \d+)?$`)
	queued     = regexp.MustCompile(`^(Added|Updated|Deleted) (\S+?)(, final state unknown)?$`)
	cached     = regexp.MustCompile(`^objects: (\d+), version (\d+)$`)
	told       = regexp.MustCompile(`^(Added|Updated|Deleted) (\S+) (?:(\d+)→)?(\d+)( initial)?( resync)?( unknown)?$`)
	kindOfWire = map[string]string{"ADDED": "Added", "MODIFIED": "Updated", "DELETED": "Deleted"}
)

// columns returns the stage, the informer or handler, and the text of a line. A line of another kind has no stage.
func columns(line string) (stage, who, what string) {
	if len(line) < 34 {
		return "", "", ""
	}
	return strings.TrimSpace(line[10:21]), strings.TrimSpace(line[21:34]), line[34:]
}

// lines replays what the stages did: the requests, the queue and the cache, and the handlers.
func (r *replay) lines(lines []string) {
	var changes []string
	objects := ""
	for _, line := range lines {
		switch stage, who, what := columns(line); stage {
		case "apiclient":
			r.wire(what)
		case "deltafifo":
			m := queued.FindStringSubmatch(what)
			require.NotNil(r.t, m, line)
			changes = append(changes, fmt.Sprintf("{ kind: %s, name: %q, unknown: %v }", m[1], m[2], m[3] != ""))
		case "cache":
			objects = what
		case "handler":
			changes, objects = r.publish(changes, objects)
			r.handler(who, what)
		}
	}
	r.publish(changes, objects)
}

// publish replays the batches of a command. Changes without a line of the cache are refused.
func (r *replay) publish(changes []string, objects string) ([]string, string) {
	if len(changes) == 0 && objects == "" {
		return nil, ""
	}
	for _, event := range r.unread {
		r.then("%s", event)
	}
	r.unread = nil
	m := cached.FindStringSubmatch(objects)
	if m == nil {
		m = []string{"", "-1", "-1"}
	}
	r.then("published(List(%s), %s, %s)", strings.Join(changes, ", "), m[1], m[2])
	return nil, ""
}

func (r *replay) wire(what string) {
	if m := wireEvent.FindStringSubmatch(what); m != nil {
		if r.beginning {
			r.then("initialEvent(%q, %s)", m[2], m[3])
		} else {
			r.then("event(%s, %q, %s)", kindOfWire[m[1]], m[2], m[3])
		}
		return
	}
	if m := bookmark.FindStringSubmatch(what); m != nil {
		if m[2] != "" {
			r.beginning = false
			r.then("initialEnd(%s)", m[1])
		} else {
			r.then("bookmark(%s)", m[1])
		}
		return
	}
	if m := page.FindStringSubmatch(what); m != nil {
		if r.probing {
			r.then("probe(%s)", m[2])
		} else {
			r.then("page(%d, %s, %s)", r.min, m[2], m[1])
			r.paging = true
		}
		return
	}
	if strings.HasPrefix(what, "the watch failed") || strings.HasPrefix(what, "the list failed") {
		r.beginning, r.paging = false, false
		r.then("disconnect")
		return
	}
	m := request.FindStringSubmatch(what)
	require.NotNil(r.t, m, what)
	r.request(m[1] == "list", m[2], m[3]+m[4], m[5] == ", at most 1")
}

// request replays the beginning of a list or a watch. A list that was not continued has ended.
func (r *replay) request(list bool, from, version string, one bool) {
	if r.paging && from != "the next page" {
		r.then("listEnd")
		r.paging = false
	}
	r.beginning, r.probing = false, false
	switch {
	case !list && from == "with the initial state":
		r.beginning = true
		r.then("watchList(%s)", cmp.Or(version, "0"))
	case !list:
		r.then("watchFrom(%s)", version)
	case from == "the newest version":
		r.min, r.probing = r.version, one
	case version != "":
		r.min = r.number(version)
	case from == "any version":
		r.min = 0
	}
}

func (r *replay) handler(who, what string) {
	m := told.FindStringSubmatch(what)
	require.NotNil(r.t, m, what)
	if m[6] != "" {
		r.then("resync(%q, %q, %s)", who, m[2], m[4])
		return
	}
	r.then("deliver(%q, %s, %q, %s, %s, %v, %v)", who, m[1], m[2], cmp.Or(m[3], "0"), m[4], m[5] != "", m[7] != "")
}
