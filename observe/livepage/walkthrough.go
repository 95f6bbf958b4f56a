package livepage

import (
	"context"
	"net/http"
	"sync"
)

// Walkthrough is a text in steps in the view Lab. The reader takes one step after the other, and sees beside the text
// what the program printed. Only a Handler with debug has it.
type Walkthrough struct {
	Title string
	Text  string // before the first step, as Step.Text
	Steps []Step
	// Restart undoes all steps, before the reader takes the first one and after the last. Its context is that of the
	// request.
	Restart func(ctx context.Context) error
	// Printed returns what the program has printed since a step began, for each step that was taken. A request calls
	// it, so it must not block.
	Printed func() []string
}

// Step is a part of a Walkthrough.
type Step struct {
	Title string
	// Text is Markdown: paragraphs, lists, emphasis, and blocks of code without their own lines. Links lose their
	// target, because the page does not lead to other origins.
	Text string
	// Do does the work. Its context is that of the request. Nil means that the step is only a text.
	Do func(ctx context.Context) error
}

// Guide shows a walkthrough in the view Lab. It replaces an earlier one. It panics if Restart or Printed is nil.
func (p *Page) Guide(w Walkthrough) {
	if w.Restart == nil || w.Printed == nil {
		panic("livepage: Walkthrough needs Restart and Printed")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.guide = &guide{Walkthrough: w}
}

// guide is a walkthrough and how far its reader is.
type guide struct {
	Walkthrough

	moving sync.Mutex // held while a step is taken

	mu    sync.Mutex // guards the field below; taken after moving
	taken int        // steps that were taken; those with a failure count
}

// guideState is a walkthrough in JSON.
type guideState struct {
	Title string      `json:"title"`
	Text  string      `json:"text"`
	Taken int         `json:"taken"`
	Steps []guideStep `json:"steps"`
}

type guideStep struct {
	Title   string `json:"title"`
	Text    string `json:"text"`
	Printed string `json:"printed"`
}

func (p *Page) serveWalkthrough(mux *http.ServeMux) {
	mux.HandleFunc("GET /walkthrough", func(w http.ResponseWriter, _ *http.Request) {
		if g := p.walkthrough(); g == nil {
			w.WriteHeader(http.StatusNoContent)
		} else {
			writeJSON(w, http.StatusOK, g.state())
		}
	})
	mux.HandleFunc("POST /walkthrough/{move}", func(w http.ResponseWriter, r *http.Request) {
		g, move := p.walkthrough(), r.PathValue("move")
		if g == nil || move != "next" && move != "restart" {
			writeJSON(w, http.StatusNotFound, failure{"livepage: a walkthrough has next and restart, and this program may have no walkthrough"})
			return
		}
		if err := g.move(r.Context(), move == "next"); err != nil {
			writeJSON(w, http.StatusUnprocessableEntity, failure{err.Error()})
			return
		}
		writeJSON(w, http.StatusOK, g.state())
	})
}

func (p *Page) walkthrough() *guide {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.guide
}

func (g *guide) state() guideState {
	g.mu.Lock()
	taken := g.taken
	g.mu.Unlock()
	s := guideState{Title: g.Title, Text: g.Text, Taken: taken, Steps: []guideStep{}}
	printed := g.Printed()
	for n, step := range g.Steps {
		shown := guideStep{Title: step.Title, Text: step.Text}
		if n < taken && n < len(printed) {
			shown.Printed = printed[n]
		}
		s.Steps = append(s.Steps, shown)
	}
	return s
}

// move takes the next step, or goes back to the beginning. Two viewers cannot take a step twice: the second one takes
// the step after it.
func (g *guide) move(ctx context.Context, forward bool) error {
	g.moving.Lock()
	defer g.moving.Unlock()
	g.mu.Lock()
	taken := g.taken
	g.mu.Unlock()
	if forward && taken == len(g.Steps) {
		return nil
	}
	if !forward || taken == 0 {
		if err := g.Restart(ctx); err != nil {
			return err
		}
	}
	if !forward {
		g.set(0)
		return nil
	}
	g.set(taken + 1)
	if do := g.Steps[taken].Do; do != nil {
		return do(ctx)
	}
	return nil
}

func (g *guide) set(taken int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken = taken
}
