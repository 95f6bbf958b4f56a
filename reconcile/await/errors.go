package await

import (
	"cmp"
	"fmt"

	"github.com/leatproject/leat/api"
)

// UnmetError reports that a wait ended before its condition was met. errors.Is finds context.DeadlineExceeded or
// context.Canceled in it. If the server never answered with a list, errors.Is also finds the server's last error.
type UnmetError struct {
	Resource api.Resource
	What     string // the condition: "success"
	Subject  string // the objects: "pods default/web"

	Listed bool   // there was a list
	State  string // of the object after a list, for people: "it is at version 12"; empty after Until

	Last error // the last error of a list or watch, or nil
	Err  error // of the context
}

// Error returns one line: the condition, the reason for the end, and the progress.
func (e *UnmetError) Error() string {
	return fmt.Sprintf("wait for %s of %s: %v; %s", e.What, e.Subject, e.Err, e.progress())
}

func (e *UnmetError) progress() string {
	switch {
	case !e.Listed && e.Last != nil:
		return "no list succeeded: " + e.Last.Error()
	case !e.Listed:
		return "the server has not answered"
	}
	return cmp.Or(e.State, "the condition was not met")
}

// Unwrap returns the error of the context and, if there was no list, the server's last error.
func (e *UnmetError) Unwrap() []error {
	if e.Listed || e.Last == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Last}
}
