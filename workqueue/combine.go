package workqueue

import (
	"fmt"
	"time"
)

// MaxOf returns a limiter that asks all of the given ones, and returns the longest delay and the most failures. Of
// none it never delays.
// It corresponds to NewTypedMaxOfRateLimiter of client-go.
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

// WithMaxWait returns a limiter that never delays longer than the given time, whatever the given one says.
// It corresponds to NewTypedWithMaxWaitRateLimiter of client-go.
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

// WithJitter returns a limiter that shortens each delay of the given one by a random part of it, of at most the given
// fraction, which is from 0 to 1.
// Nothing in client-go corresponds to it.
func WithJitter[K comparable](l RateLimiter[K], fraction float64) RateLimiter[K] {
	if !(fraction >= 0 && fraction <= 1) {
		panic(fmt.Sprintf("workqueue: the fraction of a jitter is from 0 to 1, not %v", fraction))
	}
	return jitter[K]{l, fraction}
}

type jitter[K comparable] struct {
	RateLimiter[K]
	fraction float64
}

func (l jitter[K]) When(key K) time.Duration {
	return shorten(l.RateLimiter.When(key), l.fraction)
}

// limiterOf returns the limiter that New was asked for.
func limiterOf[K comparable](o Options, limiters []RateLimiter[K]) RateLimiter[K] {
	switch {
	case len(limiters) == 0:
		return MaxOf(Exponential[K](o.Backoff), TokenBucket[K](o.Bucket))
	case o.Backoff != Backoff{} || o.Bucket != Bucket{}:
		panic("workqueue: New was given limiters and a Backoff or Bucket, of which one must go")
	case len(limiters) == 1:
		return limiters[0]
	}
	return MaxOf(limiters...)
}
