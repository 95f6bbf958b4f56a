package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Settings are the effective options of a controller, including defaults. Their JSON form is for people: durations are
// texts such as "5ms". Functions appear as numbers.
type Settings struct {
	Name     string
	Resource string `json:",omitempty"` // the resource that the keys name; empty if unknown
	Workers  int

	// Backoff and Bucket are those of Options, or nil if there are Limiters.
	Backoff    *BackoffSettings `json:",omitempty"`
	Bucket     *BucketSettings  `json:",omitempty"`
	Limiters   int
	MaxRetries int

	ReconcileTimeout metav1.Duration
	StuckAfter       metav1.Duration
	CacheSyncTimeout metav1.Duration
	CrashOnPanic     bool

	MaxCauses, Ageing, History int

	Predicates int // Options.When
	Gates      int
}

// BackoffSettings are the settings of workqueue.Backoff.
type BackoffSettings struct {
	Base, Max metav1.Duration
	Jitter    float64
}

// BucketSettings are the settings of workqueue.Bucket.
type BucketSettings struct {
	QPS   float64
	Burst int
}

// Settings returns the effective options. It may be called at any time. Before Run, the number of workers is the number
// that Run would start now. controller-runtime has nothing like it; kube-controller-manager has /configz.
func (c *Controller[K]) Settings() Settings {
	resource, workers := c.size()
	o := c.o
	s := Settings{
		Name: c.name, Workers: workers,
		Limiters: c.limiters, MaxRetries: o.MaxRetries,
		ReconcileTimeout: inText(o.ReconcileTimeout), StuckAfter: inText(o.StuckAfter), CacheSyncTimeout: inText(o.CacheSyncTimeout),
		CrashOnPanic: o.CrashOnPanic,
		MaxCauses:    o.MaxCauses, Ageing: o.Ageing, History: o.History,
		Predicates: len(o.When), Gates: len(c.gates.gates),
	}
	if resource.Kind != "" {
		s.Resource = resource.String()
	}
	if c.limiters == 0 {
		s.Backoff = &BackoffSettings{Base: inText(o.Backoff.Base), Max: inText(o.Backoff.Max), Jitter: o.Backoff.Jitter}
		s.Bucket = &BucketSettings{QPS: o.Bucket.QPS, Burst: o.Bucket.Burst}
	}
	return s
}

func inText(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
