package server

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// shard is the selection of a shardSelector. Nil selects everything.
type shard struct {
	selector string
	ranges   []hashRange
}

// hashRange is a range of hashes, both bounds included.
type hashRange struct{ first, last uint64 }

// shardRange is a range as clients write it. Kubernetes also accepts other spaces, other quotes and the hash of the
// namespace.
var shardRange = regexp.MustCompile(`^shardRange\(object\.metadata\.uid, '0x([0-9a-f]{16})', '0x([0-9a-f]{16}|10{16})'\)$`)

// newShard parses a shardSelector.
func newShard(selector string) (*shard, error) {
	c := &shard{selector: selector}
	for part := range strings.SplitSeq(selector, " || ") {
		bounds := shardRange.FindStringSubmatch(part)
		if bounds == nil {
			return nil, fmt.Errorf("this server supports no shard selector like %q", selector)
		}
		r := hashRange{last: math.MaxUint64}
		r.first, _ = strconv.ParseUint(bounds[1], 16, 64) // the expression allows only digits
		if end, err := strconv.ParseUint(bounds[2], 16, 64); err == nil {
			r.last = end - 1
		}
		if bounds[2] == strings.Repeat("0", 16) || r.first > r.last {
			return nil, fmt.Errorf("the shard selector %q has an empty range", selector)
		}
		c.ranges = append(c.ranges, r)
	}
	return c, nil
}

// has reports whether a hash belongs to the shard.
func (c *shard) has(hash uint64) bool {
	return c == nil || slices.ContainsFunc(c.ranges, func(r hashRange) bool { return r.first <= hash && hash <= r.last })
}

// selects reports whether a pod belongs to the shard.
func (s *Server) selects(c *shard, pod int) bool { return c == nil || c.has(s.hashes[pod]) }

// selected returns the pods of a shard in the order of their keys.
func (s *Server) selected(c *shard) []int {
	if c == nil {
		return s.order
	}
	return slices.DeleteFunc(slices.Clone(s.order), func(pod int) bool { return !s.selects(c, pod) })
}
