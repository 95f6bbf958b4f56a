package selfsigned

import (
	"bytes"
	"time"
)

// The keys of the Secret. The first three are those of cert-manager and kubernetes.io/tls.
const (
	certKey     = "tls.crt"
	keyKey      = "tls.key"
	bundleKey   = "ca.crt" // what the API server trusts: a certificate for each pair that may be in use
	currentKey  = "tls.ca.crt"
	nextCertKey = "next.crt"
	nextKeyKey  = "next.key"
	nextCAKey   = "next.ca.crt"
)

// isOurs reports whether this package has written the data of a Secret. Secrets of cert-manager have other keys only.
func isOurs(data map[string][]byte) bool {
	_, has := data[currentKey]
	_, staged := data[nextCAKey]
	return has || staged
}

// state is the content of the Secret.
type state struct {
	current pair   // what all replicas serve
	next    pair   // what they serve soon; empty except during a renewal
	bundle  []byte // the authorities of both, and of former pairs until they expire
}

func stateOf(data map[string][]byte) state {
	return state{
		current: pair{data[certKey], data[keyKey], data[currentKey]},
		next:    pair{data[nextCertKey], data[nextKeyKey], data[nextCAKey]},
		bundle:  data[bundleKey],
	}
}

// data returns the content of the Secret. A nil removes its key.
func (s state) data() map[string][]byte {
	return map[string][]byte{
		certKey: s.current.cert, keyKey: s.current.key, currentKey: s.current.ca, bundleKey: s.bundle,
		nextCertKey: s.next.cert, nextKeyKey: s.next.key, nextCAKey: s.next.ca,
	}
}

// step is a change of the state.
type step string

// The steps, in the order of a renewal. The log names them.
const (
	none    step = ""
	replace step = "the certificate is replaced, because the former one cannot be used"
	stage   step = "the next certificate is prepared; API servers get its authority first"
	promote step = "the next certificate is in use"
)

// advance returns the next state, and the step that leads to it. published is set if the API servers have known the
// bundle of s long enough.
//
// A certificate is staged when two thirds of its life are over, and promoted when its authority is published, or when
// the current one cannot be used any more: a configuration may be missing until then. The former authority stays in the
// bundle until its certificate has expired, because another replica may still serve it.
func (s state) advance(hosts []string, now time.Time, lifetime time.Duration, published bool) (state, step, error) {
	current, err := s.current.check(hosts, now)
	var taken step
	switch staged := len(s.next.cert) > 0; {
	case err != nil && staged && s.next.usable(hosts, now):
		s.current, s.next, taken = s.next, pair{}, promote // most API servers know its authority
	case err != nil:
		taken = replace
		if s.current, err = issue(hosts, now, lifetime); err != nil {
			return s, none, err
		}
		s.next = pair{}
	case staged && published:
		if s.next.usable(hosts, now) {
			s.current, taken = s.next, promote
		}
		s.next = pair{} // one that is damaged is staged again
	case !staged && !now.Before(renewal(current.Leaf.NotBefore, current.Leaf.NotAfter)):
		taken = stage
		if s.next, err = issue(hosts, now, lifetime); err != nil {
			return s, none, err
		}
	}
	bundle := bundleOf(now, s.current.ca, s.next.ca, s.bundle)
	if taken == none && !bytes.Equal(bundle, s.bundle) {
		taken = "the authorities that API servers trust are corrected"
	}
	s.bundle = bundle
	return s, taken, nil
}

// renewal returns when two thirds of a certificate's life are over.
func renewal(from, until time.Time) time.Time { return until.Add(-until.Sub(from) / 3) }

// mostAuthorities limits the bundle. Replicas with different hosts replace the certificate of each other in every
// interval, and without a limit the Secret would reach its largest size in a day. The price: then a replica that has
// not noticed so many replacements is not trusted until its next check.
const mostAuthorities = 16

// bundleOf returns the certificates of all texts that have not expired, each once, and at most the first
// mostAuthorities.
func bundleOf(now time.Time, texts ...[]byte) (bundle []byte) {
	count := 0
	for _, text := range texts {
		for _, cert := range certificatesIn(text) {
			block := inPEM("CERTIFICATE", cert.Raw)
			if count < mostAuthorities && now.Before(cert.NotAfter) && !bytes.Contains(bundle, block) {
				bundle = append(bundle, block...)
				count++
			}
		}
	}
	return bundle
}
