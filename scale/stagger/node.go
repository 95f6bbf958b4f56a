package stagger

import (
	"math"
	"runtime/debug"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
)

const (
	// bytesOfListed is the part of GOMEMLIMIT for each object of the longest list. A pod of a few fields takes 1 KB,
	// and a whole one 8 KB.
	bytesOfListed = 8 << 10
	// partOfObject is the part of GOMEMLIMIT that one encoded object may have.
	partOfObject = 16
	// minObjectBytes is larger than the objects that etcd accepts by default.
	minObjectBytes = 2 << 20
)

// ForNode returns the arguments of informer.New for an agent that reads the pods of its node: Spread, with the field
// selector spec.nodeName. The server has an index of it, so it sends an event to the agent of one node only.
//
// If GOMEMLIMIT is set, a list has at most one object for each 8 KiB of it, unless Tuning.MaxListObjects is set. A
// longer list fails with reflector.ErrEndlessList. Other field selectors of the options stay. ForNode panics without a
// node.
func ForNode[T api.Object](s *Start, node string, pods api.ListerWatcher[T], o informer.Options[T]) (api.ListerWatcher[T], informer.Options[T]) {
	if node == "" {
		panic("stagger: ForNode needs the name of a node; set it from spec.nodeName in the manifest")
	}
	if o.Selector.Fields != "" {
		o.Selector.Fields += ","
	}
	o.Selector.Fields += "spec.nodeName=" + node
	if limit := memoryLimit(); limit > 0 && o.MaxListObjects == 0 {
		o.MaxListObjects = int(max(1, limit/bytesOfListed))
	}
	return Spread(s, pods, o)
}

// Config returns the configuration with a MaxObjectBytes that fits GOMEMLIMIT: a sixteenth of it, but at least 2 MiB
// and at most codec.DefaultMaxObjectBytes. It changes nothing without GOMEMLIMIT, or if MaxObjectBytes is set.
func Config(c apiclient.Config) apiclient.Config {
	if limit := memoryLimit(); limit > 0 && c.MaxObjectBytes == 0 {
		c.MaxObjectBytes = int(min(codec.DefaultMaxObjectBytes, max(minObjectBytes, limit/partOfObject)))
	}
	return c
}

// memoryLimit returns GOMEMLIMIT in bytes, or 0 if it is not set.
func memoryLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	return 0
}
