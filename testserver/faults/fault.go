package faults

import (
	"net/http"

	"k8s.io/apimachinery/pkg/watch"
)

// Fault is a failure of the server that a test requests. If several faults with the same effect match, only the one
// that was injected first happens, and the others do not count the match. Faults with different effects can affect the
// same request.
type Fault struct {
	// Match selects the affected requests, watch frames or list items. The zero Match selects all.
	Match Match
	// Skip is the number of matches that pass unharmed first.
	Skip int
	// Times is the number of matches that are affected after that. Zero means all until the injection is removed.
	Times int
	// Probability is that of each match after the first Skip to be affected, between 0 and 1. Zero means 1. Equal seeds
	// affect the same matches, counted from the first one.
	Probability float64
	Seed        uint64
	// Effect is the failure itself.
	Effect Effect
}

// Match selects what a fault affects. Every field that is set must match.
type Match struct {
	Verbs     []string // "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"
	Resource  string   // "pods", "deployments.apps", each with all subresources; or one: "deployments.apps/status"
	UserAgent string   // a prefix of the User-Agent header
	// Namespace and Name are those of the object for effects on watch frames and list items. For other effects, they
	// are those of the request.
	Namespace, Name string
	// Frames are the types of the affected watch frames: those of package watch, and InitialEventsEnd and Item of this
	// package. If it is empty, effects on frames affect all frames of watches.
	Frames []watch.EventType
	// Func is called for requests that match Verbs, Resource and UserAgent, before Namespace, Name and Frames are
	// compared. It must be safe for concurrent use, and must not read the body.
	Func func(*http.Request) bool
}

// Types of frames besides those of package watch.
const (
	InitialEventsEnd watch.EventType = "INITIAL-EVENTS-END" // the bookmark that ends an initial list
	Item             watch.EventType = "ITEM"               // an item of a list
)
