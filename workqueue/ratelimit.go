package workqueue

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// RateLimiter says how long a key that failed should wait before it is tried again. It must be safe for concurrent
// use; a queue calls it without holding any lock.
// It corresponds to TypedRateLimiter of client-go.
type RateLimiter[K comparable] interface {
	// When counts one failure of a key and returns how long to wait. Zero or less is not at all.
	When(key K) time.Duration
	// Forget forgets the failures of a key, for it has succeeded, or will not be tried again.
	Forget(key K)
	// NumRequeues returns the failures counted since the key was last forgotten.
	NumRequeues(key K) int
}

// Backoff is a delay that doubles with each failure of a key: Base, 2·Base, 4·Base, and so on, up to Max. The zero
// value is 5 ms up to 1000 s.
type Backoff struct {
	Base time.Duration // the delay after the first failure; zero means 5 ms
	Max  time.Duration // the longest delay; zero means 1000 s
	// Jitter is the fraction, from 0 to 1, by which a delay may be shortened at random, so that keys that failed
	// together are not tried again together. (Shortened: Max stays the longest delay.)
	Jitter float64
}

// Delay returns how long to wait after so many failures; no failure is no delay.
func (b Backoff) Delay(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	b = b.orDefault()
	doublings := failures - 1
	if b.Base > b.Max>>doublings { // Base<<doublings might overflow
		return shorten(b.Max, b.Jitter)
	}
	return shorten(b.Base<<doublings, b.Jitter)
}

func (b Backoff) orDefault() Backoff {
	if b.Base == 0 {
		b.Base = 5 * time.Millisecond
	}
	if b.Max == 0 {
		b.Max = 1000 * time.Second
	}
	return b
}

func (b Backoff) check() {
	if b.Base < 0 || b.Max < 0 || !(b.Jitter >= 0 && b.Jitter <= 1) {
		panic(fmt.Sprintf("workqueue: a Backoff needs times that are not negative and a Jitter from 0 to 1, not %+v", b))
	}
}

// shorten takes a random part, of at most the fraction jitter, off a delay.
func shorten(d time.Duration, jitter float64) time.Duration {
	if jitter == 0 || d <= 0 {
		return d
	}
	return d - time.Duration(rand.Float64()*jitter*float64(d))
}

// Exponential returns a limiter that counts the failures of each key and delays it by what the Backoff says. Keys
// that are never forgotten are remembered for ever.
// It corresponds to NewTypedItemExponentialFailureRateLimiter of client-go, whose default item based limiter is a Base of
// 1 ms.
func Exponential[K comparable](b Backoff) RateLimiter[K] {
	b.check()
	return &perKey[K]{delay: b.Delay}
}

// FastSlow returns a limiter that delays a key by fast for its first so many failures, and by slow after that.
// It corresponds to NewTypedItemFastSlowRateLimiter of client-go.
func FastSlow[K comparable](fast, slow time.Duration, fastAttempts int) RateLimiter[K] {
	return &perKey[K]{delay: func(failures int) time.Duration {
		if failures <= fastAttempts {
			return fast
		}
		return slow
	}}
}

// roomyMap is the number of failing keys from which on the map of their failures is given back when it is mostly empty.
const roomyMap = 1024

// perKey counts the failures of each key; the delay depends on nothing else.
type perKey[K comparable] struct {
	delay func(failures int) time.Duration

	mu       sync.Mutex // guards the fields below
	failures map[K]int
	most     int // keys in failures since it was made
}

func (l *perKey[K]) When(key K) time.Duration {
	return l.delay(l.count(key))
}

func (l *perKey[K]) count(key K) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures == nil {
		l.failures = make(map[K]int)
	}
	l.failures[key]++
	l.most = max(l.most, len(l.failures))
	return l.failures[key]
}

func (l *perKey[K]) Forget(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failures, key)
	l.shrink()
}

// shrink gives back what a burst of failures made the map grow to, which deleting does not.
func (l *perKey[K]) shrink() {
	if l.most < roomyMap || len(l.failures) >= l.most/4 {
		return
	}
	failures := make(map[K]int, len(l.failures))
	maps.Copy(failures, l.failures)
	l.failures, l.most = failures, len(failures)
}

func (l *perKey[K]) NumRequeues(key K) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures[key]
}

// Bucket bounds the retries of all keys together: it holds up to Burst tokens, gains QPS of them a second, and a retry
// that finds none waits for its own. The zero value is 10 a second with a burst of 100; a negative QPS is no bound.
type Bucket struct {
	QPS   float64
	Burst int // zero means 100; a negative number none
}

// TokenBucket returns a limiter that delays keys, whichever they are, by what the Bucket says. It counts no failures.
// It corresponds to TypedBucketRateLimiter of client-go.
func TokenBucket[K comparable](b Bucket) RateLimiter[K] {
	if b.QPS == 0 {
		b.QPS = 10
	}
	if b.Burst == 0 {
		b.Burst = 100
	}
	if !(b.QPS > 0) {
		return unlimited[K]{}
	}
	every := time.Duration(min(float64(time.Second)/b.QPS, float64(longestToken)))
	slack := float64(max(b.Burst, 0)) * float64(every)
	return &bucket[K]{every: every, slack: time.Duration(min(slack, math.MaxInt64/2))}
}

// longestToken keeps sums of tokens within a time.Duration, and is longer than anyone waits.
const longestToken = 30 * 24 * time.Hour

// bucket is a token bucket kept as one time: that at which it would be full again, had nobody waited. A retry moves
// it on by one token's time, and waits for as much of it as lies beyond a full bucket's worth.
type bucket[K comparable] struct {
	every time.Duration // the time of one token
	slack time.Duration // the time of Burst tokens

	mu   sync.Mutex // guards full
	full time.Time
}

func (l *bucket[K]) When(K) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.full.Before(now) {
		l.full = now
	}
	l.full = l.full.Add(l.every)
	return max(l.full.Sub(now)-l.slack, 0)
}

func (l *bucket[K]) Forget(K) {}

func (l *bucket[K]) NumRequeues(K) int { return 0 }

// unlimited is a limiter that never delays.
type unlimited[K comparable] struct{}

func (unlimited[K]) When(K) time.Duration { return 0 }

func (unlimited[K]) Forget(K) {}

func (unlimited[K]) NumRequeues(K) int { return 0 }
