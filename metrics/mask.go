package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leatproject/leat/codec"
)

// maskFamilies have no counterpart in client-go and controller-runtime.
type maskFamilies struct{ objects, read, kept family }

func newMaskFamilies(c *catalog) maskFamilies {
	return maskFamilies{
		objects: c.counter("leat_mask_objects_total", "Objects that were read with a mask.", "mask"),
		read:    c.counter("leat_mask_read_bytes_total", "Bytes of these objects in the answers of the server.", "mask"),
		kept:    c.counter("leat_mask_kept_bytes_total", "Bytes of these objects that the mask left.", "mask"),
	}
}

// Mask shows what a mask saves, under a name such as the kind of its objects. The error is ErrNameTaken.
func (m *Metrics) Mask(name string, mask *codec.Mask) (*CollectorRegistration, error) {
	return m.add("mask", name, func() member { return &shownMask{m, name, mask} })
}

// shownMask collects the series of a mask.
type shownMask struct {
	m    *Metrics
	name string
	mask *codec.Mask
}

func (s *shownMask) subject() any { return s.mask }

func (s *shownMask) leave() {}

func (s *shownMask) collect(to chan<- prometheus.Metric) {
	f, n := &s.m.masks, s.mask.Stats()
	f.objects.send(to, float64(n.Objects), s.name)
	f.read.send(to, float64(n.Read), s.name)
	f.kept.send(to, float64(n.Kept), s.name)
}
