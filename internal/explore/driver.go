package explore

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/maphash"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	depthFlag  = flag.Int("explore.depth", 0, "the largest number of steps of an exploration; 0 means a short run")
	statesFlag = flag.Int("explore.states", 1_000_000, "about the most states of an exploration with explore.depth")
	writeFlag  = flag.Bool("explore.write", false, "write the counterexamples that leat explore shows")
)

// Test explores a world, and fails the test if the exploration finds a failure. The flags -explore.depth and
// -explore.states replace the bounds of o. It logs what was visited, the seconds and the memory of the process.
func Test[S any](t *testing.T, w World[S], o Options) {
	t.Helper()
	if *depthFlag > 0 {
		o.Depth, o.States, o.Progress = *depthFlag, *statesFlag, os.Stderr
	}
	if r := logged(t, w, o); r.Failure != nil {
		t.Fatalf("after %d steps: %v", len(r.Choices)-1, r.Failure)
	}
}

// Finds explores a world in which a rule is broken, and fails the test unless the exploration finds a failure with
// this text. It ignores the flags.
func Finds[S any](t *testing.T, w World[S], o Options, text string) Report {
	t.Helper()
	r := logged(t, w, o)
	if r.Failure == nil || !strings.Contains(r.Failure.Error(), text) {
		t.Fatalf("the exploration does not find %q: %v", text, r.Failure)
	}
	t.Logf("found after %d steps: %v", len(r.Choices)-1, r.Failure)
	return r
}

// Save compares a failure with a file of docs/counterexamples, which leat explore shows, or writes it with the flag
// -explore.write. steps are the lines of Replay: what happens, and then what each part has, as "   part: state".
func Save(t *testing.T, path, rule, promise string, r Report, steps []string) {
	t.Helper()
	failure, _, _ := strings.Cut(r.Failure.Error(), "\n")
	text := fmt.Sprintf("Rule: %s\nPromise: %s\nFailure: %s\n\n", rule, promise, failure)
	for i, step := range steps {
		text += fmt.Sprintf("%d. %s\n", i, step)
	}
	if *writeFlag {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if saved, err := os.ReadFile(path); string(saved) != text {
		t.Errorf("%s differs from what the exploration finds (%v); write it with -explore.write:\n%s", path, err, text)
	}
}

func logged[S any](t *testing.T, w World[S], o Options) Report {
	t.Helper()
	began := time.Now()
	r := Run(w, o)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%v, %.1f s, %d MiB", r, time.Since(began).Seconds(), m.Sys>>20)
	return r
}

// InBubbles returns a function for Options.Around. It gives each worker a bubble of fake time.
func InBubbles(t *testing.T) func(work func()) {
	return func(work func()) { synctest.Test(t, func(*testing.T) { work() }) }
}

// Machine is a world of code that cannot be copied, so each step makes another M and runs the way to it again. A way
// has at most 255 steps.
type Machine[M any] struct {
	// New returns an M before its first step, and Close ends it. Close may be nil.
	New   func() M
	Close func(M)
	// First are the first states, if there are several: each is New and one of these. Their Can is not used.
	First []Step[M]
	Steps []Step[M] // at most 256
	// Key appends what distinguishes a state from others, whatever the first state was.
	Key func(m M, to []byte) []byte
	// Check returns why a state must not be reached, or nil. It must not change m.
	Check func(M) error
	// Rest returns why a state in which no fair step is possible is not a good end, or nil. Rest may be nil.
	Rest func(M) error
	// Good reports whether a state is a good end although a fair step can follow. It may be nil.
	Good      func(M) bool
	FairSteps int
	// Lines returns what happened in the last step, for the transcript. It may be nil.
	Lines func(M) []string
}

// Step is a step of a Machine.
type Step[M any] struct {
	Name string
	Can  func(M) bool
	Do   func(M)
	// Fair marks the steps that follow if nothing fails. A fair continuation takes the first one that is possible.
	Fair bool
}

// Do returns a step.
func Do[M any](name string, can func(M) bool, do func(M)) Step[M] {
	return Step[M]{Name: name, Can: can, Do: do}
}

// Fair returns a step that a fair continuation takes.
func Fair[M any](name string, can func(M) bool, do func(M)) Step[M] {
	return Step[M]{Name: name, Can: can, Do: do, Fair: true}
}

// Way is a state of a Machine: the numbers of the steps that lead to it, and what is known of it.
type Way struct {
	first uint8
	steps string
	can   string // the steps that can follow
	fair  int16  // the step that a fair continuation takes, or -1
	key   string // a hash of 128 bits of the key of the Machine, so that waiting ways are small
	wrong error
}

// Show finds a failure and gives its steps to Save. Lines must return what each part has. It uses one worker, so that
// the steps are always the same.
func (m Machine[M]) Show(t *testing.T, o Options, want, path, rule, promise string) {
	t.Helper()
	o.Workers = 1
	r := Finds(t, m.World(), o, want)
	_, text, hasSteps := strings.Cut(r.Failure.Error(), "\n> ")
	if !hasSteps {
		t.Fatal("the failure has no steps:", r.Failure)
	}
	text = strings.NewReplacer("and the fair steps that follow:\n", "", "\n          ", "\n   ").Replace(text)
	Save(t, path, rule, promise, r, strings.Split(text, "\n> "))
}

// World returns a machine as a world.
func (m Machine[M]) World() World[Way] {
	var first []Way
	for i := range max(1, len(m.First)) {
		first = append(first, Way{first: uint8(i)})
	}
	w := World[Way]{
		// The first ways are empty until Next or Fair runs them, because New may need a bubble.
		First: first,
		Next: func(w Way, yield func(Way)) {
			w = m.complete(w)
			for i := range len(w.can) {
				yield(m.follow(w.first, w.steps+w.can[i:i+1]))
			}
		},
		Key:       func(w Way, to []byte) []byte { return append(to, m.complete(w).key...) },
		Check:     func(w Way) error { return m.complete(w).wrong },
		FairSteps: m.FairSteps,
		Describe:  m.describe,
	}
	if m.FairSteps > 0 {
		w.Fair = func(w Way) (Way, bool) {
			w = m.complete(w)
			if w.fair < 0 {
				return w, true
			}
			return m.follow(w.first, w.steps+string([]byte{byte(w.fair)})), false
		}
	}
	return w
}

// complete runs a first way, which World has not run.
func (m Machine[M]) complete(w Way) Way {
	if w.key == "" {
		return m.follow(w.first, w.steps)
	}
	return w
}

// run returns an M at the end of a way.
func (m Machine[M]) run(first uint8, steps string) M {
	at := m.New()
	if len(m.First) > 0 {
		m.First[first].Do(at)
	}
	for i := range len(steps) {
		m.Steps[steps[i]].Do(at)
	}
	return at
}

// follow runs a way and describes the state at its end.
func (m Machine[M]) follow(first uint8, steps string) Way {
	at := m.run(first, steps)
	w := Way{first: first, steps: steps, fair: -1, wrong: m.Check(at)}
	can := make([]byte, 0, len(m.Steps))
	for i := range m.Steps {
		if s := &m.Steps[i]; s.Can(at) {
			can = append(can, byte(i))
			if s.Fair && w.fair < 0 {
				w.fair = int16(i)
			}
		}
	}
	if m.Good != nil && m.Good(at) {
		w.fair = -1
	} else if w.fair < 0 && m.Rest != nil && w.wrong == nil {
		if err := m.Rest(at); err != nil {
			w.wrong = fmt.Errorf("nothing more happens, and %w", err)
		}
	}
	key := m.Key(at, nil)
	sum := binary.LittleEndian.AppendUint64(nil, maphash.Bytes(seeds[0], key))
	w.can, w.key = string(can), string(binary.LittleEndian.AppendUint64(sum, maphash.Bytes(seeds[1], key)))
	m.close(at)
	return w
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func (m Machine[M]) close(at M) {
	if m.Close != nil {
		m.Close(at)
	}
}

// describe returns the last step of a way, and what happened in it.
func (m Machine[M]) describe(w Way) string {
	name := "the beginning"
	if n := len(w.steps); n > 0 {
		name = m.Steps[w.steps[n-1]].Name
	} else if len(m.First) > 0 {
		name = m.First[w.first].Name
	}
	lines := []string{"> " + name}
	if m.Lines != nil {
		at := m.run(w.first, w.steps)
		for _, line := range m.Lines(at) {
			lines = append(lines, "          "+line)
		}
		m.close(at)
	}
	return strings.Join(lines, "\n")
}

// Play runs a transcript: the lines that begin with "> " name the first state, if the machine has several or the
// transcript has a line for it, and then the steps. Other lines are comments. It returns the error of Check after the
// first step that has one.
func (m Machine[M]) Play(transcript string) error {
	w := Way{}
	for line := range strings.Lines(transcript) {
		name, isStep := strings.CutPrefix(strings.TrimSpace(line), "> ")
		if !isStep || name == "the beginning" {
			continue
		}
		is := func(s Step[M]) bool { return s.Name == name }
		if i := slices.IndexFunc(m.First, is); i >= 0 && w.steps == "" {
			w.first = uint8(i)
		} else if i := slices.IndexFunc(m.Steps, is); i >= 0 && strings.IndexByte(m.complete(w).can, byte(i)) >= 0 {
			w = m.follow(w.first, w.steps+string([]byte{byte(i)}))
		} else {
			return fmt.Errorf("explore: the step %q is not possible", name)
		}
		if err := m.complete(w).wrong; err != nil {
			return err
		}
	}
	return nil
}
