package await

import (
	"fmt"
	"strings"

	"github.com/leatproject/leat/api"
)

// UnmetError is a wait that ended before its condition was met. errors.Is finds context.DeadlineExceeded or
// context.Canceled in it, and the last error of a server that never answered with a list.
type UnmetError struct {
	Resource api.Resource
	What     string // what was waited for: "condition Ready=True"
	Subject  string // of what: "pods default/web"

	// Listed says that there was a list, and Waiting are the objects that did not meet the condition, as they were last
	// seen: at least one, except for Until, which keeps no list of them.
	Listed  bool
	Waiting []Waiting

	Last error // the last thing that a list or a watch ended with, nil if none did
	Err  error // of the context
}

// mostNamed is how many objects the text of an error names.
const mostNamed = 3

// Error says what was waited for, why that ended, and how far it had come.
func (e *UnmetError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wait for %s of %s: %v", e.What, e.Subject, e.Err)
	switch {
	case !e.Listed && e.Last != nil:
		fmt.Fprintf(&b, "; nothing was seen of it, because of: %v", e.Last)
	case !e.Listed:
		b.WriteString("; the server has not answered")
	case len(e.Waiting) > 0:
		b.WriteString("; still waiting for ")
		for i, w := range e.Waiting[:min(len(e.Waiting), mostNamed)] {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(w.String())
		}
		if more := len(e.Waiting) - mostNamed; more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
	}
	return b.String()
}

// Unwrap returns the error of the context and, where there was no list, the reason.
func (e *UnmetError) Unwrap() []error {
	if e.Listed || e.Last == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Last}
}
