//go:build purego

package jsonplan

import "reflect"

// Objects share nothing; see plan.CanShare.

func partOf(shareKind, reflect.Value) (at *byte, n int) { return nil, 0 }
func takePart(shareKind, reflect.Value, *byte, int)     {}
func genericPart(any) (at *byte, n int)                 { return nil, 0 }
func genericMap(*byte) map[string]any                   { return nil }
func genericSlice(*byte, int) []any                     { return nil }
