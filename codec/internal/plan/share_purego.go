//go:build purego

package plan

// CanShare is false because a weak pointer needs the static type of its target, unless there is unsafe.
const CanShare = false
