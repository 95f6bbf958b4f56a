package metrics

import "github.com/leatproject/leat/codec"

// newMaskTable returns families without a counterpart in client-go and controller-runtime.
func newMaskTable(c *catalog) *table[codec.MaskStats] {
	t := newTable[codec.MaskStats](c, "mask")
	t.counter("leat_mask_objects_total", "Objects that were read with a mask.", func(s codec.MaskStats) float64 { return float64(s.Objects) })
	t.counter("leat_mask_read_bytes_total", "Bytes of these objects in the answers of the server.", func(s codec.MaskStats) float64 { return float64(s.Read) })
	t.counter("leat_mask_kept_bytes_total", "Bytes of these objects that the mask left.", func(s codec.MaskStats) float64 { return float64(s.Kept) })
	return t
}

// Mask shows what a mask saves, under a name such as the kind of its objects. The error is ErrNameTaken.
func (m *Metrics) Mask(name string, mask *codec.Mask) (*CollectorRegistration, error) {
	return m.add("mask", name, func() member { return &named[codec.MaskStats]{mask, name, m.masks, mask.Stats} })
}
