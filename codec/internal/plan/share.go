//go:build !purego

package plan

// CanShare reports whether objects can share parts.
const CanShare = true
