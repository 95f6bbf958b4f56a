package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leatproject/leat/bench/load"
)

// Options define the collection and the protocol.
type Options struct {
	Objects int
	TLS     bool // TLS and HTTP/2 instead of plain HTTP/1.1
	Shards  bool // obey shardSelector (KEP-5866) instead of ignoring it, like kube-apiserver with ShardedListAndWatch
}

// Server serves one collection of pods on loopback.
type Server struct {
	host
	set    *load.Set
	o      Options
	order  []int    // the pods in the order of their keys
	hashes []uint64 // of the UID of each pod; nil unless shardSelector is obeyed

	mu       sync.Mutex    // guards the fields below
	restarts []uint32      // of each pod
	versions []uint64      // of each pod
	log      []change      // elements never change
	sent     []int64       // when each change was written to the last watch, in nanoseconds of the wall clock; 0 means not yet
	grown    chan struct{} // closed and replaced when log grows or watches expire
	expired  int           // how many times watches were ended with 410
	requests []Request
	opened   chan struct{} // closed and replaced with each request
}

// change is one event. Its version is load.FirstVersion + Objects + its index in the log + 1.
type change struct {
	pod      int32
	restarts uint32
}

// Request is one list or watch that was answered.
type Request struct {
	Watch     bool
	Streaming bool // a WatchList
	Metadata  bool
	Protobuf  bool
	Proto     string // "HTTP/1.1"
	Limit     int
	Cut       bool // the answer has one shard only
}

// New listens on loopback and returns a server with the first objects of a set.
func New(set *load.Set, o Options) (*Server, error) {
	s := &Server{
		set: set, o: o, order: set.Order(o.Objects), restarts: make([]uint32, o.Objects), versions: make([]uint64, o.Objects),
		grown: make(chan struct{}), opened: make(chan struct{}),
	}
	for i := range s.versions {
		s.versions[i] = load.FirstVersion + uint64(i) + 1
	}
	if o.Shards {
		s.hashes = set.Hashes(o.Objects)
	}
	var err error
	s.host, err = newHost(o.TLS)
	return s, err
}

// Run serves until ctx ends, and then returns nil.
func (s *Server) Run(ctx context.Context) error { return s.run(ctx, s.serve, nil) }

// version returns the version of the collection after a number of changes.
func (s *Server) version(changes int) uint64 {
	return load.FirstVersion + uint64(s.o.Objects) + uint64(changes)
}

// Change changes pods one after another, as fast as the watches read them.
func (s *Server) Change(pods ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pod := range pods {
		s.restarts[pod]++
		s.log = append(s.log, change{pod: int32(pod), restarts: s.restarts[pod]})
		s.sent = append(s.sent, 0)
		s.versions[pod] = s.version(len(s.log))
	}
	s.wake()
}

// ChangeEvery changes one pod after another with a pause before each, so that each event comes alone.
func (s *Server) ChangeEvery(ctx context.Context, pause time.Duration, pods []int) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for _, pod := range pods {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			s.Change(pod)
		}
	}
	return nil
}

// Expire ends every watch with 410, like a server without the necessary history.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired++
	s.wake()
}

func (s *Server) wake() {
	close(s.grown)
	s.grown = make(chan struct{})
}

// Sent returns the time at which each version was written, in nanoseconds of the wall clock; 0 means not yet.
func (s *Server) Sent() map[uint64]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := make(map[uint64]int64, len(s.log))
	for i, at := range s.sent {
		sent[s.version(i+1)] = at
	}
	return sent
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// AwaitWatches waits until n watches were opened and have sent their initial list.
func (s *Server) AwaitWatches(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		open, changed := 0, s.opened
		for _, r := range s.requests {
			if r.Watch {
				open++
			}
		}
		s.mu.Unlock()
		if open >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("server: %d of %d watches were opened: %w", open, n, ctx.Err())
		case <-changed:
		}
	}
}

// note records a request. A WatchList is recorded after its initial objects were sent.
func (s *Server) note(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	close(s.opened)
	s.opened = make(chan struct{})
}
