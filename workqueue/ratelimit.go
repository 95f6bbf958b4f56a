package workqueue

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// RateLimiter decides how long a failed key waits before the next attempt. It must be safe for concurrent use; a queue
// calls it without holding a lock. It corresponds to TypedRateLimiter of client-go.
type RateLimiter[K comparable] interface {
	// When counts one failure of a key and returns the delay. Zero or less means no delay.
	When(key K) time.Duration
	// Forget resets the failures of a key that has succeeded or will not be tried again.
	Forget(key K)
	// NumRequeues returns the failures counted since the last Forget.
	NumRequeues(key K) int
}

// Backoff is a delay that doubles with each failure of a key, from Base up to Max. The zero value starts at 5 ms and
// ends at 1000 s.
type Backoff struct {
	Base time.Duration // the delay after the first failure; zero means 5 ms
	Max  time.Duration // the longest delay; zero means 1000 s
	// Jitter is the fraction, from 0 to 1, by which a delay may be shortened at random. It spreads keys that failed
	// together. It never lengthens a delay, so Max remains the longest.
	Jitter float64
}

// orDefault fills in the defaults. It panics if a field is invalid.
func (b Backoff) orDefault() Backoff {
	if b.Base < 0 || b.Max < 0 || !(b.Jitter >= 0 && b.Jitter <= 1) {
		panic(fmt.Sprintf("workqueue: a Backoff needs times of at least 0 and a Jitter from 0 to 1; it got %+v", b))
	}
	b.Base, b.Max = cmp.Or(b.Base, 5*time.Millisecond), cmp.Or(b.Max, 1000*time.Second)
	return b
}

// delay returns the delay after the given number of failures, at least 1.
func (b Backoff) delay(failures int) time.Duration {
	d := b.Max
	if doublings := failures - 1; b.Base <= b.Max>>doublings { // otherwise Base<<doublings might overflow
		d = b.Base << doublings
	}
	return d - time.Duration(rand.Float64()*b.Jitter*float64(d))
}

// Exponential returns a limiter that counts the failures of each key and delays the key as the Backoff says. It
// remembers a key until Forget. It corresponds to NewTypedItemExponentialFailureRateLimiter of client-go, whose default
// has a Base of 1 ms.
func Exponential[K comparable](b Backoff) RateLimiter[K] {
	return &perKey[K]{delay: b.orDefault().delay}
}

// FastSlow returns a limiter that delays a key by fast for its first fastAttempts failures, and by slow afterwards. It
// corresponds to NewTypedItemFastSlowRateLimiter of client-go.
func FastSlow[K comparable](fast, slow time.Duration, fastAttempts int) RateLimiter[K] {
	return &perKey[K]{delay: func(failures int) time.Duration {
		if failures <= fastAttempts {
			return fast
		}
		return slow
	}}
}

// roomyMap is the number of failing keys above which a mostly empty map is replaced by a smaller one.
const roomyMap = 1024

// perKey counts the failures of each key. The delay depends only on this count.
type perKey[K comparable] struct {
	delay func(failures int) time.Duration

	mu       sync.Mutex // guards the fields below
	failures map[K]int
	most     int // largest number of keys since the map was made
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

// shrink releases the memory of a burst of failures. Deleting from a Go map does not release it.
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

// Bucket limits the retries of all keys together. It holds up to Burst tokens and gains QPS tokens per second; a retry
// without a token waits for its own. The zero value is 10 per second with a burst of 100. A negative QPS means no
// limit.
type Bucket struct {
	QPS   float64
	Burst int // zero means 100; a negative number means no burst
}

func (b Bucket) orDefault() Bucket {
	b.QPS, b.Burst = cmp.Or(b.QPS, 10), cmp.Or(b.Burst, 100)
	return b
}

// TokenBucket returns a limiter that delays all keys together as the Bucket says. It counts no failures. It corresponds
// to TypedBucketRateLimiter of client-go.
func TokenBucket[K comparable](b Bucket) RateLimiter[K] {
	b = b.orDefault()
	if !(b.QPS > 0) {
		return MaxOf[K]()
	}
	every := time.Duration(min(float64(time.Second)/b.QPS, float64(longestToken)))
	slack := float64(max(b.Burst, 0)) * float64(every)
	return &bucket[K]{every: every, slack: time.Duration(min(slack, math.MaxInt64/2))}
}

// longestToken keeps sums of token times within a time.Duration. It is longer than any useful delay.
const longestToken = 30 * 24 * time.Hour

// bucket is a token bucket that stores one time: when it would be full again if every retry took its token at once. A
// retry moves this time on by the time of one token. It waits for the part beyond the time of a full bucket.
type bucket[K comparable] struct {
	every time.Duration // time of one token
	slack time.Duration // time of Burst tokens

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

// MaxOf returns a limiter that calls all given limiters and returns the longest delay and the largest number of
// failures. Without limiters it never delays. It corresponds to NewTypedMaxOfRateLimiter of client-go.
func MaxOf[K comparable](limiters ...RateLimiter[K]) RateLimiter[K] {
	return maxOf[K](limiters)
}

type maxOf[K comparable] []RateLimiter[K]

func (m maxOf[K]) When(key K) time.Duration {
	var longest time.Duration
	for _, l := range m {
		longest = max(longest, l.When(key))
	}
	return longest
}

func (m maxOf[K]) Forget(key K) {
	for _, l := range m {
		l.Forget(key)
	}
}

func (m maxOf[K]) NumRequeues(key K) int {
	most := 0
	for _, l := range m {
		most = max(most, l.NumRequeues(key))
	}
	return most
}

// WithMaxWait returns a limiter that limits the delays of l to longest. It corresponds to
// NewTypedWithMaxWaitRateLimiter of client-go.
func WithMaxWait[K comparable](l RateLimiter[K], longest time.Duration) RateLimiter[K] {
	return maxWait[K]{l, longest}
}

type maxWait[K comparable] struct {
	RateLimiter[K]
	longest time.Duration
}

func (l maxWait[K]) When(key K) time.Duration {
	return min(l.RateLimiter.When(key), l.longest)
}
