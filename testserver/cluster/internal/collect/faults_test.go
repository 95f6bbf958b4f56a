package collect_test

import "github.com/leatproject/leat/testserver/faults"

// stall stops the events of a resource.
func stall(resource string) faults.Fault {
	return faults.Fault{Match: faults.Match{Verbs: []string{"watch"}, Resource: resource}, Effect: faults.StallEvents{}}
}

// down answers every request with an error.
var down = faults.Fault{Effect: faults.Fail{Code: 503}}
