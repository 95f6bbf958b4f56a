package codec

import "github.com/leatproject/leat/api"

// These are capabilities of a ListerWatcher, as those in package api. A Source and a PackerSource are looked up with
// api.As.

// Source is a ListerWatcher that decodes its objects with a Codec.
type Source[T any] interface {
	// Codec returns the Codec, with its tables of strings and parts, so that others can decode objects that share them.
	Codec() *Codec[T]
}

// PackerSource is a ListerWatcher with a Packer of its own, because the type of its objects is known only at run time.
type PackerSource[T api.Object] interface {
	// Packer returns the Packer, which the first call makes.
	Packer() *Packer[T]
}

// MaskSource is a ListerWatcher whose objects keep only the fields of a Mask. It is looked up with api.As.
type MaskSource interface {
	// Mask returns the Mask.
	Mask() *Mask
}

// PackedSource is a ListerWatcher that can keep the bytes of its answers. It does not hold for a wrapper, whose List
// and Watch the result would not call, so it must be looked up without api.As.
type PackedSource interface {
	// Packed returns a ListerWatcher of the same objects that decodes with the Codec that from returns. from gets the
	// options of the source. The result is nil if a wrapped source cannot keep bytes.
	Packed(from func(Options) *Codec[*Packed]) api.ListerWatcher[*Packed]
}
