package workqueue

import "time"

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

// limiterOf returns the limiter of a queue. It panics if the arguments of New conflict.
func limiterOf[K comparable](o Options, limiters []RateLimiter[K]) RateLimiter[K] {
	if len(limiters) == 0 {
		return MaxOf(Exponential[K](o.Backoff), TokenBucket[K](o.Bucket))
	}
	if o.Backoff != (Backoff{}) || o.Bucket != (Bucket{}) {
		panic("workqueue: New got limiters, which conflict with Options.Backoff and Options.Bucket")
	}
	return MaxOf(limiters...)
}
