package livepage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Action is a button of the view Lab, for programs that are made for experiments. Only a Handler with debug has it. A
// page without actions changes nothing in the program.
type Action struct {
	// Name is unique and is part of the URL.
	Name string
	// Group is the title above the button, Label its text, and Help a sentence beside it.
	Group, Label, Help string
	Fields             []Field
	// Do does the work. It gets a value for each field. Its text, which may be empty, or its error is shown. The
	// context is that of the request.
	Do func(ctx context.Context, values map[string]string) (said string, err error)
}

// Field is an input beside the button of an Action.
type Field struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Value string `json:"value"` // the initial value
}

// Offer adds actions to the view Lab, after those that were added before. It panics if a name is empty or taken, or if
// Do is nil.
func (p *Page) Offer(actions ...Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range actions {
		if a.Name == "" || a.Do == nil || p.action(a.Name) != nil {
			panic(fmt.Sprintf("livepage: action %q needs a function and a name of its own", a.Name))
		}
		p.actions = append(p.actions, &a)
	}
}

// The stages of the pipeline in front of which work can be held back; see Held.
const (
	StageFIFO      = "fifo"
	StageHandlers  = "handlers"
	StageWorkqueue = "queue"
	StageWorkers   = "workers"
)

// Held is work that a program for experiments holds back in front of a stage.
type Held struct {
	Stage string    // one of the constants
	What  string    // a few words, such as: the event ADDED of pods shop/web
	Since time.Time // when it began to wait
}

// ShowHeld shows the work that the program holds back: in the pipeline of the view Lab, and in a list below it. waiting
// returns it in the order in which it will go on. A request calls it, so it must not block.
func (p *Page) ShowHeld(waiting func() []Held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = waiting
}

// heldState is work that is held back, in JSON.
type heldState struct {
	Stage string `json:"stage"`
	What  string `json:"what"`
	Since int64  `json:"since"` // milliseconds since 1970
}

func heldStates(waiting func() []Held) []heldState {
	all := []heldState{}
	if waiting != nil {
		for _, h := range waiting() {
			all = append(all, heldState{h.Stage, h.What, h.Since.UnixMilli()})
		}
	}
	return all
}

// action returns the action with a name, or nil. The caller holds the lock.
func (p *Page) action(name string) *Action {
	i := slices.IndexFunc(p.actions, func(a *Action) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return p.actions[i]
}

// offered is an action in JSON.
type offered struct {
	Name   string  `json:"name"`
	Group  string  `json:"group"`
	Label  string  `json:"label"`
	Help   string  `json:"help"`
	Fields []Field `json:"fields"`
}

func (p *Page) serveActions(mux *http.ServeMux) {
	mux.HandleFunc("GET /actions", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		actions := slices.Clone(p.actions)
		p.mu.Unlock()
		all := []offered{} // written without the lock: a slow client holds nobody up
		for _, a := range actions {
			all = append(all, offered{a.Name, a.Group, a.Label, a.Help, append([]Field{}, a.Fields...)})
		}
		writeJSON(w, http.StatusOK, all)
	})
	mux.HandleFunc("POST /actions/{name}", p.serveAction)
}

// serveAction does what a button says. The guard of the page has refused forms of other origins.
func (p *Page) serveAction(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	a := p.action(r.PathValue("name"))
	p.mu.Unlock()
	if a == nil {
		writeJSON(w, http.StatusNotFound, failure{"livepage: there is no action of this name"})
		return
	}
	given := map[string]string{}
	if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
		writeJSON(w, http.StatusBadRequest, failure{fmt.Sprintf("livepage: the body is not a JSON object of texts: %v", err)})
		return
	}
	values := map[string]string{}
	for _, f := range a.Fields {
		values[f.Name] = f.Value
		if v, ok := given[f.Name]; ok {
			values[f.Name] = v
		}
	}
	said, err := a.Do(r.Context(), values)
	if err != nil {
		writeJSON(w, http.StatusUnprocessableEntity, failure{err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"said": said})
}
